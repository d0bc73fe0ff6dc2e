// Gives the iterations of blocks that nobody tiled to the blocks and threads of a GPU.
#pragma once

#include "search/rules/schedule_rule.h"

namespace tilewright::search {

struct AutoBindOptions {
  int64_t max_threadblocks = 256;
  std::vector<int64_t> thread_extents = {32,  64,  128,
                                         256, 512, 1024};  ///< candidates, of which those that fit are sampled
  int64_t max_threads_per_block = -1;                      ///< -1: that of the target
  using Members = Fields<&AutoBindOptions::max_threadblocks, &AutoBindOptions::thread_extents,
                         &AutoBindOptions::max_threads_per_block>;
};

class AutoBind final : public PartOf<AutoBind, ScheduleRule, AutoBindOptions> {
 public:
  using PartOf::PartOf;
  /// ArgumentError "auto_bind/target" where neither the target nor the rule says how large teams may be.
  Status initialize(const TuneContext& context) override;
  Result<Schedules> apply(Schedule schedule, BlockRV block) const override;
};

}  // namespace tilewright::search
