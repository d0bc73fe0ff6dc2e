// Random points, by running the space generator anew for each: for spaces whose steps depend on sampled values.
#pragma once

#include "search/strategy/candidates.h"
#include "search/strategy/trial_counter.h"

namespace tilewright::search {

class ReplayFunc final : public SearchStrategy {
 public:
  Status initialize(const TuneContext& context) override;
  Status pre_tuning(TuningPlan plan) override;
  Result<std::optional<MeasureCandidates>> generate_measure_candidates() override;
  Status notify_runner_results(const MeasureCandidates& candidates, const RunnerResults& results) override;
  Status post_tuning() override;
  bool takes_parts() const override { return true; }
  std::shared_ptr<SearchStrategy> clone() const override { return std::make_shared<ReplayFunc>(); }
  const Refusals& refusals() const { return refusals_; }

 private:
  Result<std::optional<Schedule>> sample_point(Random& random);

  std::shared_ptr<SpaceGenerator> generator_;
  Ref<Module> module_;
  std::vector<ArgInfo> args_;
  uint64_t seed_ = 0;
  TrialCounter trials_;
  Refusals refusals_;
};

}  // namespace tilewright::search
