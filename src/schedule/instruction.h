// What is known of each kind of instruction, derived from its aggregate: the basis of recording, replay, JSON, printing
// and the Python methods.
#pragma once

#include <functional>
#include <span>

#include "schedule/instructions.h"
#include "support/result.h"

namespace tilewright::schedule {

enum class FieldRole {
  kInput,     ///< handles and values: what replay renumbers
  kAttr,      ///< constants
  kDecision,  ///< what a sampling instruction drew
};

struct Param {
  std::string_view name;
  FieldRole role;
  bool star = false;        ///< *args in Python
  bool flat = false;        ///< a list whose items JSON writes among the inputs
  bool omit_empty = false;  ///< not printed where empty
  bool required = false;
  Value default_value;
  std::string type;           ///< as in the Python stub
  bool takes_none = false;    ///< None is a value, not only the mark of a missing argument
  bool takes_blocks = false;  ///< a text stands for the block of that name
  bool takes_map = false;     ///< a Python function of indices stands for its IndexMap
};

enum class Shape { kNothing, kOne, kMany };

struct KindInfo {
  std::string_view kind;    ///< "Split"
  std::string_view method;  ///< "split"
  Family family;
  bool positional = false;  ///< printed without the parameter's name
  Shape returns;
  std::string return_type;  ///< as in the Python stub
  std::string_view doc;
  std::vector<Param> params;

  std::vector<Value> (*values)(const Instruction&);
  /// One value per parameter, in order; a missing one takes the default. ArgumentError "schedule/argument" on a type
  /// that does not fit.
  Result<Instruction> (*build)(const KindInfo&, std::span<const std::optional<Value>>);
  /// Python's "def split(self, loop: LoopRV, ...) -> list[LoopRV]".
  std::string signature() const;
};

std::span<const KindInfo> all_kinds();
const KindInfo& kind_info(const Instruction& instruction);
/// By kind ("Split") or by method ("split"); null if there is none.
const KindInfo* find_kind(std::string_view kind);
const KindInfo* find_method(std::string_view method);

/// One value per parameter.
std::vector<Value> values_of(const Instruction& instruction);
/// The parameters as traces write them: without the decision, lists of inputs flattened.
struct Parts {
  std::vector<Value> inputs, attrs;
};
Parts parts_of(const Instruction& instruction);
/// The other way round. ArgumentError "schedule/argument" where they do not fit.
Result<Instruction> from_parts(const KindInfo& info, const Parts& parts, const Value& decision);
/// The decision of a sampling instruction; None if it has none yet or draws nothing.
Value decision_of(const Instruction& instruction);
/// The same instruction with another decision (None: to be drawn). ArgumentError when the kinds do not fit.
Result<Instruction> with_decision(const Instruction& instruction, const Value& decision);
enum class HandleKind { kLoop, kBlock, kExpr };
/// Calls f for each handle that the instruction takes, with its number, which f may change.
void for_each_handle(Instruction& instruction, const std::function<void(HandleKind, uint32_t&)>& f);

}  // namespace tilewright::schedule
