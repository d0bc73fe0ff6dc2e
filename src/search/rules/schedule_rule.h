// A schedule rule handles one block: it turns a schedule into one or several others.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "search/part.h"
#include "search/tune_context.h"

namespace tilewright::search {

class ScheduleRule {
 public:
  using Kind = ScheduleRule;
  virtual ~ScheduleRule() = default;
  /// Returns the name that is reported if the rule refuses a block.
  virtual std::string name() const = 0;
  /// Called once, before the first apply().
  virtual Status initialize(const TuneContext&) { return Ok{}; }
  /// The schedule itself where the rule has nothing to say about the block; more than one where there is a choice that
  /// sampling cannot express. An error leaves the block as it was. Several threads may call it at once.
  virtual Result<Schedules> apply(Schedule schedule, BlockRV block) const = 0;
  virtual std::shared_ptr<ScheduleRule> clone() const = 0;
};

}  // namespace tilewright::search
