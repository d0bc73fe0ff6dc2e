// Give the threads of a parallel loop chunks of equal work, which a buffer of offsets states.
//
//   Before                                    After  sch.balance(i, B, "P")
//   for i in T.parallel(8):                   for i in T.parallel(8, annotations={"balanced_by": [P.data, 9]}):
//     with T.block("B"):                        with T.block("B"):
//       vi = T.axis.spatial(8, i)                 vi = T.axis.spatial(8, i)
//       B[vi] = P[vi + 1] - P[vi]                 B[vi] = P[vi + 1] - P[vi]
//
// The chunks are made where the loop is compiled (codegen/llvm/emit_parallel.cc).
//
// Requires  P1 the loop is parallel, begins at 0, and has no annotation of that kind; the block stands below it
//           P2 the block reads the buffer, which holds int32 or int64 without strides, in one dimension
//           P3 the buffer has one element more than the loop has iterations
//           P4 nothing below the loop writes the buffer
#include "schedule/primitives/balance.h"

#include "ir/annotations.h"
#include "ir/build.h"
#include "schedule/annotations.h"
#include "schedule/cache.h"

namespace tilewright::schedule {

Result<Plan> plan(const State& state, const Balance& balance) {
  TW_TRY(place, state.find(balance.loop));
  TW_TRY(block, state.find(balance.block));
  const Tree& tree = *place.tree;
  const For& loop = place.loop();
  if (loop.kind != ForKind::kParallel || !is_const_int(loop.min, 0) || loop.annotations.has(kBalancedBy)) {
    return refuse("balance/P1",
                  describe(place) + (loop.annotations.has(kBalancedBy) ? " is balanced already"
                                                                       : " is not a parallel loop that begins at 0"),
                  place, "take a loop that parallel() was applied to, once");
  }
  if (place.func != block.func || !tree.contains(place.at, block.at)) {
    return refuse("balance/P1", describe(block) + " does not stand below " + describe(place),
                  {place.node(), block.node()}, "take a block below the loop");
  }
  TW_TRY(position, buffer_position(balance.read_buffer_index, block.block().reads, block, "read", "balance/P2"));
  const Ref<Buffer>& buffer = block.block().reads[position]->buffer;
  const DataType type = buffer->dtype;
  const bool is_index = type.is_int() && type.is_scalar() && type.bits >= 32;
  const bool is_compact = !buffer->elem_offset.defined() || is_const_int(buffer->elem_offset, 0);
  if (!is_index || buffer->shape.size() != 1 || !buffer->strides.empty() || !is_compact) {
    return refuse(
        "balance/P2",
        "'" + buffer->name + "' is not a buffer of int32 or int64 in one dimension, without strides or offset", block,
        "pass a one-dimensional compact array of offsets");
  }
  auto analyzer = analysis::analyzer_above(tree, place.at);
  if (!analyzer.can_prove_equal(buffer->shape[0], loop.extent + 1)) {
    return refuse("balance/P3",
                  "'" + buffer->name + "' has " + brief(buffer->shape[0]) + " elements for " + describe(place), place,
                  "offsets are one more than there are iterations");
  }
  for (int at : tree.blocks()) {
    if (!tree.contains(place.at, at) || !tree.touches(tree.block_at(at).writes, buffer)) continue;
    return refuse("balance/P4", describe_block(tree.block_at(at)) + " below the loop writes '" + buffer->name + "'",
                  {tree.stmt(at)}, "take offsets that are only read");
  }
  Annotations annotations = loop.annotations;
  annotations.set(kBalancedBy, make<List>({{buffer->data, buffer->shape[0]}}));
  Plan plan = give_loops(place.func, with_annotations(place, std::move(annotations)), {});
  plan.recorded = recorded_with(balance, &Balance::read_buffer_index, position);
  return plan;
}

}  // namespace tilewright::schedule
