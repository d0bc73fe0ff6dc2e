// Reductions with few spatial iterations are computed in parts: by rfactor, on either part of the split loop.
#pragma once

#include "search/rules/schedule_rule.h"

namespace tilewright::search {

class AddRFactor final : public ScheduleRule {
 public:
  /// `max_jobs_per_core` times the cores: so many spatial iterations are enough. -1 for no limit, as with the factor.
  AddRFactor(int64_t max_jobs_per_core, int64_t max_innermost_factor)
      : max_jobs_per_core_(max_jobs_per_core), max_innermost_factor_(max_innermost_factor) {}

  /// ArgumentError "add_rfactor/target" for a context without a target.
  Status initialize(const TuneContext& context) override;
  /// With each part factored, and as it is.
  Result<std::vector<schedule::Schedule>> apply(schedule::Schedule schedule, schedule::BlockRV block) const override;
  std::string name() const override { return "AddRFactor"; }
  std::shared_ptr<ScheduleRule> clone() const override { return std::make_shared<AddRFactor>(*this); }

 private:
  int64_t max_jobs_per_core_, max_innermost_factor_;
  int64_t max_parallel_extent_ = -1;
};

}  // namespace tilewright::search
