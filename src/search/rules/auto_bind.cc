#include "search/rules/auto_bind.h"

#include "search/bind_block.h"
#include "search/rules/target_limits.h"

namespace tilewright::search {

using namespace schedule;

Status AutoBind::initialize(const TuneContext& context) {
  if (options_.max_threads_per_block != -1) return Ok{};
  options_.max_threads_per_block = max_threads_per_block(context.target).value_or(-1);
  if (options_.max_threads_per_block != -1) return Ok{};
  return argument_error("auto_bind/target", "the target does not say its max_threads_per_block",
                        "write it, as in \"cuda -arch=sm_80 -max_threads_per_block=1024\", or name a GPU by its tag");
}

Result<Schedules> AutoBind::apply(Schedule schedule, BlockRV block) const {
  auto factor = [this](Schedule& at, int64_t max_extent) {
    return sample_thread_extent(at, options_.thread_extents, max_extent);
  };
  Schedule bound = schedule;
  // A block whose iterations cannot be proved to be independent is left to the postprocessors.
  bool done =
      bind_block_thread_idx(bound, block, options_.max_threadblocks, options_.max_threads_per_block, factor).ok();
  return Schedules{done ? std::move(bound) : std::move(schedule)};
}

}  // namespace tilewright::search
