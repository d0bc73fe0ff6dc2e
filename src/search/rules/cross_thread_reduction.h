// Reductions with few spatial iterations are computed by the threads of a team together.
#pragma once

#include "search/rules/schedule_rule.h"

namespace tilewright::search {

class CrossThreadReduction final : public ScheduleRule {
 public:
  /// `thread_extents`: from which the number of threads is drawn.
  explicit CrossThreadReduction(std::vector<int64_t> thread_extents) : thread_extents_(std::move(thread_extents)) {}

  /// The rule leaves all as it is where the target does not say how large teams may be.
  Status initialize(const TuneContext& context) override;
  /// With threads, and as it is.
  Result<std::vector<schedule::Schedule>> apply(schedule::Schedule schedule, schedule::BlockRV block) const override;
  std::string name() const override { return "CrossThreadReduction"; }
  std::shared_ptr<ScheduleRule> clone() const override { return std::make_shared<CrossThreadReduction>(*this); }

 private:
  Status add_threads(schedule::Schedule& schedule, schedule::BlockRV block) const;

  std::vector<int64_t> thread_extents_;
  int64_t max_threads_per_block_ = -1, warp_size_ = -1;
};

}  // namespace tilewright::search
