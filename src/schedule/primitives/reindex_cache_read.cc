// Copy what a block reads of a buffer into a new one, with indices of your choice.
//
//   Before                           After  sch.reindex_cache_read(B, 0, "shared", lambda i, j: (j, i // 2, i % 2))
//   for i, j in T.grid(8, 4):        A_shared = T.alloc_buffer((4, 4, 2), scope="shared")
//     with T.block("B"):             for i, j in T.grid(8, 4):
//       vi = T.axis.spatial(8, i)      with T.block("A_shared"):
//       vj = T.axis.spatial(4, j)        vi = T.axis.spatial(8, i)
//       B[vi, vj] = A[vi, vj] + 1.0      vj = T.axis.spatial(4, j)
//                                        A_shared[vj, vi // 2, vi % 2] = A[vi, vj]
//                                    for i, j in T.grid(8, 4):
//                                      with T.block("B"):
//                                        vi = T.axis.spatial(8, i)
//                                        vj = T.axis.spatial(4, j)
//                                        B[vi, vj] = A_shared[vj, vi // 2, vi % 2] + 1.0
//
// The copy runs over the same values of the axes as the block, and different ones go to different elements of the
// cache: each instance finds what it would have read.
//
// Requires  P1 the read exists, and the block is not the root
//           P2 the scope is a storage scope
//           P3 at most one block of the scope writes the buffer, before the block, or after all iterations of it; and
//              the buffer has one name in the scope
//           P4 the block reads one element in each instance, that its axes say
//           P5 the map takes the block's axes, speaks of those that the old indices speak of, and is one to one
//           P6 the element is in bounds for all values of the axes, and has its value by then
//           P7 loops, and nothing else, say which instances of the block run; what stands in the scope touches the
//              buffer in blocks only
#include "schedule/primitives/reindex_cache_read.h"

#include "analysis/binding_reads.h"
#include "ir/build.h"
#include "schedule/axis_copy.h"
#include "schedule/relocate.h"
#include "schedule/run_condition.h"

namespace tilewright::schedule {
namespace {

/// Location of the copy.
struct ChosenRead {
  CopyPlace place;
  bool written;  ///< the buffer is written in the scope before; else the copy is at the start of the scope
};
Result<ChosenRead> choose_location(const State& state, const Place& block, int scope_at, const Ref<Buffer>& buffer) {
  const Tree& tree = *block.tree;
  const analysis::Scope& scope = analysis::Scope::of(tree, scope_at);
  TW_RETURN_IF_ERROR(require_only_blocks(block, scope_at, "reindex_cache_read/P7"));
  TW_RETURN_IF_ERROR(require_one_name(block, scope_at, buffer, "reindex_cache_read/P3"));
  std::vector<int> writers = scope.writers(buffer);
  int writer = writers.empty() ? Tree::kNone : tree.block(scope.children()[writers[0]]->block->id.value);
  if (writers.size() > 1 || writer == block.at ||
      (writer > block.at && share_a_loop(tree, scope_at, block.at, writer))) {
    return refuse("reindex_cache_read/P3",
                  writers.size() > 1 ? "several blocks write '" + buffer->name + "'"
                                     : describe_block(tree.block_at(writer)) + " writes '" + buffer->name + "' while " +
                                           describe(block) + " reads it",
                  {tree.stmt(writer), block.node()},
                  "cache before its reduction is decomposed, and before the loops of the two blocks are joined");
  }
  if (writer != Tree::kNone && writer < block.at)
    return ChosenRead{before_first(tree, scope_at, writer, {block.at}), true};
  if (auto obstacle = why_not_all_written(state, block, scope_at, buffer)) {
    return refuse("reindex_cache_read/P6", *obstacle, "let a block write all of the buffer before");
  }
  return ChosenRead{start_of(tree, scope_at), false};
}

}  // namespace

Result<Plan> plan(const State& state, const ReindexCacheRead& cache) {
  TW_TRY(read, cached_read(state, cache.block, cache.read_buffer_index, cache.storage_scope,
                           {"reindex_cache_read/P1", "reindex_cache_read/P2"}));
  const auto& [block, scope, position, region] = read;
  const Tree& tree = *block.tree;
  const Ref<Buffer>& buffer = region->buffer;
  TW_TRY(choice, choose_location(state, block, scope, buffer));
  const CopyPlace& place = choice.place;
  AxisCacheCodes codes{"reindex_cache_read/P4", "reindex_cache_read/P5", "reindex_cache_read/P6"};
  TW_TRY(axes, axis_cache(block, buffer, cache.storage_scope, *cache.index_map.map.as<IndexMap>(), codes));
  const int outside = tree[place.near].parent;
  axes.condition =
      written_condition(tree, outside, block.at, buffer, {block.at}, box_of_axes(block.block(), axes.old_indices));
  if (!axes.condition.defined()) return refuse_unwritten(block, buffer, "reindex_cache_read/P6");
  Ref<Block> copy_block;
  TW_TRY(nest, axis_copy_nest(block, outside, axes, true, "reindex_cache_read/P7", &copy_block));

  Plan plan = insert_axis_copy(block, place, axes, nest);
  const Tree& after = Tree::of(plan.root);
  int copier = after.block(copy_block->id.value);
  // The block's own condition may ask for data, which have to be there by then.
  if (choice.written || !analysis::binding_reads(*after.realize_at(copier)).empty()) {
    auto obstacle = analysis::why_inputs_incomplete(after, copier);
    if (obstacle)
      return refuse("reindex_cache_read/P6", *obstacle,
                    "cache before the loops of the writer and the reader are changed");
  }
  TW_RETURN_IF_ERROR(recheck_execution(after, copier, "reindex_cache_read/P6"));
  plan.outputs.push_back(Handle::block(block.func, *copy_block));
  plan.recorded = recorded_with(cache, &ReindexCacheRead::read_buffer_index, position);
  return plan;
}

}  // namespace tilewright::schedule
