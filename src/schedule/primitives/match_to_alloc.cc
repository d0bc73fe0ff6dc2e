// Replace an intermediate parameter by an allocated buffer.
//
//   Before                                After  sch.match_to_alloc(B, 0)
//   for i in range(16):                   B_tmp = T.alloc_buffer((16,))
//     with T.block("B"):                  for i in range(16):
//       vi = T.axis.spatial(16, i)          with T.block("B"):
//       B[vi] = A[vi] + 1.0                   vi = T.axis.spatial(16, i)
//   for i in range(16):                       B_tmp[vi] = A[vi] + 1.0
//     with T.block("C"):                  for i in range(16):
//       vi = T.axis.spatial(16, i)          with T.block("C"):
//       C[vi] = B[vi] * 2.0                   vi = T.axis.spatial(16, i)
//                                             C[vi] = B_tmp[vi] * 2.0
//
// Requires  P1 the block writes the buffer
//           P2 the buffer is a parameter, and no size of the program is a stride or an offset of it
//           P3 blocks, and nothing else, touch it; what they read of it has been written before
#include "schedule/primitives/match_to_alloc.h"

#include <algorithm>

#include "analysis/cover.h"
#include "analysis/scope.h"
#include "ir/build.h"
#include "ir/traverse.h"
#include "schedule/buffers.h"
#include "schedule/cache.h"

namespace tilewright::schedule {
namespace {

/// The root with another buffer in the place of one, which it allocates.
Ref<Block> with_own(const Ref<Block>& root, const Ref<Buffer>& buffer, const Ref<Buffer>& own) {
  Ref<Block> changed = rewrite(
      root, [&](const Ref<Var>& v, Rewriter&) -> Expr { return v == buffer->data ? Expr(own->data) : Expr(v); },
      [&](const Ref<Buffer>& old, Rewriter& walk) -> NodeRef {
        return old == buffer ? NodeRef(own) : NodeRef(walk.descend(old));
      });
  Block outer = *changed;
  outer.alloc_buffers.emplace_back(own);
  return make(std::move(outer), root.span());
}

}  // namespace

Result<Plan> plan(const State& state, const MatchToAlloc& step) {
  TW_TRY(block, state.find(step.block));
  TW_TRY(position, buffer_position(step.buffer_index, block.block().writes, block, "write", "match_to_alloc/P1"));
  const Ref<Buffer>& buffer = block.block().writes[position]->buffer;
  if (!is_parameter(state, block.func, buffer) || !buffer->strides.empty()) {
    return refuse("match_to_alloc/P2", "'" + buffer->name + "' is no parameter, or has strides of its own", block,
                  "name a write to a parameter; what the function allocates stays in it anyway");
  }
  const Tree& tree = *block.tree;
  const analysis::Scope& before = analysis::Scope::of(tree, 0);
  for (const Ref<BufferRegion>& write : block.block().writes) {
    if (write->buffer != buffer || !before.bare_statement()) continue;
    return refuse("match_to_alloc/P3", "a statement outside of blocks may touch '" + buffer->name + "'",
                  {block.node(), NodeRef(before.bare_statement())}, "put it into a block");
  }
  const Ref<Buffer> own = decl_buffer(buffer->shape, buffer->dtype, buffer->name + "_tmp", buffer->scope());
  Plan plan;
  plan.func = block.func;
  plan.root = with_own(tree.block_ref(0), buffer, own);
  const Tree& after = Tree::of(plan.root);
  const analysis::Scope& scope = analysis::Scope::of(after, 0);
  auto block_of = [&](int child) { return scope.position(after, child); };
  for (int reader : scope.readers(own)) {
    std::optional<analysis::Obstacle> obstacle;
    bool is_written = false;
    for (int writer : scope.writers(own)) {
      if (is_written || writer >= reader) continue;
      obstacle = analysis::why_not_covered(after, block_of(writer), block_of(reader), own);
      is_written = !obstacle;
    }
    if (is_written) continue;
    const std::string what = describe_block(after.block_at(block_of(reader))) + " reads '" + buffer->name + "' ";
    return refuse("match_to_alloc/P3",
                  what + (obstacle ? "where it may not have been written: " + obstacle->why
                                   : std::string("before anything has been written")),
                  {block.node(), after.stmt(block_of(reader))}, "let the function write all that it reads of it");
  }
  plan.recorded = recorded_with(step, &MatchToAlloc::buffer_index, position);
  return plan;
}

}  // namespace tilewright::schedule
