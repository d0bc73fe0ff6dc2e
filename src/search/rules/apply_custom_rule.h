// Blocks that say by their annotation "schedule_rule" how they are to be scheduled.
//
//   T.block_attr({"schedule_rule": "winograd"})    the rule "meta_schedule.KEY.winograd", for the first key of the
//                                                  target ("cpu", "cuda", ...) that has such a rule
//   T.block_attr({"schedule_rule": "None"})        stays as it is
//
// If no such rule is registered, a warning is issued and the annotation is removed: other rules see the block.
#pragma once

#include <functional>
#include <string>

#include "search/rules/schedule_rule.h"
#include "search/warnings.h"

namespace tilewright::search {

using CustomRule = std::function<Result<Schedules>(Schedule, BlockRV)>;

/// Under its whole name, "meta_schedule.cpu.winograd". ArgumentError "custom_rule/taken" where there is one already and
/// it is not to be replaced.
Status register_custom_rule(const std::string& name, CustomRule rule, bool replace);
/// Returns the rule; empty if there is none.
CustomRule find_custom_rule(const std::string& name);

class ApplyCustomRule final : public PartOf<ApplyCustomRule, ScheduleRule> {
 public:
  /// ArgumentError "custom_rule/target" for a context without a target.
  Status initialize(const TuneContext& context) override;
  Result<Schedules> apply(Schedule schedule, BlockRV block) const override;

 private:
  std::vector<std::string> keys_;
  Warnings warnings_;
};

}  // namespace tilewright::search
