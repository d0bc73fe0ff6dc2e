// Blocks that compute one number from nothing are put into those that read it.
#pragma once

#include "search/rules/schedule_rule.h"

namespace tilewright::search {

class InlineConstantScalars final : public PartOf<InlineConstantScalars, ScheduleRule> {
 public:
  Result<Schedules> apply(Schedule schedule, BlockRV block) const override;
};

}  // namespace tilewright::search
