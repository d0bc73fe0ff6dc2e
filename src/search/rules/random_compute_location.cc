#include "search/rules/random_compute_location.h"

#include "schedule/primitives/compute_at.h"
#include "schedule/primitives/get_producers.h"
#include "schedule/primitives/sample_compute_location.h"
#include "schedule/primitives/unannotate.h"
#include "search/loop_kinds.h"
#include "search/rules/block_conditions.h"
#include "support/ranges.h"

namespace tilewright::search {

using namespace schedule;

namespace {

constexpr const char* kProducerToo = "meta_schedule.random_compute_producer";

bool is_movable(const Place& place) {
  const Tree& tree = *place.tree;
  if (!tree.realize_at(place.at) || tree[place.at].scope != 0) return false;
  std::vector<int> loops = tree.loops_above(place.at);
  if (loops.empty() || tree.child_blocks(loops[0]).size() > 1) return false;
  return !is_tiled(place.block()) && !consumers_of(place).empty();
}

Status move(Schedule& schedule, BlockRV block) {
  TW_TRY(loop, schedule.apply(SampleComputeLocation{.block = block, .decision = {}}));
  TW_RETURN_IF_ERROR(schedule.apply(ComputeAt{.block = block, .loop = loop, .preserve_unit_loops = true}));
  return Ok{};
}

}  // namespace

Result<Schedules> RandomComputeLocation::apply(Schedule schedule, BlockRV block) const {
  TW_TRY(place, schedule.state().find(block));
  if (!is_movable(place)) return Schedules{std::move(schedule)};
  std::vector<BlockRV> blocks = {block};
  if (integer_annotation(place.block().annotations, kProducerToo) == 1) {
    // Asked for first: the block may be inlined.
    TW_TRY(producers, schedule.apply(GetProducers{block}));
    TW_RETURN_IF_ERROR(schedule.apply(Unannotate{.block_or_loop = block, .ann_key = kProducerToo}));
    append_range(blocks, producers);
  }
  for (BlockRV each : blocks) TW_RETURN_IF_ERROR(move(schedule, each));
  return Schedules{std::move(schedule)};
}

}  // namespace tilewright::search
