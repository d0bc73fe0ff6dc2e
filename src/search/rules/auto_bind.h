// Gives the iterations of blocks that nobody tiled to the blocks and threads of a GPU.
#pragma once

#include "search/rules/schedule_rule.h"

namespace tilewright::search {

class AutoBind final : public ScheduleRule {
 public:
  /// `thread_extents`: from which the size of a team is drawn, those that fit; `max_threads_per_block`: -1 for that of
  /// the target.
  AutoBind(int64_t max_threadblocks, std::vector<int64_t> thread_extents, int64_t max_threads_per_block)
      : max_threadblocks_(max_threadblocks),
        thread_extents_(std::move(thread_extents)),
        max_threads_per_block_(max_threads_per_block) {}

  /// ArgumentError "auto_bind/target" where neither the target nor the rule says how large teams may be.
  Status initialize(const TuneContext& context) override;
  Result<std::vector<schedule::Schedule>> apply(schedule::Schedule schedule, schedule::BlockRV block) const override;
  std::string name() const override { return "AutoBind"; }
  std::shared_ptr<ScheduleRule> clone() const override { return std::make_shared<AutoBind>(*this); }

 private:
  int64_t max_threadblocks_;
  std::vector<int64_t> thread_extents_;
  int64_t max_threads_per_block_;
};

}  // namespace tilewright::search
