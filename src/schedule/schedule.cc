#include "schedule/schedule.h"

#include <algorithm>
#include <span>
#include <unordered_map>

#include "ir/verify.h"
#include "schedule/balanced_loops.h"
#include "schedule/check_decision.h"
#include "schedule/declarations.h"
#include "schedule/ownership.h"
#include "schedule/primitive.h"
#include "schedule/primitives/decompose_format.h"
#include "schedule/primitives/get_block.h"
#include "schedule/primitives/get_sparse_iteration.h"
#include "schedule/primitives/lower_sparse_iter.h"
#include "schedule/sizes_by_name.h"
#include "sparse/lower_iterations.h"
#include "support/ranges.h"

namespace tilewright::schedule {
namespace {

/// Handles that the instruction mentions exist and are of the kind its fields say.
Status check_handles(const State& state, const Instruction& instruction) {
  std::optional<std::pair<const char*, uint32_t>> bad;
  for_each_handle(instruction, [&](HandleKind kind, uint32_t number) {
    if (number >= state.num_handles() || state.handle(number).target.index() != static_cast<size_t>(kind)) {
      bad = {kind == HandleKind::kLoop ? "loop" : kind == HandleKind::kBlock ? "block" : "value", number};
    }
  });
  if (!bad) return Ok{};
  return argument_error("schedule/handle",
                        std::string(kind_info(instruction).method) + "(): " + bad->first + " " +
                            std::to_string(bad->second) + " is not a handle of this schedule",
                        "pass handles that this schedule, or the one it was copied from, has given");
}

Diagnostic at_step(Diagnostic diagnostic, size_t step, const Instruction& instruction) {
  diagnostic.message = "step " + std::to_string(step) + " of the trace, " + std::string(kind_info(instruction).method) +
                       "(): " + diagnostic.message;
  return diagnostic;
}

/// The only function of a module is looked into, whatever the one was called that the step was recorded on.
Instruction in_only_function(const State& state, Instruction instruction) {
  if (state.module()->functions.size() != 1) return instruction;
  const std::string& only = state.module()->functions[0].first;
  if (instruction.is<LowerSparseIter>()) return LowerSparseIter{only};
  if (const DecomposeFormat* decompose = instruction.as<DecomposeFormat>()) {
    DecomposeFormat here = *decompose;
    here.func_name = only;
    return here;
  }
  if (const GetSparseIteration* get = instruction.as<GetSparseIteration>()) return GetSparseIteration{get->name, only};
  const GetBlock* get = instruction.as<GetBlock>();
  if (!get || get->func_name.empty()) return instruction;
  return get->func_name == only ? instruction : Instruction(GetBlock{get->name, only});
}

using Steps = std::span<const Step* const>;

/// Map from the handles of a trace to those of the schedule that follows it.
struct Renumbering {
  uint32_t kept = 0;  ///< numbers below this one mean the same in both
  std::unordered_map<uint32_t, uint32_t> others;

  /// Returns false if no earlier step has returned one of the handles.
  bool apply(Instruction& instruction) const {
    bool known = true;
    instruction = with_handles(instruction, [&](HandleKind, uint32_t& number) {
      if (number < kept) return;
      auto* other = find_value(others, number);
      known &= other != nullptr;
      if (other) number = *other;
    });
    return known;
  }
  void add(const std::vector<uint32_t>& theirs, const std::vector<uint32_t>& ours) {
    for (size_t i : indices_of(ours)) {
      if (theirs[i] != LoopRV::kNone && ours[i] != LoopRV::kNone) others[theirs[i]] = ours[i];
    }
  }
};

/// `steps` start at number `first`; `sample` sampling steps come before them. `removed`: ascending numbers of steps
/// that are missing from `steps` but still counted.
Status replay_steps(Steps steps, size_t first, size_t sample, Renumbering numbers, Schedule& schedule,
                    const ReplayOptions& options, const std::vector<size_t>& removed = {}) {
  if (options.random) schedule.seed(*options.random);
  auto passed = removed.begin();
  for (size_t at = 0, number = first; at < steps.size(); ++at, ++number) {
    const Step& step = *steps[at];
    for (; passed != removed.end() && *passed == number; ++passed) ++number;
    Instruction instruction = step.instruction;
    if (!numbers.apply(instruction)) {
      return at_step(schedule_error("trace/handle", "it uses a handle that no earlier step gives",
                                    removed.empty() ? "the trace is not complete: its steps come from another one"
                                                    : "leave it out, too, with what gave that handle"),
                     number, step.instruction);
    }
    instruction = in_only_function(schedule.state(), std::move(instruction));
    if (step.is_sampling()) {
      Value decision = options.decide ? options.decide(sample, step, instruction) : Value{None{}};
      ++sample;
      if (!decision.is_none() || options.fresh) {
        auto other = with_decision(instruction, decision);
        if (!other.ok()) return at_step(std::move(other.error()), number, step.instruction);
        instruction = std::move(*other);
      }
    }
    auto outputs = schedule.apply(std::move(instruction));
    if (!outputs.ok()) return at_step(std::move(outputs.error()), number, step.instruction);
    if (outputs->size() != step.outputs.size()) {
      return at_step(
          schedule_error("trace/outputs",
                         "it gave " + std::to_string(outputs->size()) + " handles where the trace has " +
                             std::to_string(step.outputs.size()),
                         "a step that replaces another one gives as many handles; else the trace was recorded on "
                         "another program"),
          number, step.instruction);
    }
    numbers.add(step.outputs, *outputs);
  }
  return Ok{};
}

size_t count_samples(Steps steps) {
  return static_cast<size_t>(std::ranges::count_if(steps, [](const Step* step) { return step->is_sampling(); }));
}

/// Whether both do the same, given what their handles are.
bool same_step(const Step& theirs, const Step& ours, const Renumbering& numbers) {
  if (&theirs == &ours && numbers.others.empty()) return true;
  if (&theirs.instruction.info() != &ours.instruction.info()) return false;
  if (theirs.outputs.size() != ours.outputs.size()) return false;
  Instruction instruction = theirs.instruction;
  return numbers.apply(instruction) && values_of(instruction) == values_of(ours.instruction);
}

/// Number of steps, other than sampling steps, between stored states. A state keeps a version of the program alive.
constexpr size_t kKeptEvery = 8;

}  // namespace

Result<Schedule> Schedule::make(const Ref<Module>& module, uint64_t seed) {
  TW_TRY(state, State::make(module, Random(seed)));
  // Steps rely on what a program that was read or built node by node need not fulfill. Functions by themselves: one may
  // stand in a module under two names.
  for (const auto& [name, function] : state.module()->functions) {
    const Stage stage = sparse::is_sparse(function) ? Stage::kSparse : Stage::kScheduled;
    TW_RETURN_IF_ERROR(verify(function, stage, Rules::kLanguage));
  }
  return Schedule(std::move(state));
}

uint64_t Schedule::fork_seed() {
  Random mine = state_.random();
  uint64_t seed = 1 + mine.below((uint64_t{1} << 31) - 1);
  state_.set_random(mine);
  return seed;
}

Schedule Schedule::fork() {
  Random mine = state_.random();
  Schedule copy = *this;
  copy.given_.clear();
  copy.state_.set_random(mine.fork());
  state_.set_random(mine);
  return copy;
}

Status Schedule::decide(Instruction& instruction) const {
  if (kind_info(instruction).family != Family::kSample || !decision_of(instruction).is_none()) return Ok{};
  size_t sample = trace_.sampling_steps().size();
  if (sample >= given_.size()) return Ok{};
  TW_TRY(decided, with_decision(instruction, given_[sample]));
  instruction = std::move(decided);
  return Ok{};
}

Result<Outputs> Schedule::apply(Instruction instruction) {
  if (!given_.empty()) TW_RETURN_IF_ERROR(decide(instruction));
  TW_RETURN_IF_ERROR(check_handles(state_, instruction));
  TW_TRY(given, with_sizes_by_name(state_, std::move(instruction)));
  instruction = std::move(given);
  std::optional<Plan> planned;
  try {
    Result<Plan> result = plan(state_, instruction);
    if (result.ok()) {
      planned = std::move(*result);
    } else if (!(planned = plan_by_declarations(state_, instruction))) {
      return std::move(result.error());
    }
    // A plan may record an argument that is an expression as a function.
    if (planned->recorded) TW_RETURN_IF_ERROR(with_sizes_by_name(state_, *planned->recorded));
    if (may_lose_owned_buffers(state_, *planned)) TW_RETURN_IF_ERROR(check_owned_buffers(state_, *planned));
    TW_RETURN_IF_ERROR(check_balanced_loops(state_, *planned));
  } catch (const Exception& e) {
    // Making a node was refused; the state is untouched.
    const std::string& code = e.diagnostic().code;
    if (code == "ir/too-large" || code == "ir/too-deep") {
      return schedule_error("schedule/too-large",
                            std::string(kind_info(instruction).method) + "(): " + e.diagnostic().message,
                            "leave a block in between, which computes it once");
    }
    if (code == "ir/int-range") {
      return schedule_error(
          "schedule/range", std::string(kind_info(instruction).method) + "(): " + e.diagnostic().message,
          "the program would need larger numbers than its indices have: take smaller ones, or indices of int64");
    }
    // A gap in the primitive's own conditions.
    Diagnostic d = internal_error(
        "schedule/plan",
        std::string(kind_info(instruction).method) + "() could not build its result: " + e.diagnostic().message,
        "this is a defect of Tilewright, please report it");
    return d;
  }
  std::shared_ptr<const State> before;
  if (kind_info(instruction).family == Family::kSample || trace_.size() % kKeptEvery == 0) {
    before = std::make_shared<const State>(state_);
  }
  if (planned->recorded) instruction = std::move(*planned->recorded);
  std::string stated = std::move(planned->stated);
  Outputs outputs = state_.commit(std::move(*planned));
  trace_.append({std::move(instruction), outputs, std::move(before), std::move(stated)});
  return outputs;
}

Status replay(const Trace& trace, Schedule& schedule, const ReplayOptions& options) {
  return replay_steps(trace.steps(), 0, 0, {}, schedule, options);
}

Schedule Schedule::rewound(size_t steps) const {
  size_t kept = steps;
  while (kept < trace_.size() && !trace_[kept].before) --kept;  // the first step keeps one
  Schedule result(kept < trace_.size() ? *trace_[kept].before : state_);
  result.trace_ = trace_.prefix(kept);
  result.forgotten_ = forgotten_;
  for (; kept < steps; ++kept) {
    // Nothing is sampled here, and a step that was accepted once is accepted again.
    result.apply(trace_[kept].instruction).value_or_throw();
  }
  return result;
}

Result<Schedule> Schedule::replay_from(size_t step, const std::vector<TraceEdit>& edits,
                                       const ReplayOptions& options) const {
  if (step > trace_.size()) {
    return argument_error("trace/step", "the trace has no step of that number",
                          "it has " + std::to_string(trace_.size()) + " steps, counted from 0");
  }
  for (const TraceEdit& edit : edits) {
    if (edit.step >= step) continue;
    return argument_error(
        "trace/step",
        "step " + std::to_string(edit.step) + " is edited, but replay starts at step " + std::to_string(step),
        "start at the first step that is edited");
  }
  // Removed steps shift the numbers of later steps, but not those of handles.
  TW_TRY(trace, trace_.edited(edits));
  Schedule result = rewound(step);
  std::vector<const Step*> all = trace.steps();
  Renumbering numbers{static_cast<uint32_t>(result.state_.num_handles()), {}};
  std::vector<size_t> removed;
  for (const TraceEdit& edit : edits) {
    if (!edit.instead) removed.push_back(edit.step);
  }
  std::ranges::sort(removed);
  TW_RETURN_IF_ERROR(replay_steps(Steps(all).subspan(step), step, count_samples(Steps(all).first(step)),
                                  std::move(numbers), result, options, removed));
  return result;
}

Result<Schedule> Schedule::with_trace(const Trace& other, const ReplayOptions& options) const {
  std::vector<const Step*> theirs = other.steps(), ours = trace_.steps();
  Renumbering numbers;
  size_t same = 0;
  for (; same < theirs.size() && same < ours.size(); ++same) {
    if (!same_step(*theirs[same], *ours[same], numbers)) break;
    numbers.add(theirs[same]->outputs, ours[same]->outputs);
  }
  Schedule result = rewound(same);
  TW_RETURN_IF_ERROR(replay_steps(Steps(theirs).subspan(same), same, count_samples(Steps(theirs).first(same)),
                                  std::move(numbers), result, options));
  return result;
}

Result<Schedule> Schedule::with_decisions(const std::vector<std::pair<size_t, Value>>& changes) const {
  std::vector<size_t> samples = trace_.sampling_steps();
  std::vector<TraceEdit> edits;
  size_t first = trace_.size();
  for (const auto& [sample, decision] : changes) {
    if (sample >= samples.size()) {
      return argument_error("schedule/decision", "the trace has no sampling step number " + std::to_string(sample),
                            "it has " + std::to_string(samples.size()) + ", counted from 0");
    }
    TW_TRY(changed, with_decision(trace_[samples[sample]].instruction, decision));
    edits.push_back({samples[sample], std::move(changed)});
    first = std::min(first, samples[sample]);
  }
  TW_TRY(result, replay_from(first, edits));
  for (const auto& [sample, decision] : changes) {
    TW_RETURN_IF_ERROR(check_taken(decision, result.trace_[samples[sample]].instruction));
  }
  return result;
}

}  // namespace tilewright::schedule
