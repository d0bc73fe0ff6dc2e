// Initialize a sum with the operand of a later addition.
//
//   Before                                    After  sch.fuse_reduction_epilogue(C, D)
//   C = T.alloc_buffer((16,))                 for i, k in T.grid(16, 32):
//   for i, k in T.grid(16, 32):                 with T.block("C"):
//     with T.block("C"):                          vi, vk = T.axis.remap("SR", [i, k])
//       vi, vk = T.axis.remap("SR", [i, k])       T.reads(E[vi], A[vi, vk])
//       with T.init():                            T.writes(D[vi])
//         C[vi] = 0.0                             with T.init():
//       C[vi] = C[vi] + A[vi, vk]                   D[vi] = E[vi]
//   for i in range(16):                           D[vi] = D[vi] + A[vi, vk]
//     with T.block("D"):
//       vi = T.axis.spatial(16, i)
//       D[vi] = C[vi] + E[vi]
//
// Requires  P1 the first block is a sum that begins with 0, into a buffer that is allocated in the scope and written by
//              nobody else
//           P2 the second one is the only one that reads it; it is one plain assignment of that element, read at its
//              axes, plus something else, of the same type
//           P3 both are in one scope
//           P4 no other block writes what the second one writes, none before reads it
//           P5 what is added is complete where the sum begins
//           P6 the same is written as before, and those who read it see it complete
//           P7 parallel loops around the sum stay independent

#include "schedule/primitives/fuse_reduction_epilogue.h"
#include "analysis/block_facts.h"
#include "analysis/reducer.h"
#include "ir/build.h"
#include "ir/structural.h"
#include "ir/traverse.h"
#include "schedule/cache.h"
#include "schedule/edit.h"
#include "schedule/inline.h"
#include "schedule/relocate.h"
#include "support/ranges.h"

namespace tilewright::schedule {
namespace {

Result<analysis::Reducer> find_sum(const Place& block, const analysis::Scope& scope, int self) {
  const auto& facts = analysis::BlockFacts::of(block.tree->block_ref(block.at));
  std::string why = "it is not a reduction block";
  if (facts.role == analysis::BlockRole::kReduction) {
    analysis::FoundReducer found = analysis::find_reducer(block.block());
    if (found.reducer && found.reducer->is_sum()) {
      bool local = !scope.is_output(self) && scope.writers(found.reducer->buffers[0]).size() == 1;
      if (local) return std::move(*found.reducer);
      why = "'" + found.reducer->buffers[0]->name + "' is written by others too, or seen outside of the scope";
    } else {
      why = found.reducer ? "it is not a sum" : found.why_not;
    }
  }
  return refuse("fuse_reduction_epilogue/P1", describe(block) + " cannot take an addend: " + why, block,
                "take a block with T.init() of 0 that adds up");
}

struct Epilogue {
  Assignment assignment;
  const BufferLoad* element;  ///< load of the sum's element
  Expr addend;
};

Result<Epilogue> find_addend(const Place& block, const Ref<Buffer>& sum) {
  TW_TRY(assignment, assignment_of(block, "fuse_reduction_epilogue/P2"));
  auto element_of = [&](const Expr& e) {
    const BufferLoad* load = e.as<BufferLoad>();
    return load && load->buffer == sum && !load->predicate.defined() ? load : nullptr;
  };
  Epilogue epilogue{assignment, nullptr, {}};
  if (const Add* add = assignment.store->value.as<Add>()) {
    bool left = element_of(add->a) != nullptr;
    epilogue.element = element_of(left ? add->a : add->b);
    epilogue.addend = left ? add->b : add->a;
  }
  const bool again = epilogue.element && any_node(epilogue.addend, [&](const Ref<BufferLoad>& load) {
                       return load->buffer->data == sum->data || load->buffer->data == assignment.buffer->data;
                     });
  if (!epilogue.element || again || assignment.buffer->dtype != sum->dtype) {
    return refuse("fuse_reduction_epilogue/P2",
                  describe(block) + " does not store '" + sum->name + "' plus something else of the same type", block,
                  "only addends can move into the init: (sum + x), not max(sum + x, 0) or sum * x");
  }
  return epilogue;
}

/// The sum into the buffer of the epilogue, whose axes are `map` in terms of those of the sum.
Ref<Block> fused(const Place& reduction, const Place& epilogue, const analysis::Reducer& sum, const Epilogue& found,
                 const VarMap& map) {
  Block block = reduction.block();
  const Ref<Buffer>& buffer = found.assignment.buffer;
  std::vector<Expr> indices;
  for (const Expr& index : found.assignment.store->indices) indices.push_back(substitute(index, map));
  block.init = store(buffer, substitute(found.addend, map), indices);
  block.body = analysis::combine_into(sum, {buffer}, indices, sum.operands);
  block.writes.clear();
  block.reads.clear();
  for (const Ref<BufferRegion>& write : epilogue.block().writes) block.writes.push_back(substitute(write, map));
  for (const Ref<BufferRegion>& read : epilogue.block().reads) {
    if (read->buffer != sum.buffers[0]) block.reads.push_back(substitute(read, map));
  }
  for (const Ref<BufferRegion>& read : reduction.block().reads) {
    bool known = any_of(block.reads, [&](const Ref<BufferRegion>& other) { return structural_equal(other, read); });
    if (read->buffer != sum.buffers[0] && !known) block.reads.push_back(read);
  }
  return make(std::move(block), reduction.node().span());
}

/// The sum has no instance for which the epilogue had none: an init cannot leave elements out.
Status check_instances(const Place& reduction, const Place& epilogue, const VarMap& map) {
  TW_TRY(instances, known_instances(epilogue, "fuse_reduction_epilogue/P6"));
  const BlockRealize& realize = *reduction.tree->realize_at(reduction.at);
  auto analyzer = analysis::analyzer_above(*reduction.tree, (*reduction.tree)[reduction.at].parent);
  analysis::assume_all(realize.predicate, analyzer);
  VarMap bound;
  for (size_t i : indices_of(realize.iter_values)) bound[realize.block->iter_vars[i]->var] = realize.iter_values[i];
  for (size_t i : indices_of(instances)) {
    const Expr value = substitute(map.at(epilogue.block().iter_vars[i]->var), bound);
    if (analyzer.can_prove(le(instances[i].min, value)) && analyzer.can_prove(le(value, instances[i].max))) continue;
    return refuse("fuse_reduction_epilogue/P6",
                  describe(epilogue) + " may skip elements of the sum: its axis '" +
                      epilogue.block().iter_vars[i]->var->name_hint + "' runs from " +
                      analysis::brief(instances[i].min) + " to " + analysis::brief(instances[i].max),
                  {reduction.node(), epilogue.node()}, "let the epilogue run for all elements of the sum");
  }
  return Ok{};
}

}  // namespace

Result<Plan> plan(const State& state, const FuseReductionEpilogue& fuse) {
  TW_TRY(reduction, state.find(fuse.reduction_block));
  TW_TRY(epilogue, state.find(fuse.epilogue_block));
  const Tree& tree = *reduction.tree;
  int scope_at = tree[reduction.at].scope;
  if (reduction.func != epilogue.func || scope_at == Tree::kNone || tree[epilogue.at].scope != scope_at) {
    return refuse("fuse_reduction_epilogue/P3",
                  describe(reduction) + " and " + describe(epilogue) + " are not in the same block scope",
                  {reduction.node(), epilogue.node()},
                  "both stand directly in one block; fuse before one of them is moved into another");
  }
  const analysis::Scope& scope = analysis::Scope::of(tree, scope_at);
  int self = scope.child(reduction.block().id.value), other = scope.child(epilogue.block().id.value);
  TW_TRY(sum, find_sum(reduction, scope, self));
  const Ref<Buffer>& partial = sum.buffers[0];
  TW_TRY(found, find_addend(epilogue, partial));
  if (scope.readers(partial) != std::vector<int>{other} || other_name(tree, scope_at, partial).defined()) {
    return refuse("fuse_reduction_epilogue/P2",
                  describe(epilogue) + " is not the only block that reads '" + partial->name + "'",
                  {reduction.node(), epilogue.node()}, "give other readers a copy of their own (cache_read) before");
  }
  auto axes = axes_by_dimension(epilogue.block(), found.element->indices);
  if (!axes) {
    return refuse("fuse_reduction_epilogue/P2",
                  describe(epilogue) + " reads '" + partial->name + "' at other indices than its axes", epilogue,
                  "the epilogue has to read the sum at its own axes: D[vi, vj] = C[vi, vj] + ...");
  }
  TW_RETURN_IF_ERROR(check_only_writer(epilogue, scope, other, "fuse_reduction_epilogue/P4"));
  if (auto obstacle = analysis::why_inputs_incomplete(tree, epilogue.at)) {
    return refuse("fuse_reduction_epilogue/P5", *obstacle, "fuse before the loops of the two blocks are changed");
  }
  VarMap map = bind_axes(epilogue.block(), *axes, sum.indices);
  TW_RETURN_IF_ERROR(check_instances(reduction, epilogue, map));
  TreeEdit edit(tree);
  BlockRealize realize = *tree.realize_at(reduction.at);
  realize.block = fused(reduction, epilogue, sum, found, map);
  edit.replace(reduction.at, make(std::move(realize), reduction.node().span()));
  edit.remove(epilogue.at);
  edit.change_block(scope_at, [&](Block& outer) {
    std::erase_if(outer.alloc_buffers, [&](const Ref<Buffer>& own) { return own == partial; });
  });
  Plan plan = give_loops(reduction.func, edit.finish(), {});
  const Tree& after = Tree::of(plan.root);
  int at = after.block(reduction.block().id.value);
  const auto& facts = analysis::BlockFacts::of(after.block_ref(at));
  if (facts.role != analysis::BlockRole::kReduction) {
    return refuse("fuse_reduction_epilogue/P6", "the block would be no reduction: " + facts.why, reduction,
                  "fuse before the reduction is changed");
  }
  std::vector<int> loops = after.loops_above(at);
  int from = loops.empty() ? after[at].parent : after[loops.front()].parent;
  if (auto obstacle = analysis::why_irregular_reduction(after, from, at)) {
    return refuse("fuse_reduction_epilogue/P6", *obstacle, "fuse before the loops of the reduction are changed");
  }
  if (auto obstacle = analysis::why_inputs_incomplete(after, at)) {
    return refuse("fuse_reduction_epilogue/P5", *obstacle, "fuse before the loops of the two blocks are changed");
  }
  TW_RETURN_IF_ERROR(check_same_outputs(tree, epilogue.at, after, at, "fuse_reduction_epilogue/P6"));
  for (int child : scope.consumers(other)) {
    int consumer = scope.position(after, child);
    if (auto obstacle = analysis::why_not_covered(after, at, consumer, found.assignment.buffer)) {
      return refuse("fuse_reduction_epilogue/P6", *obstacle, "fuse before the loops of the two blocks are changed");
    }
  }
  TW_RETURN_IF_ERROR(recheck_execution(after, at, "fuse_reduction_epilogue/P7"));
  return plan;
}

}  // namespace tilewright::schedule
