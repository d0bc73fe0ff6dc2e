// A program being scheduled: plan, commit, record.
//
//   Result<Schedule> sch = Schedule::make(module);
//   auto block = sch->apply(GetBlock{.name = "C"});                 // Result<BlockRV>
//   auto loops = sch->apply(GetLoops{.block = *block});             // Result<std::vector<LoopRV>>
//   auto tiles = sch->apply(Split{.loop = (*loops)[0], .factors = {{None{}, 32}}});
//
// A refusal leaves the schedule as it was. Copying costs O(1). Different schedules may be used by different threads,
// also where they are copies of one another.
#pragma once

#include <functional>
#include <set>

#include "schedule/state.h"
#include "schedule/trace.h"

namespace tilewright::schedule {

/// Outputs of an instruction, one number for each; LoopRV::kNone for None.
using Outputs = std::vector<uint32_t>;

struct ReplayOptions {
  /// Sample every decision anew, from the schedule's random stream.
  bool fresh = false;
  /// Called for each sampling step with its number among the sampling steps, the step, and the instruction that is to
  /// be applied, with its handles in this schedule. None: as `fresh` says.
  std::function<Value(size_t, const Step&, const Instruction&)> decide = {};
  /// The stream to sample from, instead of the one that the schedule had at the first step.
  std::optional<Random> random = {};
};

class Schedule {
 public:
  static Result<Schedule> make(const Ref<Module>& module, uint64_t seed = 0);

  const Ref<Module>& module() const { return state_.module(); }
  const State& state() const { return state_; }
  const Trace& trace() const { return trace_; }
  Status work_on(std::string_view function) { return state_.work_on(function); }
  void seed(uint64_t seed) { state_.set_random(Random(seed)); }
  /// The stream of one candidate of a search.
  void seed(Random random) { state_.set_random(random); }
  /// A seed for another stream, from 1 to 2^31 - 1; this one moves on.
  uint64_t fork_seed();
  /// A copy with a random stream of its own; this one advances by one sample.
  Schedule fork();

  /// The n-th sampling step takes the n-th of these decisions instead of sampling; None samples. Copies that fork()
  /// makes, and what replays this schedule, do not take them.
  void take_decisions(std::vector<Value> decisions) { given_ = std::move(decisions); }
  /// Handles that callers are not to pass any more. Steps of the trace, done again, still do.
  void forget(uint32_t handle) { forgotten_.insert(handle); }
  const std::set<uint32_t>& forgotten() const { return forgotten_; }

  /// Returns this schedule after its first `steps` steps, from a state kept nearby. steps <= trace().size().
  Schedule rewound(size_t steps) const;
  /// Returns this schedule with the steps from `step` on replayed, with these edits (their steps >= `step`). Earlier
  /// steps are shared, not replayed. Errors as of Trace::edited and replay.
  Result<Schedule> replay_from(size_t step, const std::vector<TraceEdit>& edits,
                               const ReplayOptions& options = {}) const;
  /// Applies another trace to the same original program, from the first step that differs. The trace's handles have
  /// their own numbering.
  Result<Schedule> with_trace(const Trace& other, const ReplayOptions& options = {}) const;
  /// Returns the schedule with other decisions at some sampling steps (numbers among the sampling steps); later ones
  /// keep theirs.
  Result<Schedule> with_decisions(const std::vector<std::pair<size_t, Value>>& changes) const;

  Result<Outputs> apply(Instruction instruction);
  template <class I>
    requires requires { typename I::Returns; }
  Result<typename I::Returns> apply(const I& instruction) {
    TW_TRY(numbers, apply(Instruction(instruction)));
    return shape_outputs<typename I::Returns>(numbers);
  }

 private:
  explicit Schedule(State state) : state_(std::move(state)) {}
  template <class R>
  static R shape_outputs(const Outputs& numbers) {
    if constexpr (std::is_same_v<R, None>) {
      return None{};
    } else if constexpr (requires { R{}.index; }) {
      return R{numbers[0]};
    } else {
      R result;
      for (uint32_t number : numbers) {
        using Item = typename R::value_type;
        if constexpr (requires { Item{}.index; }) {
          result.push_back(Item{number});
        } else {
          result.push_back(number == LoopRV::kNone ? std::nullopt : Item(typename Item::value_type{number}));
        }
      }
      return result;
    }
  }

  /// Sets the decision of a sampling step that has none but shall take a given one.
  Status decide(Instruction& instruction) const;

  State state_;
  Trace trace_;
  std::vector<Value> given_;
  std::set<uint32_t> forgotten_;
};

/// Applies the steps of a trace, whose handles get new numbers. Stops at the first refusal, whose message names the
/// step; the steps before it remain done.
Status replay(const Trace& trace, Schedule& schedule, const ReplayOptions& options = {});

}  // namespace tilewright::schedule
