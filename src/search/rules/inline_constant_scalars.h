// Blocks that compute one number from nothing are put into those that read it.
#pragma once

#include "search/rules/schedule_rule.h"

namespace tilewright::search {

class InlineConstantScalars final : public ScheduleRule {
 public:
  Status initialize(const TuneContext&) override { return Ok{}; }
  Result<std::vector<schedule::Schedule>> apply(schedule::Schedule schedule, schedule::BlockRV block) const override;
  std::string name() const override { return "InlineConstantScalars"; }
  std::shared_ptr<ScheduleRule> clone() const override { return std::make_shared<InlineConstantScalars>(*this); }
};

}  // namespace tilewright::search
