// Let a block write a new buffer with indices of your choice, and copy that back to the old one.
//
//   Before                                  After  sch.reindex_cache_write(B, 0, "shared", lambda i, j: (j, i))
//   for i, j in T.grid(8, 4):               B_shared = T.alloc_buffer((4, 8), scope="shared")
//     with T.block("B"):                    for i, j in T.grid(8, 4):
//       vi, vj = T.axis.remap("SS", [i, j])   with T.block("B"):
//       B[vi, vj] = A[vi, vj] + 1.0             vi, vj = T.axis.remap("SS", [i, j])
//                                               B_shared[vj, vi] = A[vi, vj] + 1.0
//                                           for i, j in T.grid(8, 4):
//                                             with T.block("B_shared"):
//                                               vi, vj = T.axis.remap("SS", [i, j])
//                                               B[vi, vj] = B_shared[vj, vi]
//
// Requires  P1 the write exists, and the block is not the root
//           P2 the scope is a storage scope
//           P3 no other block of the scope writes the buffer, this one is complete or a reduction, the buffer has one
//              name in the scope, and no loop runs a reader of it before the block again and again
//           P4 the block touches one element in each instance, that its axes say
//           P5 the map takes the block's axes, speaks of those that the old indices speak of, and is one to one
//           P6 the element is in bounds for all values of the axes, and is complete where the copy stands
//           P7 loops, and nothing else, say which instances of the block run; what stands in the scope touches the
//              buffer in blocks only
#include <algorithm>

#include "analysis/block_facts.h"
#include "ir/build.h"
#include "schedule/axis_copy.h"
#include "schedule/primitives/reindex_cache_write.h"
#include "schedule/relocate.h"
#include "schedule/run_condition.h"

namespace tilewright::schedule {
namespace {

/// Returns the location of the block that copies back: before the first reader, or at the end of the scope.
Result<CopyPlace> choose_location(const Place& block, int scope_at, const Ref<Buffer>& buffer) {
  const Tree& tree = *block.tree;
  const analysis::Scope& scope = analysis::Scope::of(tree, scope_at);
  TW_RETURN_IF_ERROR(require_only_blocks(block, scope_at, "reindex_cache_write/P7"));
  auto no = [&](std::string why) {
    return refuse("reindex_cache_write/P3", std::move(why), block,
                  "cache before its reduction is decomposed, and outside of blocks that make views");
  };
  const auto& facts = analysis::BlockFacts::of(tree.block_ref(block.at));
  if (facts.role != analysis::BlockRole::kComplete && facts.role != analysis::BlockRole::kReduction) {
    return no(describe(block) + " is neither a complete nor a reduction block: " +
              (facts.why.empty() ? std::string("it updates elements that have a value before") : facts.why));
  }
  if (scope.writers(buffer).size() > 1) {
    return no("'" + buffer->name + "' is written by other blocks than " + describe(block) + " as well");
  }
  TW_RETURN_IF_ERROR(require_one_name(block, scope_at, buffer, "reindex_cache_write/P3"));
  std::vector<int> later;
  for (int child : scope.readers(buffer)) {
    int reader = scope.position(tree, child);
    if (reader > block.at) later.push_back(reader);
    if (reader < block.at && share_a_loop(tree, scope_at, reader, block.at)) {
      return no(describe_block(tree.block_at(reader)) + " reads '" + buffer->name + "' before " + describe(block) +
                " writes it, in each iteration of a loop");
    }
  }
  return later.empty() ? end_of(tree, scope_at) : before_first(tree, scope_at, block.at, later);
}

/// Whether the block runs with all its reductions for all values of the axes that it runs over below `outside`.
bool is_complete_after(const Place& block, int outside, const std::vector<size_t>& axes) {
  const Tree& tree = *block.tree;
  const BlockRealize& realize = *tree.realize_at(block.at);
  auto loops = analysis::loops_between(tree, outside, block.at);
  if (!loops) return false;
  auto analyzer = analysis::analyzer_above(tree, outside);
  Ref<BufferRegion> all = axes_as_region(block.block(), axes);
  auto written = written_by(tree, block.at, all, *loops, analyzer);
  arith::Box wanted = arith::relax_region(analysis::bound_region(realize, all), analysis::domains_of(tree, *loops),
                                          analyzer, realize.predicate);
  return written && surely_runs(tree, block.at, all, *loops, analyzer) &&
         arith::proves_subset(wanted, written->box, analyzer);
}

}  // namespace

Result<Plan> plan(const State& state, const ReindexCacheWrite& cache) {
  TW_TRY(write, cached_write(state, cache.block, cache.write_buffer_index, cache.storage_scope,
                             {"reindex_cache_write/P1", "reindex_cache_write/P2"}));
  const auto& [block, scope, position, region] = write;
  const Tree& tree = *block.tree;
  const Ref<Buffer>& buffer = region->buffer;
  TW_TRY(place, choose_location(block, scope, buffer));
  AxisCacheCodes codes{"reindex_cache_write/P4", "reindex_cache_write/P5", "reindex_cache_write/P6"};
  TW_TRY(axes, axis_cache(block, buffer, cache.storage_scope, *cache.index_map.map.as<IndexMap>(), codes));
  int outside = tree[place.near].parent;
  if (auto obstacle = analysis::why_init_not_first(tree, outside, block.at)) {
    return refuse("reindex_cache_write/P6", *obstacle,
                  "cache before the loops of the block and its readers are changed");
  }
  Ref<Block> copy_block;
  TW_TRY(nest, axis_copy_nest(block, outside, axes, false, "reindex_cache_write/P7", &copy_block));
  if (!is_complete_after(block, outside, axes.axes)) {
    return refuse(
        "reindex_cache_write/P6",
        "it cannot be proved that the elements of '" + buffer->name + "' are complete where the copy would stand",
        block, "take this step before the loops around the block are changed");
  }

  Plan plan = insert_axis_copy(block, place, axes, nest);
  const Tree& after = Tree::of(plan.root);
  for (uint64_t id : {copy_block->id.value, block.block().id.value}) {
    TW_RETURN_IF_ERROR(recheck_execution(after, after.block(id), "reindex_cache_write/P6"));
  }
  plan.outputs.push_back(Handle::block(block.func, *copy_block));
  plan.recorded = recorded_with(cache, &ReindexCacheWrite::write_buffer_index, position);
  return plan;
}

}  // namespace tilewright::schedule
