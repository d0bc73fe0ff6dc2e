// The number of trials that a search has handed out and measured.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "search/strategy/search_strategy.h"

namespace tilewright::search {

/// Counts the trials of a search that measures in batches.
class TrialCounter {
 public:
  /// Starts a search. ArgumentError "search/under-way" if one is running; "search/plan" for invalid numbers.
  Status start(const TuningPlan& plan);
  /// Checks that a search is running: ArgumentError "search/not-started" outside of pre_tuning() and post_tuning().
  Status check() const;
  /// Ends the search.
  Status finish();
  bool is_over() const { return num_left() <= 0; }
  size_t next_batch() const { return static_cast<size_t>(std::min(num_trials_per_iter_, num_left())); }
  /// Returns the number of the batch, from which its random streams are derived, and counts the batch.
  uint64_t take_round() { return round_++; }
  void count_handed_out(size_t count) { num_in_flight_ += static_cast<int64_t>(count); }
  void count_measured(size_t count) {
    num_measured_ += static_cast<int64_t>(count);
    num_in_flight_ = std::max<int64_t>(0, num_in_flight_ - static_cast<int64_t>(count));
  }

 private:
  int64_t num_left() const { return max_trials_ - num_measured_ - num_in_flight_; }

  bool is_running_ = false;
  int64_t max_trials_ = 0, num_trials_per_iter_ = 0, num_measured_ = 0;
  int64_t num_in_flight_ = 0;  ///< handed out, but not measured yet
  uint64_t round_ = 0;
};

}  // namespace tilewright::search
