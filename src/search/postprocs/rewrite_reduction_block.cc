// Decomposes each reduction into an init block, before the outermost loop that is not only spatial, and an update
// block.
//
// Annotations for tensorization move to the update block. The init block gets the value of
// meta_schedule.auto_tensorize_init, or an empty text, with which RewriteTensorize vectorizes it. Reductions over
// threads keep their init, since lowering combines their partial results. Reductions that cannot be decomposed stay
// unchanged.
#include <unordered_set>

#include "analysis/block_facts.h"
#include "ir/substitute.h"
#include "schedule/primitives/annotate.h"
#include "schedule/primitives/decompose_reduction.h"
#include "schedule/primitives/get_loops.h"
#include "schedule/primitives/unannotate.h"
#include "search/loop_kinds.h"
#include "search/postprocs/postprocs.h"
#include "support/ranges.h"

namespace tilewright::search {
namespace {

using analysis::Tree;
using namespace schedule;  // NOLINT: instructions

constexpr const char* kTensorize = "meta_schedule.auto_tensorize";
constexpr const char* kTensorizeInit = "meta_schedule.auto_tensorize_init";

bool reduces_over_threads(const Tree& tree, int block) {
  const BlockRealize& realize = *tree.realize_at(block);
  for (int at = tree[block].parent; at != Tree::kNone; at = tree[at].parent) {
    if (!tree[at].is_loop || tree.for_at(at).kind != ForKind::kThreadBinding) continue;
    for (size_t i : indices_of(realize.iter_values)) {
      if (!analysis::is_reduction_axis(realize.block->iter_vars[i])) continue;
      if (uses_var(realize.iter_values[i], tree.for_at(at).loop_var)) return true;
    }
  }
  return false;
}

/// The number of the loop around the block to decompose at; none if all are spatial.
std::optional<size_t> point(const Tree& tree, int block) {
  std::vector<int> loops = tree.loops_above(block);
  for (size_t i : indices_of(loops)) {
    if (loop_use(tree, loops[i]) != LoopUse::kSpatial) return i;
  }
  return std::nullopt;
}

Status move_annotations(Schedule& schedule, const Block& block, BlockRV update, BlockRV init) {
  auto tensorize = text_annotation(block.annotations, kTensorize);
  if (!tensorize) return Ok{};
  TW_RETURN_IF_ERROR(schedule.apply(Unannotate{init, kTensorize}));
  auto for_init = text_annotation(block.annotations, kTensorizeInit);
  TW_RETURN_IF_ERROR(schedule.apply(Annotate{init, kTensorize, {for_init.value_or("")}}));
  if (!for_init) return Ok{};
  TW_RETURN_IF_ERROR(schedule.apply(Unannotate{update, kTensorizeInit}));
  TW_RETURN_IF_ERROR(schedule.apply(Unannotate{init, kTensorizeInit}));
  return Ok{};
}

}  // namespace

Result<bool> RewriteReductionBlock::apply(Schedule& schedule) const {
  std::unordered_set<uint64_t> left;  // blocks that stay as they are
  for (bool changed = true; changed;) {
    changed = false;
    for (const FoundBlock& found : blocks_of(schedule.state())) {
      if (!found.block->init.defined() || left.contains(found.block->id.value)) continue;
      TW_TRY(tree, schedule.state().tree(found.func));
      int at = tree->block(found.block->id.value);
      if (at == Tree::kNone || tree->realize_at(at) == nullptr || reduces_over_threads(*tree, at)) continue;
      std::optional<size_t> loop = point(*tree, at);
      if (!loop) continue;
      Schedule before = schedule;
      TW_TRY(block, handle_of(schedule, found.func, *found.block));
      TW_TRY(loops, schedule.apply(GetLoops{block}));
      auto init = schedule.apply(DecomposeReduction{block, loops[*loop]});
      if (!init.ok()) {
        schedule = std::move(before);
        left.insert(found.block->id.value);
        continue;
      }
      TW_RETURN_IF_ERROR(move_annotations(schedule, *found.block, block, *init));
      changed = true;
    }
  }
  return true;
}

}  // namespace tilewright::search
