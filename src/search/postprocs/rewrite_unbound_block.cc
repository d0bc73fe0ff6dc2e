// Binds the blocks that no rule has given to blocks and threads of the GPU.
#include "analysis/threads.h"
#include "search/bind_block.h"
#include "search/loop_kinds.h"
#include "search/postprocs/postprocs.h"

namespace tilewright::search {
namespace {

using analysis::Tree;
using namespace schedule;  // NOLINT: instructions

/// Loops around, also those of the blocks around, are bound to both.
bool is_bound(const Tree& tree, int block) {
  bool blocks = false, threads = false;
  for (int at = tree[block].parent; at != Tree::kNone; at = tree[at].parent) {
    if (!tree[at].is_loop) continue;
    auto axis = analysis::thread_axis(tree.for_at(at));
    if (!axis) continue;
    blocks |= axis->level == ThreadAxis::Level::kBlock;
    threads |= axis->level == ThreadAxis::Level::kThread;
  }
  return blocks && threads;
}

}  // namespace

Status RewriteUnboundBlock::initialize(const TuneContext& context) {
  if (!context.target || !context.target->is_in(TargetSet::kGpu)) {
    return argument_error("search/no-threads", "RewriteUnboundBlock needs a target with blocks of threads",
                          "pass a target like \"nvidia/geforce-rtx-3070\"");
  }
  constexpr int64_t kUsual = 1024;  // default for targets without a limit
  max_threads_per_block_ = context.target->max_threads_per_block > 0 ? context.target->max_threads_per_block : kUsual;
  return Ok{};
}

Result<bool> RewriteUnboundBlock::apply(Schedule& schedule) const {
  if (max_threads_per_block_ == 0) {
    return argument_error("search/no-threads", "RewriteUnboundBlock was not initialized",
                          "give it to the space generator of a TuneContext with a target");
  }
  auto factor = [](Schedule&, int64_t max_extent) -> Result<Factor> { return Factor(max_extent); };
  for (const FoundBlock& found : blocks_of(schedule.state())) {
    TW_TRY(tree, schedule.state().tree(found.func));
    int at = tree->block(found.block->id.value);
    if (at == Tree::kNone || tree->realize_at(at) == nullptr || is_bound(*tree, at)) continue;
    if (tree->realize_at((*tree)[at].scope) != nullptr) continue;  // a block inside of one that comes first
    TW_TRY(block, handle_of(schedule, found.func, *found.block));
    TW_RETURN_IF_ERROR(
        bind_block_thread_idx(schedule, block, options_.max_threadblocks, max_threads_per_block_, factor));
  }
  return true;
}

}  // namespace tilewright::search
