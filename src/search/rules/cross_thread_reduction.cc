#include "search/rules/cross_thread_reduction.h"

#include <algorithm>
#include <optional>

#include "analysis/threads.h"
#include "schedule/primitives/bind.h"
#include "schedule/primitives/compute_at.h"
#include "schedule/primitives/get_consumers.h"
#include "schedule/primitives/get_loops.h"
#include "schedule/primitives/sample_categorical.h"
#include "schedule/primitives/set_scope.h"
#include "schedule/primitives/split.h"
#include "search/loop_kinds.h"
#include "search/rules/block_conditions.h"
#include "search/rules/target_limits.h"
#include "support/ranges.h"

namespace tilewright::search {

using namespace schedule;

namespace {

/// Where a block can be computed next to its consumers.
struct FusionPlace {
  BlockRV consumer;
  LoopRV loop;            ///< around all consumers, and only spatial loops of the block replaced by it
  LoopRV innermost_loop;  ///< innermost loop of the consumer
};

/// The number of the loop of the consumer that stands for as many spatial loops of the block as can be; -1: none.
int fusion_depth(const Tree& tree, const std::vector<int>& loops, const std::vector<int>& of_consumer, int ancestor) {
  size_t both = std::min(loops.size(), of_consumer.size());
  for (size_t i = 0; i < both; ++i) {
    if (loop_use(tree, loops[i]) != LoopUse::kSpatial) return static_cast<int>(i) - 1;
    if (of_consumer[i] == ancestor) return static_cast<int>(i);
  }
  return static_cast<int>(both) - 1;
}

Result<std::optional<FusionPlace>> find_fusion_place(Schedule& schedule, BlockRV block) {
  TW_TRY(consumers, schedule.apply(GetConsumers{block}));
  if (consumers.empty()) return std::optional<FusionPlace>();
  TW_TRY(place, schedule.state().find(block));
  std::vector<int> positions;
  for (BlockRV consumer : consumers) {
    TW_TRY(at, schedule.state().find(consumer));
    positions.push_back(at.at);
  }
  const Tree& tree = *place.tree;
  int ancestor = positions.size() == 1 ? positions[0] : tree.common_ancestor(positions);
  while (!tree[ancestor].is_loop && !tree[ancestor].is_block) ancestor = tree[ancestor].parent;
  if (positions.size() > 1 && tree[ancestor].is_block) return std::optional<FusionPlace>();
  int depth = fusion_depth(tree, tree.loops_above(place.at), tree.loops_above(positions[0]), ancestor);
  TW_TRY(loops, schedule.apply(GetLoops{consumers[0]}));
  if (depth < 0) return std::optional<FusionPlace>();
  return std::optional(FusionPlace{consumers[0], loops[depth], loops.back()});
}

bool runs_on_threads(const Place& block) {
  std::vector<int> loops = block.tree->loops_above(block.at);
  return any_of(loops, [&](int loop) {
    auto axis = analysis::thread_axis(block.tree->for_at(loop));
    return axis && axis->level == ThreadAxis::Level::kThread;
  });
}

Status compute_beside(Schedule& schedule, BlockRV block, FusionPlace where, ExprRV threads) {
  TW_TRY(consumer, schedule.state().find(where.consumer));
  if (!runs_on_threads(consumer)) {
    TW_TRY(parts, schedule.apply(Split{.loop = where.innermost_loop, .factors = {{None{}, threads}}}));
    TW_RETURN_IF_ERROR(schedule.apply(Bind{.loop = parts[1], .thread_axis = "threadIdx.x"}));
    if (where.innermost_loop == where.loop) where.loop = parts[0];
  }
  TW_RETURN_IF_ERROR(schedule.apply(ComputeAt{.block = block, .loop = where.loop, .preserve_unit_loops = true}));
  TW_RETURN_IF_ERROR(schedule.apply(SetScope{.block = block, .storage_scope = "shared"}));
  return Ok{};
}

}  // namespace

Status CrossThreadReduction::initialize(const TuneContext& context) {
  max_threads_per_block_ = max_threads_per_block(context.target).value_or(-1);
  warp_size_ = thread_warp_size(context.target).value_or(-1);
  return Ok{};
}

Result<Schedules> CrossThreadReduction::apply(Schedule schedule, BlockRV block) const {
  Schedules as_it_is = {schedule};
  if (max_threads_per_block_ == -1 || warp_size_ == -1) return as_it_is;
  TW_TRY(place, schedule.state().find(block));
  if (!needs_split_reduction(place, max_threads_per_block_)) return as_it_is;
  Schedule threaded = schedule.fork();
  // A reduction whose steps threads cannot take stays as it is.
  if (!add_threads(threaded, block).ok()) return as_it_is;
  return Schedules{std::move(threaded), std::move(schedule)};
}

Status CrossThreadReduction::add_threads(Schedule& schedule, BlockRV block) const {
  TW_TRY(where, find_fusion_place(schedule, block));
  TW_TRY(threads, schedule.apply(SampleCategorical{.candidates = options_.thread_extents,
                                                   .probs = equal_weights(options_.thread_extents.size()),
                                                   .decision = {}}));
  if (where) {
    Schedule beside = schedule;
    // A block that cannot be computed there stays where it is.
    if (compute_beside(beside, block, *where, threads).ok()) schedule = std::move(beside);
  }
  TW_TRY(reduction, fuse_reduction_loops(schedule, block));
  TW_TRY(parts, schedule.apply(Split{.loop = reduction.loop, .factors = {{None{}, threads}}}));
  TW_RETURN_IF_ERROR(schedule.apply(Bind{.loop = parts[1], .thread_axis = "threadIdx.x"}));
  return Ok{};
}

}  // namespace tilewright::search
