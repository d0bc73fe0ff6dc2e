// Points of the design spaces at random: a space, and fresh decisions for its trace.
#pragma once

#include "search/strategy/candidates.h"
#include "search/strategy/trial_counter.h"

namespace tilewright::search {

class ReplayTrace final : public SearchStrategy {
 public:
  /// `max_fail_count`: how many refused points in a row leave a place in the batch empty.
  explicit ReplayTrace(int64_t max_fail_count = 100) : max_fail_count_(max_fail_count) {}
  Status initialize(const TuneContext& context) override;
  Status pre_tuning(TuningPlan plan) override;
  Result<std::optional<MeasureCandidates>> generate_measure_candidates() override;
  Status notify_runner_results(const MeasureCandidates& candidates, const RunnerResults& results) override;
  Status post_tuning() override;
  bool takes_parts() const override { return true; }
  std::shared_ptr<SearchStrategy> clone() const override { return std::make_shared<ReplayTrace>(max_fail_count_); }
  const Refusals& refusals() const { return refusals_; }

 private:
  int64_t max_fail_count_;
  Postprocs postprocs_;
  std::vector<ArgInfo> args_;
  std::optional<Target> target_;
  uint64_t seed_ = 0;
  int num_threads_ = 1;
  Schedules spaces_;
  std::vector<ThreadBounds> bounds_;  ///< by space
  TrialCounter trials_;
  Refusals refusals_;
};

}  // namespace tilewright::search
