// Put the expression that a block stores in place of every load of it, and drop the block.
//
//   Before                                    After  sch.compute_inline(B)
//   B = T.alloc_buffer((16,))                 for x in range(16):
//   for i in range(16):                         with T.block("C"):
//     with T.block("B"):                          vi = T.axis.spatial(16, x)
//       vi = T.axis.spatial(16, i)                C[vi] = (A[vi] + 1.0) * 2.0
//       B[vi] = A[vi] + 1.0
//   for x in range(16):
//     with T.block("C"):
//       vi = T.axis.spatial(16, x)
//       C[vi] = B[vi] * 2.0
//
// Requires  P1 the block is one plain assignment, complete
//           P2 its buffer is allocated in the scope, and no other block writes it
//           P3 the indices of the store determine the axes: each is one, or they are one to one, such as vi * 8 + vj
//           P4 its consumers read the buffer by loads only; without any it is dropped, unless nothing else is left
//           P5 what it reads is complete where it stands and where its consumers stand, or has been left alone by then
//           P6 the consumers read only what it has written
//           P7 where a consumer takes it as an index, what it computes of data stays in its type
//           P9 parallel loops around them stay independent
#include "schedule/primitives/compute_inline.h"

#include <functional>

#include "analysis/binding_reads.h"
#include "analysis/block_access_region.h"
#include "analysis/block_facts.h"
#include "ir/build.h"
#include "ir/traverse.h"
#include "schedule/buffers.h"
#include "schedule/edit.h"
#include "schedule/inline.h"
#include "schedule/relocate.h"
#include "support/ranges.h"

namespace tilewright::schedule {
namespace {

using AxesOfElement = std::function<VarMap(const std::vector<Expr>&)>;

/// The axes of the instance that writes an element of the buffer; null where its indices do not determine them.
AxesOfElement axes_of_element(const Block& producer, const std::vector<Expr>& indices) {
  if (auto axes = axes_by_dimension(producer, indices)) {
    return [&producer, axes = *axes](const std::vector<Expr>& element) { return bind_axes(producer, axes, element); };
  }
  arith::Analyzer analyzer;
  auto back = invert_access(producer, indices, analyzer);
  if (!back || !is_const_int(back->padding, 0)) return nullptr;
  return [&producer, back = *back](const std::vector<Expr>& element) {
    arith::Analyzer analyzer;
    return axes_at(producer, back, element, analyzer);
  };
}

/// Maps the axes of the only consumer to those of the producer, if the consumer loads the buffer at its plain axes
/// only, and these have the names of the axes that the producer stores to. Then the producer's value is reused instead
/// of rebuilt, which would take quadratic time in a chain of such blocks. Empty otherwise.
VarMap axes_taken_over(const Block& consumer, const Assignment& assignment, const Block& producer) {
  const auto& plain = analysis::PlainBlock::of(consumer);
  if (!plain || plain->init) return {};
  auto is_axis_of = [](const Block& block, const Expr& e) {
    return any_of(block.iter_vars, [&](const auto& axis) { return axis->var == e; });
  };
  VarMap taken;
  for (const BufferLoad* load : plain->body.loads) {
    if (load->buffer != assignment.buffer) continue;
    for (size_t d : indices_of(load->indices)) {
      const Expr &from = load->indices[d], &to = assignment.store->indices[d];
      if (!is_axis_of(consumer, from) || !is_axis_of(producer, to) || from.dtype() != to.dtype()) return {};
      if (from.as<Var>()->name_hint != to.as<Var>()->name_hint) return {};
      if (taken.emplace(from, to).first->second != to) return {};
    }
  }
  return taken.size() == producer.iter_vars.size() ? taken : VarMap{};
}

/// The consumer with loads replaced; null if it uses the buffer in another way. `store`: what is known of the store,
/// whose value stays as it is where axes are taken over.
Ref<Block> inlined(const Ref<Block>& consumer, const Assignment& assignment, const AxesOfElement& axes,
                   const VarMap& taken, const analysis::PlainStore* store) {
  bool good = !takes_address(consumer, assignment.buffer);
  Ref<Block> after = rewrite(
      consumer, [&](const Ref<Var>& v, Rewriter&) -> Expr { return find_value_or(taken, v, v); },
      [&](const Ref<BufferLoad>& old, Rewriter& walk) -> Expr {
        Ref<BufferLoad> load = walk.descend(old);
        if (load->buffer != assignment.buffer) return load;
        good &= !load->predicate.defined() && load.dtype() == assignment.buffer->dtype;
        if (!good) return load;
        if (!taken.empty()) return assignment.store->value;
        return substitute(assignment.store->value, axes(load->indices));
      },
      [&](const Ref<MatchBufferRegion>& match, Rewriter& walk) -> NodeRef {
        good &= match->source->buffer != assignment.buffer;
        return walk.descend(match);
      },
      [&](const Ref<Prefetch>& prefetch, Rewriter& walk) -> Stmt {
        good &= prefetch->region->buffer != assignment.buffer;
        return walk.descend(prefetch);
      },
      [&](const Ref<Block>& block, Rewriter& walk) -> Stmt {
        // Regions that nested blocks declare would have to follow; a block without nested ones is found anew below.
        if (block->id.value != consumer->id.value) {
          for (const Ref<BufferRegion>& read : block->reads) good &= read->buffer != assignment.buffer;
        }
        return walk.descend(block);
      });
  return good ? with_found_reads(*after, consumer.span(), taken.empty() ? nullptr : store) : Ref<Block>();
}

/// Replaces the loads in a binding or the predicate of the consumer. Clears `plain` if a load cannot be replaced.
Expr in_binding(const Expr& e, const Assignment& assignment, const AxesOfElement& axes, bool& plain) {
  return rewrite(e, [&](const Ref<BufferLoad>& old, Rewriter& walk) -> Expr {
    Ref<BufferLoad> load = walk.descend(old);
    if (load->buffer != assignment.buffer) return load;
    plain &= !load->predicate.defined() && load.dtype() == assignment.buffer->dtype;
    return plain ? substitute(assignment.store->value, axes(load->indices)) : Expr(load);
  });
}

/// Something else in the scope than the block itself uses the buffer.
bool uses_buffer(const Ref<Block>& scope, const Block& self, const Ref<Buffer>& buffer) {
  bool is_used = analysis::reaches_by_pointer(scope, buffer);
  visit(
      scope,
      [&](const Ref<Block>& block, Visitor& walk) {
        if (block->id.value != self.id.value) walk.descend(block);
      },
      on<BufferLoad, BufferStore, BufferRegion>([&](const auto& access) { is_used |= access->buffer == buffer; }));
  return is_used;
}

Status check_producer(const Place& block, const analysis::Scope& scope, int self, const Assignment& assignment) {
  const Tree& tree = *block.tree;
  if (scope.is_output(self)) {
    return refuse(
        "compute_inline/P2",
        describe(block) + " is an output block: '" + assignment.buffer->name + "' is not allocated in the scope", block,
        "an output stays; reverse_compute_inline() takes the block into the one before");
  }
  TW_RETURN_IF_ERROR(check_only_writer(block, scope, self, "compute_inline/P2"));
  if (scope.consumers(self).empty()) {
    bool only = scope.children().size() == 1 && !scope.bare_statement();
    if (!only && !uses_buffer(tree.block_ref(tree[block.at].scope), block.block(), assignment.buffer)) return Ok{};
    return refuse("compute_inline/P4",
                  describe(block) + " has no consumers, and " +
                      (only ? "is all that there is" : "its buffer is used outside of blocks"),
                  block, "name a block whose result others read");
  }
  if (auto obstacle = why_inputs_change(tree, block.at))
    return refuse("compute_inline/P5", *obstacle,
                  "inline before the loops of its consumers are changed, or inline those that stand between first");
  for (int child : scope.consumers(self)) {
    int consumer = scope.position(tree, child);
    if (auto obstacle = analysis::why_not_covered(tree, block.at, consumer, assignment.buffer)) {
      return refuse("compute_inline/P6", *obstacle, "inline what is written once, before any of its readers");
    }
    TW_RETURN_IF_ERROR(check_wraps_nowhere(block, assignment, consumer, "compute_inline/P7"));
  }
  return Ok{};
}

}  // namespace

Result<Plan> plan(const State& state, const ComputeInline& compute) {
  TW_TRY(block, state.find(compute.block));
  const Tree& tree = *block.tree;
  int scope_at = tree[block.at].scope;
  TW_TRY(assignment, assignment_of(block, "compute_inline/P1"));
  const analysis::Scope& scope = analysis::Scope::of(tree, scope_at);
  int self = scope.child(block.block().id.value);
  TW_RETURN_IF_ERROR(check_producer(block, scope, self, assignment));
  AxesOfElement axes = axes_of_element(block.block(), assignment.store->indices);
  if (!axes) {
    return refuse(
        "compute_inline/P3",
        describe(block) + " stores to '" + assignment.buffer->name + "' at indices that do not determine its axes",
        block, "the axes of the block have to follow from where it stores: C[vi, vj], C[vi * 4 + vj]");
  }
  TreeEdit edit(tree);
  edit.remove(block.at);
  const std::vector<int> consumers = scope.consumers(self);
  const auto& plain = analysis::PlainBlock::of(block.block());
  for (int child : consumers) {
    int consumer = scope.position(tree, child);
    VarMap taken;
    if (consumers.size() == 1) taken = axes_taken_over(tree.block_at(consumer), assignment, block.block());
    Ref<Block> after = inlined(tree.block_ref(consumer), assignment, axes, taken, plain ? &plain->body : nullptr);
    BlockRealize realize = *tree.realize_at(consumer);
    bool plain_reads = true;
    auto inline_into = [&](const Expr& e) { return in_binding(e, assignment, axes, plain_reads); };
    if (analysis::binding_reads(realize, assignment.buffer)) {
      for (Expr& value : realize.iter_values) value = inline_into(value);
      realize.predicate = inline_into(realize.predicate);
    }
    if (!after.defined() || !plain_reads) {
      return refuse(
          "compute_inline/P4",
          describe_block(tree.block_at(consumer)) + " uses '" + assignment.buffer->name + "' other than by plain loads",
          {tree.stmt(consumer), block.node()},
          "blocks that use its pointer, or a view of it, need the buffer itself: leave this one in memory");
    }
    realize.block = after;
    edit.replace(consumer, make(std::move(realize), tree[consumer].node->span));
  }
  edit.change_block(scope_at, [&](Block& outer) {
    std::erase_if(outer.alloc_buffers, [&](const Ref<Buffer>& own) { return own == assignment.buffer; });
  });
  Plan plan = give_loops(block.func, edit.finish(), {});
  const Tree& after = Tree::of(plan.root);
  for (int child : consumers) {
    int consumer = scope.position(after, child);
    if (auto obstacle = why_inputs_change(after, consumer))
      return refuse("compute_inline/P5", *obstacle, "inline before the loops of the two blocks are changed");
    TW_RETURN_IF_ERROR(recheck_execution(after, consumer, "compute_inline/P9"));
  }
  return plan;
}

}  // namespace tilewright::schedule
