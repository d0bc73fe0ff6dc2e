// Reductions with few spatial iterations are computed in parts: by rfactor, on either part of the split loop.
#pragma once

#include "search/rules/schedule_rule.h"

namespace tilewright::search {

struct AddRFactorOptions {
  int64_t max_jobs_per_core = 16;                 ///< so many spatial iterations for each core are enough; -1: no limit
  std::optional<int64_t> max_innermost_factor{};  ///< largest innermost factor of the split
  using Members = Fields<&AddRFactorOptions::max_jobs_per_core, &AddRFactorOptions::max_innermost_factor>;
};

class AddRFactor final : public PartOf<AddRFactor, ScheduleRule, AddRFactorOptions> {
 public:
  using PartOf::PartOf;
  /// ArgumentError "add_rfactor/target" for a context without a target.
  Status initialize(const TuneContext& context) override;
  /// Returns a schedule for each factored part, and the unchanged one.
  Result<Schedules> apply(Schedule schedule, BlockRV block) const override;

 private:
  int64_t max_parallel_extent_ = -1;
};

}  // namespace tilewright::search
