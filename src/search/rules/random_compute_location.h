// Samples a compute location for blocks that no rule tiled: inlined, under a loop of their consumer, or in place.
#pragma once

#include "search/rules/schedule_rule.h"

namespace tilewright::search {

class RandomComputeLocation final : public PartOf<RandomComputeLocation, ScheduleRule> {
 public:
  Result<Schedules> apply(Schedule schedule, BlockRV block) const override;
};

}  // namespace tilewright::search
