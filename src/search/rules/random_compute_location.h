// Blocks that nobody tiled are computed where a draw says: inlined, under a loop of their consumer, or in place.
#pragma once

#include "search/rules/schedule_rule.h"

namespace tilewright::search {

class RandomComputeLocation final : public ScheduleRule {
 public:
  Status initialize(const TuneContext&) override { return Ok{}; }
  Result<std::vector<schedule::Schedule>> apply(schedule::Schedule schedule, schedule::BlockRV block) const override;
  std::string name() const override { return "RandomComputeLocation"; }
  std::shared_ptr<ScheduleRule> clone() const override { return std::make_shared<RandomComputeLocation>(*this); }
};

}  // namespace tilewright::search
