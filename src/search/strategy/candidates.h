// From schedules with decisions to candidates that can be measured: what strategies have in common.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "search/space/space_generator.h"
#include "search/strategy/refusals.h"
#include "search/strategy/search_strategy.h"
#include "search/strategy/thread_bounds.h"

namespace tilewright::search {

/// The schedule after all postprocessors; none where one refused, which is counted. Several threads may call it at
/// once.
std::optional<Schedule> postprocessed(Schedule schedule, const Postprocs& postprocs, Refusals& refusals);
/// The bounds of each design space, if VerifyGPUCode is among the postprocessors; else bounds that all decisions keep.
std::vector<ThreadBounds> bounds_of(const Schedules& spaces, const Postprocs& postprocs,
                                    const std::optional<Target>& target);
/// Samples all decisions anew, within the bounds; none where a step is refused then, which is counted.
std::optional<Schedule> resampled(const Schedule& schedule, const ThreadBounds& bounds, Random random,
                                  Refusals& refusals);

/// A mutator by its probability; null, with probability 1 - `mutate_prob` or where there is none: no mutation.
const Mutator* sample_mutator(const Mutators& mutators, double mutate_prob, Random& random);

/// Returns the arguments of a kernel of the program; empty if they need sizes or numbers from the user.
std::vector<ArgInfo> args_of(const Ref<Module>& module);
MeasureCandidates as_candidates(Schedules schedules, const std::vector<ArgInfo>& args);

/// Where a search stands that measures its trials in batches.
class Progress {
 public:
  /// ArgumentError "search/under-way" when a search is under way; "search/plan" for numbers that make no sense.
  Status start(const TuningPlan& plan);
  /// ArgumentError "search/not-started" outside of pre_tuning() and post_tuning().
  Status check() const;
  Status finish();
  bool is_over() const { return left() <= 0; }
  size_t next_batch() const { return static_cast<size_t>(std::min(num_trials_per_iter_, left())); }
  /// The number of the batch, which streams of random numbers are derived from.
  uint64_t take_round() { return round_++; }
  void handed_out(size_t count) { open_ += static_cast<int64_t>(count); }
  void measured(size_t count) {
    done_ += static_cast<int64_t>(count);
    open_ = std::max<int64_t>(0, open_ - static_cast<int64_t>(count));
  }

 private:
  int64_t left() const { return max_trials_ - done_ - open_; }

  bool under_way_ = false;
  int64_t max_trials_ = 0, num_trials_per_iter_ = 0, done_ = 0;
  int64_t open_ = 0;  ///< handed out, and not measured yet
  uint64_t round_ = 0;
};

}  // namespace tilewright::search
