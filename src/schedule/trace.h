// The record of what was done to a program: an immutable list of instructions with their decisions.
//
// Appending shares all earlier steps, so that candidates of a search share their prefixes; sampling steps and some
// others keep the state before them, from which another way is taken (Schedule::replay_from).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "schedule/instruction.h"
#include "support/persistent_stack.h"
#include "support/result.h"

namespace tilewright::schedule {

class State;

struct Step {
  Instruction instruction;
  std::vector<uint32_t> outputs;  ///< numbers of the handles it gave; LoopRV::kNone for None
  /// state before a sampling step, or before each eighth step of a schedule; else null
  std::shared_ptr<const State> before;
  std::string stated{};  ///< claims of the user that are not proved and that the step depends on
  bool is_sampling() const { return kind_info(instruction).family == Family::kSample; }
};

/// Replacement of one step.
struct TraceEdit {
  size_t step;
  std::optional<Instruction> instead;  ///< gives as many handles as that step; none: the step is removed
};

class Trace {
 public:
  size_t size() const { return steps_.size(); }
  const Step& operator[](size_t index) const { return steps_[index]; }
  /// Returns all steps, first to last. Valid while the trace lives.
  std::vector<const Step*> steps() const { return steps_.items(); }
  void append(Step step) { steps_.push_back(std::move(step)); }
  Trace prefix(size_t size) const {
    Trace result;
    result.steps_ = steps_.prefix(size);
    return result;
  }

  void pop() { steps_ = steps_.prefix(steps_.size() - 1); }
  /// Returns the trace before the first EnterPostproc.
  Trace without_postproc() const;
  /// Returns the trace with other numbers for all handles, and without the states of sampling steps.
  Trace shifted(uint32_t by) const;
  /// Returns the trace without lookups and sampling steps whose results are not used.
  Trace simplified() const;
  /// The decision of each sampling step, in order.
  std::vector<Value> decisions() const;
  /// The numbers of the sampling steps among all.
  std::vector<size_t> sampling_steps() const;
  /// Returns the trace with other steps at some positions; the steps before the first of them are shared. ArgumentError
  /// "trace/step" for a number without a step.
  Result<Trace> edited(const std::vector<TraceEdit>& edits) const;
  /// Returns the trace with another decision at a sampling step (None: to be sampled). ArgumentError
  /// "schedule/decision" if the step does not sample, or not such a value.
  Result<Trace> with_decision(size_t step, const Value& decision) const;

  /// One statement per step, "l1, l2 = sch.split(loop=l0, ...)".
  std::vector<std::string> as_python() const;
  /// A function apply_trace(sch) that can be pasted and run, as a person would write it: arguments by position,
  /// defaults omitted, handles named after loops and blocks, as far as `name_of` knows (else l1, b0).
  std::string script(const std::function<std::string(uint32_t)>& name_of = {}) const;
  /// TVM's form: [[[kind, inputs, attrs, outputs], ...], [[step, decision], ...]].
  std::string as_json() const;
  /// ScheduleError "trace/json" for anything that is not such a text, with the step and what was expected.
  static Result<Trace> from_json(std::string_view text);

 private:
  PersistentStack<Step> steps_;
};

/// Names of handles in a trace, "b0", "l1", "v2", numbered in the order in which steps return them; or the names of
/// their targets, if known.
class HandleNames {
 public:
  HandleNames() = default;
  explicit HandleNames(std::function<std::string(uint32_t)> name_of) : name_of_(std::move(name_of)) {}
  /// Names what a step gives; "_" for None.
  std::vector<std::string> define(const Step& step);
  /// "_" for what no step has given so far.
  std::string of(uint32_t number) const;

 private:
  std::string invent(uint32_t number, char letter);

  std::function<std::string(uint32_t)> name_of_;
  std::unordered_map<uint32_t, std::string> names_;
  std::unordered_set<std::string> taken_ = {"sch", "tw", "T"};
};

/// A single instruction as Python text, where each handle is "_".
std::string anonymous_python(const Instruction& instruction, size_t num_outputs);

}  // namespace tilewright::schedule
