#include "schedule/schedule.h"

#include <span>
#include <unordered_map>

#include "schedule/primitive.h"

namespace tilewright::schedule {
namespace {

/// Handles that the instruction mentions exist and are of the kind its fields say.
Status check_handles(const State& state, Instruction& instruction) {
  std::optional<std::pair<const char*, uint32_t>> bad;
  for_each_handle(instruction, [&](HandleKind kind, uint32_t& number) {
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

using Steps = std::span<const Step* const>;

/// `kept`: handles below this number mean the same in both.
Status replay_steps(Steps steps, size_t first, size_t kept, Schedule& schedule, const ReplayOptions& options) {
  std::unordered_map<uint32_t, uint32_t> numbers;  // where they differ, and where they are known
  size_t draw = 0;
  for (size_t at = 0; at < steps.size(); ++at) {
    const Step& step = *steps[at];
    Instruction instruction = step.instruction;
    bool known = true;
    for_each_handle(instruction, [&](HandleKind, uint32_t& number) {
      if (number < kept) return;
      auto it = numbers.find(number);
      known &= it != numbers.end();
      if (it != numbers.end()) number = it->second;
    });
    if (!known) {
      return at_step(schedule_error("trace/handle", "it uses a handle that no earlier step gives"), first + at,
                     step.instruction);
    }
    if (kind_info(instruction).family == Family::kSample) {
      Value decision = options.decide ? options.decide(draw, step, instruction) : Value{None{}};
      ++draw;
      if (!decision.is_none() || options.fresh) {
        auto other = with_decision(instruction, decision);
        if (!other.ok()) return at_step(std::move(other.error()), first + at, step.instruction);
        instruction = std::move(*other);
      }
    }
    auto outputs = schedule.apply(std::move(instruction));
    if (!outputs.ok()) return at_step(std::move(outputs.error()), first + at, step.instruction);
    if (outputs->size() != step.outputs.size()) {
      return at_step(schedule_error("trace/outputs",
                                    "it gave " + std::to_string(outputs->size()) + " handles where the trace has " +
                                        std::to_string(step.outputs.size()),
                                    "the program is not the one that the trace was recorded on"),
                     first + at, step.instruction);
    }
    for (size_t i = 0; i < outputs->size(); ++i) {
      if (step.outputs[i] != LoopRV::kNone && (*outputs)[i] != LoopRV::kNone) numbers[step.outputs[i]] = (*outputs)[i];
    }
  }
  return Ok{};
}

}  // namespace

Result<Schedule> Schedule::make(const Ref<Module>& module, uint64_t seed) {
  TW_TRY(state, State::make(module, Random(seed)));
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
  copy.state_.set_random(mine.fork());
  state_.set_random(mine);
  return copy;
}

Result<Outputs> Schedule::apply(Instruction instruction) {
  TW_RETURN_IF_ERROR(check_handles(state_, instruction));
  std::optional<Plan> planned;
  try {
    auto result = std::visit([&](const auto& inst) { return plan(state_, inst); }, instruction);
    if (!result.ok()) return std::move(result.error());
    planned = std::move(*result);
  } catch (const Exception& e) {
    // Making a node was refused: a gap in the primitive's own conditions. The state is untouched.
    Diagnostic d = internal_error(
        "schedule/plan",
        std::string(kind_info(instruction).method) + "() could not build its result: " + e.diagnostic().message,
        "this is a defect of Tilewright, please report it");
    return d;
  }
  std::shared_ptr<const State> before;
  if (kind_info(instruction).family == Family::kSample) before = std::make_shared<const State>(state_);
  if (planned->recorded) instruction = std::move(*planned->recorded);
  Outputs outputs = state_.commit(std::move(*planned));
  trace_.append({std::move(instruction), outputs, std::move(before)});
  return outputs;
}

Status replay(const Trace& trace, Schedule& schedule, const ReplayOptions& options) {
  return replay_steps(trace.steps(), 0, 0, schedule, options);
}

Result<Schedule> Schedule::with_decisions(const std::vector<std::pair<size_t, Value>>& changes) const {
  if (changes.empty()) return *this;
  std::vector<const Step*> steps = trace_.steps();
  size_t first = 0, draws = 0, first_draw = changes.front().first;
  for (;; ++first) {
    if (first == steps.size()) {
      return argument_error("schedule/decision", "the trace has no drawing step number " + std::to_string(first_draw));
    }
    if (steps[first]->before && draws++ == first_draw) break;
  }
  Schedule result(*steps[first]->before);
  result.trace_ = trace_.prefix(first);
  ReplayOptions options;
  options.decide = [&](size_t draw, const Step&, const Instruction&) {
    for (const auto& [number, decision] : changes) {
      if (number == first_draw + draw) return decision;
    }
    return Value{None{}};
  };
  size_t kept = result.state_.num_handles();
  TW_RETURN_IF_ERROR(replay_steps(Steps(steps).subspan(first), first, kept, result, options));
  return result;
}

}  // namespace tilewright::schedule
