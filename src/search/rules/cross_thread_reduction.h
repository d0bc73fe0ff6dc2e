// Reductions with few spatial iterations are computed by the threads of a team together.
#pragma once

#include "search/rules/schedule_rule.h"

namespace tilewright::search {

struct CrossThreadReductionOptions {
  std::vector<int64_t> thread_extents;  ///< candidates for the number of threads
  using Members = Fields<&CrossThreadReductionOptions::thread_extents>;
  static constexpr size_t kRequired = 1;
};

class CrossThreadReduction final : public PartOf<CrossThreadReduction, ScheduleRule, CrossThreadReductionOptions> {
 public:
  using PartOf::PartOf;
  /// The rule leaves all as it is where the target does not say how large teams may be.
  Status initialize(const TuneContext& context) override;
  /// Returns a schedule with threads, and the unchanged one.
  Result<Schedules> apply(Schedule schedule, BlockRV block) const override;

 private:
  Status add_threads(Schedule& schedule, BlockRV block) const;

  int64_t max_threads_per_block_ = -1, warp_size_ = -1;
};

}  // namespace tilewright::search
