// Gather what a block reads through other buffers into a new one, indexed by the block's axes.
//
//   Before                                      After  sch.reverse_cache_read(C, "B", "local")
//   T.assume_buffer_domain(I, [0, 20])          T.assume_buffer_domain(I, [0, 20])
//   for i, k in T.grid(8, 4):                   B_local = T.alloc_buffer((8, 4), scope="local")
//     with T.block("C"):                        for i, k in T.grid(8, 4):
//       vi, vk = T.axis.remap("SS", [i, k])       with T.block("B_local"):
//       C[vi, vk] = A[vi] * B[I[vi], vk]            vi, vk = T.axis.remap("SS", [i, k])
//                                                   B_local[vi, vk] = B[I[vi], vk]
//                                               for i, k in T.grid(8, 4):
//                                                 with T.block("C"):
//                                                   vi, vk = T.axis.remap("SS", [i, k])
//                                                   C[vi, vk] = A[vi] * B_local[vi, vk]
//
// The copy runs over the same values of the axes as the block, so it reads no element that the block would not have
// read: where the block reads under a condition, the copy does.
//
// Requires  P1 the read exists, and the block is not the root
//           P2 the scope is a storage scope
//           P3 at most one block of the scope writes the buffer, before the block; and the buffer has one name there
//           P4 the block reads one element in each instance, that its axes and data select
//           P5 dim_order names the axes that select it, and no reduction axis if the init reads it; their extents are
//              bounded outside of the loops
//           P6 the element has its value by then, and so have the data that select it; where it is not known when the
//              block reads it, it is in bounds for all values of the axes
//           P7 loops, and nothing else, say which instances of the block run; what stands in the scope touches the
//              buffer in blocks only
#include "schedule/primitives/reverse_cache_read.h"

#include "ir/build.h"
#include "schedule/inline.h"
#include "schedule/redeclare.h"
#include "schedule/relocate.h"
#include "schedule/reverse_copy.h"
#include "schedule/run_condition.h"

namespace tilewright::schedule {
namespace {

/// Returns the location of the copy: after the writer of the buffer, or at the start of the scope.
Result<CopyPlace> location_of_copy(const State& state, const Place& block, int scope_at, const Ref<Buffer>& buffer) {
  const Tree& tree = *block.tree;
  const analysis::Scope& scope = analysis::Scope::of(tree, scope_at);
  TW_RETURN_IF_ERROR(require_only_blocks(block, scope_at, "reverse_cache_read/P7"));
  TW_RETURN_IF_ERROR(require_one_name(block, scope_at, buffer, "reverse_cache_read/P3"));
  std::vector<int> writers = scope.writers(buffer);
  int writer = writers.empty() ? Tree::kNone : tree.block(scope.children()[writers[0]]->block->id.value);
  if (writers.size() > 1 || writer >= block.at) {
    return refuse("reverse_cache_read/P3",
                  writers.size() > 1 ? "several blocks write '" + buffer->name + "'"
                                     : describe_block(tree.block_at(writer)) + " writes '" + buffer->name + "' while " +
                                           describe(block) + " reads it, or after that",
                  {tree.stmt(writer), block.node()}, "cache what one block writes before it is read");
  }
  if (writer != Tree::kNone) return before_first(tree, scope_at, writer, {block.at});
  if (auto obstacle = why_not_all_written(state, block, scope_at, buffer)) {
    return refuse("reverse_cache_read/P6", *obstacle, "let a block write all of the buffer before");
  }
  return start_of(tree, scope_at);
}

}  // namespace

Result<Plan> plan(const State& state, const ReverseCacheRead& cache) {
  TW_TRY(read, cached_read(state, cache.block, cache.read_buffer_index, cache.storage_scope,
                           {"reverse_cache_read/P1", "reverse_cache_read/P2"}));
  const auto& [block, scope, position, region] = read;
  const Tree& tree = *block.tree;
  const Ref<Buffer>& buffer = region->buffer;
  TW_TRY(element, selected_element(block, buffer, "reverse_cache_read/P4"));
  TW_TRY(place, location_of_copy(state, block, scope, buffer));
  TW_TRY(axes, selected_cache(block, buffer, element, cache.storage_scope, cache.dim_order, "reverse_cache_read/P5"));
  const int outside = tree[place.near].parent;
  if (!analysis::is_unconditional(tree, outside, block.at)) {
    return refuse("reverse_cache_read/P7", describe(block) + " runs on a condition", block,
                  "take the copy before its loops are put under a condition");
  }
  const bool is_said = element.guard.defined() && is_said_by(block, element.guard, axes.axes);
  if (is_said) {
    axes.guard = element.guard;
  } else {
    TW_RETURN_IF_ERROR(check_inside(block, axes.old_indices, buffer, "reverse_cache_read/P6"));
  }
  axes.condition =
      written_condition(tree, outside, block.at, buffer, {block.at}, box_of_axes(block.block(), axes.old_indices));
  if (!axes.condition.defined()) return refuse_unwritten(block, buffer, "reverse_cache_read/P6");
  TW_TRY(runs, has_instances(block, outside, axes, "reverse_cache_read/P7"));
  axes.condition = logical_and(axes.condition, runs);
  Ref<Block> copy_block;
  TW_TRY(nest, axis_copy_nest(block, outside, axes, true, "reverse_cache_read/P7", &copy_block));
  TreeEdit edit(tree);
  place.after ? edit.insert_after(place.near, nest) : edit.insert_before(place.near, nest);
  edit.change_block(scope, [&](Block& outer) { outer.alloc_buffers.push_back(axes.cache); });
  edit.change_realize(block.at, [&](BlockRealize& realize) {
    const Ref<Block> moved = at_element(realize.block, buffer, axes.cache, axes.new_indices);
    realize.block = with_found_reads(*moved, moved.span());
  });
  Plan plan = give_loops(block.func, with_regions_around(*block.tree, edit.finish(), copy_block->id.value), {});
  const Tree& after = Tree::of(plan.root);
  const int copier = after.block(copy_block->id.value);
  if (auto obstacle = analysis::why_inputs_incomplete(after, copier)) {
    return refuse("reverse_cache_read/P6", *obstacle,
                  "cache before the loops of the writer and the reader are changed");
  }
  TW_RETURN_IF_ERROR(recheck_execution(after, copier, "reverse_cache_read/P6"));
  plan.outputs.push_back(Handle::block(block.func, *copy_block));
  plan.recorded = recorded_with(cache, &ReverseCacheRead::read_buffer_index, position);
  return plan;
}

}  // namespace tilewright::schedule
