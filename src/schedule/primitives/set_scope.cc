// Let a buffer live in another memory.
//
//   Before                                After  sch.set_scope(B, 0, "shared")
//   B = T.alloc_buffer((16,))             B_shared = T.alloc_buffer((16,), scope="shared")
//   for i in range(16):                   for i in range(16):
//     with T.block("B"):                    with T.block("B"):
//       vi = T.axis.spatial(16, i)            vi = T.axis.spatial(16, i)
//       B[vi] = A[vi] + 1.0                   B_shared[vi] = A[vi] + 1.0
//
// Requires  P1 the block writes the buffer
//           P2 the scope is a storage scope
//           P3 a block allocates the buffer, unless it is in that memory already
//           P4 threads that had the buffer together, or each for itself, see the same in the other memory
#include <algorithm>

#include "ir/build.h"
#include "ir/traverse.h"
#include "schedule/cache.h"
#include "schedule/primitives/set_scope.h"
#include "schedule/relocate.h"
#include "support/ranges.h"

namespace tilewright::schedule {
namespace {

Ref<Var> pointer_to(const std::string& scope, const Ref<Var>& data, std::string name) {
  Var moved = *data;
  const PointerType* type = moved.type_annotation.as<PointerType>();
  moved.name_hint = std::move(name);
  if (type) moved.type_annotation = make<PointerType>({type->element_type, scope});
  return make(std::move(moved), data.span());
}

/// The buffer and all views of it in the other memory.
Ref<Block> with_scope(const Ref<Block>& root, const Ref<Buffer>& buffer, const std::string& scope) {
  std::string name = buffer->name + "_" + scope;
  std::unordered_map<NodeRef, Ref<Var>> moved{{buffer->data, pointer_to(scope, buffer->data, name)}};
  visit(root, [&](const Ref<MatchBufferRegion>& match) {
    const Ref<Var>& view = match->buffer->data;
    if (moved.count(match->source->buffer->data)) moved.emplace(view, pointer_to(scope, view, view->name_hint));
  });
  return rewrite(
      root, [&](const Ref<Var>& v, Rewriter&) -> Expr { return find_value_or(moved, v, v); },
      [&](const Ref<Buffer>& old, Rewriter& walk) -> NodeRef {
        Ref<Buffer> inner = walk.descend(old);
        if (old != buffer) return inner;
        return with_field(inner, &Buffer::name, name);
      });
}

}  // namespace

Result<Plan> plan(const State& state, const SetScope& set) {
  TW_TRY(block, state.find(set.block));
  const Tree& tree = *block.tree;
  TW_TRY(position, buffer_position(set.buffer_index, block.block().writes, block, "write", "set_scope/P1"));
  TW_RETURN_IF_ERROR(require_memory_scope(set.storage_scope, block, "set_scope/P2"));
  const Ref<Buffer>& buffer = block.block().writes[position]->buffer;
  std::string scope = set.storage_scope.empty() ? "global" : set.storage_scope;
  const bool moves = scope != buffer->scope();
  if (moves && !is_allocated(tree, buffer)) {
    return refuse("set_scope/P3", "no block allocates '" + buffer->name + "': it is a parameter or a view", block,
                  "write a copy of it: sch.cache_write(..., storage_scope=\"" + set.storage_scope + "\")");
  }
  SetScope recorded = set;
  recorded.buffer_index = position;
  Plan plan;
  plan.func = block.func;
  if (moves) {
    plan.root = with_scope(tree.block_ref(0), buffer, scope);
    const Tree& after = Tree::of(plan.root);
    TW_RETURN_IF_ERROR(recheck_execution(after, after.block(block.block().id.value), "set_scope/P4"));
  }
  plan.recorded = std::move(recorded);
  return plan;
}

}  // namespace tilewright::schedule
