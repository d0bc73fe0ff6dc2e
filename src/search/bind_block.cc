#include "search/bind_block.h"

#include <algorithm>

#include "analysis/threads.h"
#include "ir/build.h"
#include "schedule/primitives/add_unit_loop.h"
#include "schedule/primitives/bind.h"
#include "schedule/primitives/fuse.h"
#include "schedule/primitives/get_loops.h"
#include "schedule/primitives/reorder.h"
#include "schedule/primitives/sample_categorical.h"
#include "schedule/primitives/split.h"
#include "search/loop_kinds.h"
#include "search/rules/block_conditions.h"
#include "support/ranges.h"

namespace tilewright::search {
namespace {

using namespace schedule;  // NOLINT: instructions

struct LoopsAround {
  bool in_blocks = false;      ///< a loop is bound to blockIdx
  std::optional<int> threads;  ///< the outermost loop that is bound to threadIdx
  int fusible = 0;             ///< outer loops that are spatial, serial, from 0, and directly inside of one another
};

LoopsAround look(const analysis::Tree& tree, int block) {
  LoopsAround around;
  std::vector<int> loops = tree.loops_above(block);
  bool fusible = true;
  for (size_t i : indices_of(loops)) {
    const For& loop = tree.for_at(loops[i]);
    if (auto axis = analysis::thread_axis(loop)) {
      around.in_blocks |= axis->level == ThreadAxis::Level::kBlock;
      if (axis->level == ThreadAxis::Level::kThread && !around.threads) around.threads = static_cast<int>(i);
    }
    fusible &= is_plain(loop) && is_const_int(loop.min, 0) && loop_use(tree, loops[i]) == LoopUse::kSpatial;
    if (!fusible) continue;
    ++around.fusible;
    fusible &= has_single_body(loop);
  }
  return around;
}

}  // namespace

Result<Factor> sample_thread_extent(Schedule& schedule, const std::vector<int64_t>& sizes, int64_t max_extent) {
  SampleCategorical sample;
  std::ranges::copy_if(sizes, std::back_inserter(sample.candidates), [&](int64_t size) { return size <= max_extent; });
  if (sample.candidates.empty()) return Factor(max_extent);
  if (sample.candidates.size() == 1) return Factor(sample.candidates[0]);
  sample.probs = equal_weights(sample.candidates.size());
  TW_TRY(size, schedule.apply(sample));
  return Factor(size);
}

Result<std::vector<LoopRV>> bind_spatial_loop(Schedule& schedule, LoopRV loop, int64_t max_threadblocks,
                                              int64_t max_threads, const ThreadFactor& factor) {
  TW_TRY(place, schedule.state().find(loop));
  auto extent = const_int(place.loop().extent);
  if (extent && *extent > max_threadblocks * max_threads) {
    TW_TRY(parts, schedule.apply(Split{loop, {{None{}, max_threadblocks, max_threads}}}));
    TW_RETURN_IF_ERROR(schedule.apply(Reorder{{{parts[1], parts[2], parts[0]}}}));
    TW_RETURN_IF_ERROR(schedule.apply(Bind{parts[1], "blockIdx.x"}));
    TW_RETURN_IF_ERROR(schedule.apply(Bind{parts[2], "threadIdx.x"}));
    return std::vector<LoopRV>{parts[1], parts[2], parts[0]};
  }
  TW_TRY(threads, factor(schedule, extent ? std::clamp<int64_t>(*extent, 1, max_threads) : max_threads));
  TW_TRY(parts, schedule.apply(Split{loop, {{None{}, threads}}}));
  TW_RETURN_IF_ERROR(schedule.apply(Bind{parts[0], "blockIdx.x"}));
  TW_RETURN_IF_ERROR(schedule.apply(Bind{parts[1], "threadIdx.x"}));
  return std::vector<LoopRV>{parts[0], parts[1]};
}

Status bind_block_thread_idx(Schedule& schedule, BlockRV block, int64_t max_threadblocks, int64_t max_threads_per_block,
                             const ThreadFactor& factor) {
  TW_TRY(place, schedule.state().find(block));
  if (place.tree->realize_at(place.at) == nullptr) return Ok{};
  if (place.block().annotations.has("meta_schedule.tiling_structure")) return Ok{};
  LoopsAround around = look(*place.tree, place.at);
  if (around.in_blocks) {
    if (around.threads) return Ok{};
    return schedule_error("search/bind-block",
                          "loops around block '" + place.block().name_hint +
                              "' are bound to blockIdx, but none to threadIdx, and all between may be needed serial",
                          "bind a loop inside to threadIdx.x");
  }
  TW_TRY(loops, schedule.apply(GetLoops{block}));
  int count = around.threads ? std::min(around.fusible, *around.threads) : around.fusible;
  LoopRV outer;
  if (count == 0) {
    TW_TRY(unit, schedule.apply(AddUnitLoop{loops.empty() ? BlockOrLoop(block) : BlockOrLoop(loops[0])}));
    outer = unit;
  } else {
    TW_TRY(one, schedule.apply(Fuse{{{loops.begin(), loops.begin() + count}}}));
    outer = one;
  }
  if (around.threads) {
    TW_RETURN_IF_ERROR(schedule.apply(Bind{outer, "blockIdx.x"}));
    return Ok{};
  }
  TW_TRY(bound, bind_spatial_loop(schedule, outer, max_threadblocks, max_threads_per_block, factor));
  (void)bound;
  return Ok{};
}

}  // namespace tilewright::search
