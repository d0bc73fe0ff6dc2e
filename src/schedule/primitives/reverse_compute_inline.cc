// Put the only consumer of a block into it, and drop the consumer.
//
//   Before                                    After  sch.reverse_compute_inline(C)
//   B = T.alloc_buffer((16,))                 for i in range(16):
//   for i in range(16):                         with T.block("B"):
//     with T.block("B"):                          vi = T.axis.spatial(16, i)
//       vi = T.axis.spatial(16, i)                C[vi] = (A[vi] + 1.0) * 2.0
//       B[vi] = A[vi] + 1.0
//   for x in range(16):
//     with T.block("C"):
//       vi = T.axis.spatial(16, x)
//       C[vi] = B[vi] * 2.0
//
// Requires  P1 the block is one plain assignment, complete
//           P2 it has one producer, also one plain assignment, of a buffer that is allocated in the scope and that
//              nobody else reads or writes
//           P3 it reads that buffer at its axes, each once and always the same
//           P4 it is the only writer of its own buffer, and nothing before reads that
//           P5 all that it reads is complete where its producer stands
//           P6 the same is written as before
//           P9 parallel loops around the producer stay independent
#include "analysis/block_facts.h"
#include "ir/build.h"
#include "ir/structural.h"
#include "ir/traverse.h"
#include "schedule/edit.h"
#include "schedule/inline.h"
#include "schedule/relocate.h"

namespace tilewright::schedule {
namespace {

struct Pair {
  Place producer;
  Assignment inner, outer;  ///< of the producer and of the consumer
};

Result<Pair> find_pair(const Place& block, const analysis::Scope& scope, int self) {
  const Tree& tree = *block.tree;
  TW_TRY(outer, assignment_of(block, "reverse_compute_inline/P1"));
  std::vector<int> producers = scope.producers(self);
  if (producers.size() != 1) {
    return refuse("reverse_compute_inline/P2",
                  describe(block) + " has " + std::to_string(producers.size()) + " producers instead of one",
                  {block.node()});
  }
  Place producer{block.func, &tree, tree.block(scope.children()[producers[0]]->block->id.value)};
  auto inner = assignment_of(producer, "reverse_compute_inline/P1");
  if (!inner.ok()) {
    inner.error().code = "reverse_compute_inline/P2";
    return std::move(inner.error());
  }
  const Ref<Buffer>& buffer = inner->buffer;
  bool local = !scope.is_output(producers[0]) && scope.writers(buffer).size() == 1 && scope.readers(buffer).size() == 1;
  if (!local) {
    return refuse("reverse_compute_inline/P2",
                  "'" + buffer->name + "' is used by other blocks too, or outside of the scope",
                  {producer.node(), block.node()});
  }
  return Pair{producer, *inner, outer};
}

/// The indices at which the consumer loads the buffer, if they are always the same.
std::optional<std::vector<Expr>> load_indices(const BufferStore& store, const Ref<Buffer>& buffer) {
  std::optional<std::vector<Expr>> indices;
  bool same = true;
  visit(store.value, [&](const Ref<BufferLoad>& load) {
    if (load->buffer != buffer) return;
    same &= !load->predicate.defined();
    if (!indices) indices = load->indices;
    same &= std::equal(indices->begin(), indices->end(), load->indices.begin(), load->indices.end(), same_expr);
  });
  return same ? indices : std::nullopt;
}

}  // namespace

Result<Plan> plan(const State& state, const ReverseComputeInline& compute) {
  TW_TRY(block, state.find(compute.block));
  const Tree& tree = *block.tree;
  int scope_at = tree[block.at].scope;
  TW_RETURN_IF_ERROR(assignment_of(block, "reverse_compute_inline/P1"));
  const analysis::Scope& scope = analysis::Scope::of(tree.block_at(scope_at));
  int self = scope.child(block.block().id.value);
  TW_TRY(pair, find_pair(block, scope, self));
  TW_RETURN_IF_ERROR(check_only_writer(block, scope, self, "reverse_compute_inline/P4"));
  if (auto obstacle = analysis::why_inputs_incomplete(tree, block.at)) {
    return refuse("reverse_compute_inline/P5", *obstacle);
  }
  const Ref<Buffer>& buffer = pair.inner.buffer;
  auto indices = load_indices(*pair.outer.store, buffer);
  auto axes = indices ? axes_by_dimension(block.block(), *indices) : std::nullopt;
  if (!axes) {
    return refuse("reverse_compute_inline/P3",
                  describe(block) + " reads '" + buffer->name + "' at other indices than its axes", {block.node()});
  }
  // In terms of the producer's axes; what it stored becomes a value.
  VarMap map = bind_axes(block.block(), *axes, pair.inner.store->indices);
  BufferStore store = *pair.outer.store;
  for (Expr& index : store.indices) index = substitute(index, map);
  store.value = rewrite(substitute(store.value, map), [&](const Ref<BufferLoad>& load, Rewriter& walk) -> Expr {
    return load->buffer == buffer ? pair.inner.store->value : Expr(walk.descend(load));
  });
  Block merged = pair.producer.block();
  merged.body = make<BufferStore>(std::move(store), merged.body.span());
  merged.writes.clear();
  for (const Ref<BufferRegion>& write : block.block().writes) merged.writes.push_back(substitute(write, map));
  BlockRealize realize = *tree.realize_at(pair.producer.at);
  realize.block = with_found_reads(std::move(merged), pair.producer.node().span());
  uint64_t identity = realize.block->id.value;

  TreeEdit edit(tree);
  edit.remove(block.at);
  edit.replace(pair.producer.at, make<BlockRealize>(std::move(realize), pair.producer.node().span()));
  edit.change_block(scope_at, [&](Block& outer) {
    std::erase_if(outer.alloc_buffers, [&](const Ref<Buffer>& own) { return own == buffer; });
  });
  Plan plan = give_loops(block.func, edit.finish(), {});
  const Tree& after = Tree::of(plan.root);
  int at = after.block(identity);
  const auto& facts = analysis::BlockFacts::of(after.block_ref(at));
  if (facts.role != analysis::BlockRole::kComplete) {
    return refuse("reverse_compute_inline/P6", "the merged block would not be complete: " + facts.why,
                  {block.node(), pair.producer.node()});
  }
  if (auto obstacle = analysis::why_inputs_incomplete(after, at)) return refuse("reverse_compute_inline/P5", *obstacle);
  TW_RETURN_IF_ERROR(check_same_outputs(tree, block.at, after, at, "reverse_compute_inline/P6"));
  for (int child : scope.consumers(self)) {
    int consumer = after.block(scope.children()[child]->block->id.value);
    if (auto obstacle = analysis::why_not_covered(after, at, consumer, pair.outer.buffer)) {
      return refuse("reverse_compute_inline/P6", *obstacle);
    }
  }
  TW_RETURN_IF_ERROR(recheck_execution(after, at, "reverse_compute_inline/P9"));
  return plan;
}

}  // namespace tilewright::schedule
