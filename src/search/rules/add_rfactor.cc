#include "search/rules/add_rfactor.h"

#include <limits>

#include "schedule/primitives/annotate.h"
#include "schedule/primitives/rfactor.h"
#include "schedule/primitives/sample_perfect_tile.h"
#include "schedule/primitives/split.h"
#include "search/rules/block_conditions.h"

namespace tilewright::search {

using namespace schedule;

Status AddRFactor::initialize(const TuneContext& context) {
  if (!context.target) {
    return argument_error("add_rfactor/target",
                          "how many jobs are enough follows from the target; the context has none",
                          "give the context a target");
  }
  max_parallel_extent_ = options_.max_jobs_per_core == -1 ? std::numeric_limits<int64_t>::max()
                                                          : context.target->num_cores * options_.max_jobs_per_core;
  return Ok{};
}

Result<Schedules> AddRFactor::apply(Schedule schedule, BlockRV block) const {
  TW_TRY(place, schedule.state().find(block));
  if (!needs_split_reduction(place, max_parallel_extent_)) return Schedules{std::move(schedule)};
  Schedule original = schedule.fork();
  TW_TRY(reduction, fuse_reduction_loops(schedule, block));
  TW_TRY(factors, schedule.apply(SamplePerfectTile{.loop = reduction.loop,
                                                   .n = 2,
                                                   .max_innermost_factor = options_.max_innermost_factor.value_or(-1),
                                                   .decision = {}}));
  TW_TRY(parts, schedule.apply(Split{.loop = reduction.loop, .factors = {as_factors(factors)}}));
  Schedules result;
  for (LoopRV part : parts) {
    Schedule trial = schedule.fork();
    if (!trial.apply(RFactor{.loop = part, .factor_axis = static_cast<int64_t>(reduction.num_spatial_loops)}).ok()) {
      continue;
    }
    TW_RETURN_IF_ERROR(trial.apply(
        Annotate{.block_or_loop = block, .ann_key = "meta_schedule.random_compute_producer", .ann_val = {int64_t{1}}}));
    result.push_back(std::move(trial));
  }
  result.push_back(std::move(original));
  return result;
}

}  // namespace tilewright::search
