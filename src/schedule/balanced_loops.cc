#include "schedule/balanced_loops.h"

#include "ir/annotations.h"
#include "schedule/primitive.h"
#include "support/ranges.h"

namespace tilewright::schedule {
namespace {

/// The data variable of the offsets; null where the loop is not balanced.
Ref<Var> offsets_of(const For& loop) {
  const List* list = loop.annotations.get(kBalancedBy).as<List>();
  return list && !list->items.empty() && list->items[0].is<Var>() ? list->items[0].borrow<Var>() : Ref<Var>();
}

bool allocates(const Block& block, const Ref<Var>& data) {
  return any_of(block.alloc_buffers, [&](const Ref<Buffer>& own) { return own->data == data; });
}

/// Whether a block around the position allocates the memory.
bool is_allocated_around(const Tree& tree, int at, const Ref<Var>& data) {
  for (at = tree[at].scope; at != Tree::kNone; at = tree[at].scope) {
    if (allocates(tree.block_at(at), data)) return true;
  }
  return false;
}

}  // namespace

Status check_balanced_loops(const State& state, const Plan& plan) {
  if (!plan.root.defined()) return Ok{};
  const Tree& after = Tree::of(plan.root);
  for (int loop : after.concurrent_loops()) {
    const Ref<Var> data = offsets_of(after.for_at(loop));
    if (!data.defined()) continue;
    TW_TRY(before, state.tree(plan.func));
    auto writes = [&](int block) {
      return after.contains(loop, block) && any_of(after.block_at(block).writes, [&](const Ref<BufferRegion>& write) {
               return write->buffer->data == data;
             });
    };
    const bool is_own = any_of(before->blocks(), [&](int at) { return allocates(before->block_at(at), data); });
    const bool is_lost = is_own && !is_allocated_around(after, loop, data);
    if (!is_lost && none_of(after.blocks(), writes)) continue;
    return refuse("schedule/balanced-loop",
                  describe_loop(after.for_at(loop)) + " is balanced by '" + data->name_hint + "', which " +
                      (is_lost ? "would be gone" : "would be filled in the loop"),
                  {after.stmt(loop)}, "take this step before balance(), or unannotate() the loop");
  }
  return Ok{};
}

}  // namespace tilewright::schedule
