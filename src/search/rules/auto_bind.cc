#include "search/rules/auto_bind.h"

#include <algorithm>

#include "search/bind_block.h"
#include "search/rules/block_conditions.h"
#include "search/rules/target_limits.h"

namespace tilewright::search {

using namespace schedule;

namespace {

/// One of the sizes that are not too large; the largest possible one where all are.
Result<Factor> draw_size(Schedule& schedule, const std::vector<int64_t>& sizes, int64_t max_extent) {
  SampleCategorical draw;
  std::copy_if(sizes.begin(), sizes.end(), std::back_inserter(draw.candidates),
               [&](int64_t size) { return size <= max_extent; });
  if (draw.candidates.empty()) return Factor(max_extent);
  if (draw.candidates.size() == 1) return Factor(draw.candidates[0]);
  draw.probs = equal_weights(draw.candidates.size());
  TW_TRY(size, schedule.apply(draw));
  return Factor(size);
}

}  // namespace

Status AutoBind::initialize(const TuneContext& context) {
  if (max_threads_per_block_ != -1) return Ok{};
  max_threads_per_block_ = max_threads_per_block(context.target).value_or(-1);
  if (max_threads_per_block_ != -1) return Ok{};
  return argument_error("auto_bind/target", "the target does not say its max_threads_per_block",
                        "write it, as in \"cuda -arch=sm_80 -max_threads_per_block=1024\", or name a GPU by its tag");
}

Result<std::vector<Schedule>> AutoBind::apply(Schedule schedule, BlockRV block) const {
  auto factor = [this](Schedule& at, int64_t max_extent) { return draw_size(at, thread_extents_, max_extent); };
  Schedule bound = schedule;
  // A block whose iterations cannot be proved to be independent is left to the postprocessors.
  bool done = bind_block_thread_idx(bound, block, max_threadblocks_, max_threads_per_block_, factor).ok();
  return std::vector<Schedule>{done ? std::move(bound) : std::move(schedule)};
}

}  // namespace tilewright::search
