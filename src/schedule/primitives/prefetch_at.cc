// Ask for what later iterations of a loop will read, so that it is in the cache by then.
//
//   Before                                  After  sch.prefetch_at(i, B, 0, distance=2)
//   for i, j in T.grid(8, 16):              for i in range(8):
//     with T.block("B"):                      with T.block("A_prefetch"):
//       vi, vj = T.axis.remap("SS", [i, j])     v0 = T.axis.spatial(8, i + 2)
//       B[vi, vj] = A[vi, vj] + 1.0             T.where(i + 2 < 8)
//                                               T.reads(A[v0, 0:16])
//                                               T.writes()
//                                               T.prefetch(A[v0, 0:16])
//                                             for j in range(16):
//                                               with T.block("B"):
//                                                 vi, vj = T.axis.remap("SS", [i, j])
//                                                 B[vi, vj] = A[vi, vj] + 1.0
//
// Requires  P1 the loop is around the block, in its scope, with blocks and loops only below it; the read exists
//           P2 the distance is positive
//           P3 what is read moves with the loop
//           P4 nothing in the scope writes the buffer: the prefetched elements are there already
//           P5 what is read does not depend on a division by a size that may be 0, where nothing is read, nor on data
//              that the block reads on a condition only, or that the loop computes
#include "schedule/primitives/prefetch_at.h"

#include "analysis/may_fail.h"
#include "ir/build.h"
#include "ir/op.h"
#include "ir/substitute.h"
#include "schedule/region_copy.h"
#include "schedule/run_condition.h"
#include "support/ranges.h"

namespace tilewright::schedule {
namespace {

/// Near the end of the buffer, nothing may be left to fetch.
Expr not_empty(const RegionBlock& frame) {
  VarMap map;
  for (size_t i : indices_of(frame.axes)) map.emplace(frame.axes[i]->var, frame.values[i]);
  Expr result = bool_imm(true);
  for (const Ref<Range>& r : frame.region) {
    if (!const_int(r->extent)) result = logical_and(result, gt(substitute(r->extent, map), zero(r->extent.dtype())));
  }
  return result;
}

}  // namespace

Result<Plan> plan(const State& state, const PrefetchAt& prefetch) {
  TW_TRY(target, find_copy_loop(state, prefetch.loop, prefetch.block, "prefetch_at/P1"));
  const Tree& tree = *target.loop.tree;
  TW_TRY(position, buffer_position(prefetch.read_buffer_index, target.block.block().reads, target.block, "read",
                                   "prefetch_at/P1"));
  if (prefetch.distance < 1) {
    return refuse("prefetch_at/P2", "the distance is " + std::to_string(prefetch.distance) + ", not positive", {},
                  "1 is the next iteration");
  }
  const Ref<Buffer>& buffer = target.block.block().reads[position]->buffer;
  const For& loop = target.loop.loop();
  std::vector<int> reader{target.block.at};
  RegionBlock frame = region_block(target, region_below(target, reader, buffer, true, "local"), /*by_digits=*/false);
  size_t axis = 0;
  while (axis < frame.values.size() && frame.values[axis] != loop.loop_var) ++axis;
  if (axis == frame.values.size()) {
    return refuse("prefetch_at/P3",
                  "each iteration of " + describe(target.loop) + " reads the same of '" + buffer->name + "'",
                  {target.loop.node(), target.block.node()}, "take the loop that moves through the buffer");
  }
  if (!analysis::Scope::of(tree, target.scope).writers(buffer).empty() ||
      other_name(tree, target.scope, buffer).defined()) {
    return refuse("prefetch_at/P4", "in the scope of " + describe(target.block) + ", '" + buffer->name + "' is written",
                  target.block, "prefetch what is only read there");
  }
  auto analyzer = analysis::analyzer_above(tree, target.block.at);
  const BlockRealize& realize = *tree.realize_at(target.block.at);
  const bool always = is_true(realize.predicate) && !may_skip_read(realize.block->body);
  for (const Ref<Range>& r : frame.region) {
    if (!always && (effect_of(r->min) != Effect::kPure || effect_of(r->extent) != Effect::kPure)) {
      return refuse("prefetch_at/P5",
                    "where " + describe(target.block) + " reads '" + buffer->name +
                        "' depends on data that it reads on a condition only",
                    target.block, "prefetch what is read at indices that loops alone decide");
    }
    if (!analysis::may_divide_by_zero(r->min, analyzer) && !analysis::may_divide_by_zero(r->extent, analyzer)) continue;
    return refuse(
        "prefetch_at/P5",
        describe(target.block) + " reads '" + buffer->name + "' at indices that divide by a size that may be 0",
        target.block, "split by a constant instead");
  }
  Expr later = loop.loop_var + constant(loop.loop_var.dtype(), prefetch.distance);
  frame.values[axis] = later;
  Ref<Block> prefetch_block;
  TreeEdit edit = insert_prefetch(target, frame, buffer,
                                  logical_and(lt(later, loop.min + loop.extent), not_empty(frame)), &prefetch_block);
  Plan plan = give_loops(target.block.func, edit.finish(), {});
  // Data that select the elements may be computed in the iterations that read them, too late for a prefetch.
  auto obstacle =
      analysis::why_inputs_incomplete(Tree::of(plan.root), Tree::of(plan.root).block(prefetch_block->id.value));
  const analysis::Scope& scope = analysis::Scope::of(tree, target.scope);
  for (const Ref<BufferRegion>& read : prefetch_block->reads) {
    for (int child : scope.writers(read->buffer)) {
      const Ref<Block>& writer = scope.children()[child]->block;
      if (obstacle || tree.block(writer->id.value) < target.loop.at) continue;
      obstacle = analysis::Obstacle{
          describe_block(*writer) + " writes '" + read->buffer->name + "', which selects what is read, only then",
          {tree.stmt(tree.block(writer->id.value)), target.loop.node()}};
    }
  }
  if (obstacle) return refuse("prefetch_at/P5", *obstacle, "let the indices be computed before the loop");
  plan.outputs.push_back(Handle::block(target.block.func, *prefetch_block));
  plan.recorded = recorded_with(prefetch, &PrefetchAt::read_buffer_index, position);
  return plan;
}

}  // namespace tilewright::schedule
