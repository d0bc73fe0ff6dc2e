// An instruction of any kind, and what is known of each kind, derived from its aggregate: the basis of recording,
// replay, JSON, printing and the Python methods.
//
// Only instruction.cc knows all kinds (instructions.h). Who applies one or looks for one includes its aggregate,
// primitives/METHOD.h, so that another primitive compiles little anew.
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "schedule/instruction_fields.h"
#include "support/result.h"

namespace tilewright::schedule {

class State;
struct Plan;
struct KindInfo;
/// The row of the kind whose aggregate is I.
template <class I>
const KindInfo& kind_of();

/// An aggregate of one of the kinds. Immutable; copies share it.
class Instruction {
 public:
  template <class I>
    requires requires { typename I::Returns; }
  Instruction(I fields) : info_(&kind_of<I>()), fields_(std::make_shared<const I>(std::move(fields))) {}

  const KindInfo& info() const { return *info_; }
  /// Returns null for another kind.
  template <class I>
  const I* as() const {
    return is<I>() ? static_cast<const I*>(fields_.get()) : nullptr;
  }
  template <class I>
  bool is() const {
    return info_ == &kind_of<I>();
  }

 private:
  const KindInfo* info_;
  std::shared_ptr<const void> fields_;
};

enum class HandleKind { kLoop, kBlock, kExpr };
using ReadHandle = std::function<void(HandleKind, uint32_t)>;
using ChangeHandle = std::function<void(HandleKind, uint32_t&)>;

enum class FieldRole {
  kInput,     ///< handles and values: what replay renumbers
  kAttr,      ///< constants
  kDecision,  ///< the result of a sampling instruction
};

struct Param {
  std::string_view name;
  FieldRole role;
  bool star = false;          ///< *args in Python
  bool flat = false;          ///< a list whose items JSON writes among the inputs
  bool omit_empty = false;    ///< not printed where empty
  bool omit_default = false;  ///< the last attribute, which is not written where it is the default: TVM has none
  bool among_inputs = false;  ///< a constant that traces write among the inputs
  bool side = false;          ///< "read" or "write", which traces write as 0 or 1
  bool touched = false;       ///< a pair of a side and a position, which traces write as the position, then 0 or 1
  bool required = false;
  Value default_value;
  std::string type;           ///< type in the Python stub
  bool takes_none = false;    ///< None is a value, not only the mark of a missing argument
  bool takes_blocks = false;  ///< a text stands for the block of that name
  bool takes_map = false;     ///< a Python function of indices stands for its IndexMap
};

enum class Shape { kNothing, kOne, kMany };

struct KindInfo {
  std::string_view kind;    ///< "Split"
  std::string_view method;  ///< "split"
  Family family;
  bool positional = false;               ///< printed without the parameter's name
  bool may_assume_declarations = false;  ///< on blocks that cannot be analyzed (declarations.h)
  Shape returns;
  HandleKind gives;         ///< kind of its outputs, if there are any
  std::string return_type;  ///< return type in the Python stub
  std::string_view doc;
  std::vector<Param> params;

  /// The functions get instructions of this kind.
  Result<Plan> (*plan)(const State&, const Instruction&);
  std::vector<Value> (*values)(const Instruction&);
  /// One value per parameter, in order; a missing one takes the default. ArgumentError "schedule/argument" on a type
  /// that does not fit.
  Result<Instruction> (*build)(const KindInfo&, std::span<const std::optional<Value>>);
  Value (*decision)(const Instruction&);
  /// Returns nothing if it is no sampling instruction, or the value has another type.
  std::optional<Instruction> (*with_decision)(const Instruction&, const Value&);
  void (*for_each_handle)(const Instruction&, const ReadHandle&);
  Instruction (*with_handles)(const Instruction&, const ChangeHandle&);
  /// Python's "def split(self, loop: LoopRV, ...) -> list[LoopRV]".
  std::string signature() const;
};

std::span<const KindInfo> all_kinds();
/// What the instruction changes, or why it is refused. Changes nothing.
Result<Plan> plan(const State& state, const Instruction& instruction);
inline const KindInfo& kind_info(const Instruction& instruction) { return instruction.info(); }
/// Finds a kind by name ("Split"); null if there is none.
const KindInfo* find_kind(std::string_view kind);

/// One value per parameter.
std::vector<Value> values_of(const Instruction& instruction);
/// The parameters as TVM's traces write them: without the decision, lists of inputs flattened. An aggregate's
/// kAmongInputs names constants that stand among the inputs, its kSide the parameter that is written as a number.
struct RecordedParts {
  std::vector<Value> inputs, attrs;
};
RecordedParts parts_of(const Instruction& instruction);
/// The other way round. ArgumentError "schedule/argument" where they do not fit.
Result<Instruction> from_parts(const KindInfo& info, const RecordedParts& parts, const Value& decision);
/// The decision of a sampling instruction; None if it has none yet or samples nothing.
Value decision_of(const Instruction& instruction);
/// A copy of the instruction with another decision (None: to be sampled). ArgumentError if the kinds do not fit.
Result<Instruction> with_decision(const Instruction& instruction, const Value& decision);
/// Calls f for each handle that the instruction takes, with its number.
void for_each_handle(const Instruction& instruction, const ReadHandle& f);
/// A copy of the instruction with the numbers that f puts in place of those of its handles.
Instruction with_handles(const Instruction& instruction, const ChangeHandle& f);

}  // namespace tilewright::schedule
