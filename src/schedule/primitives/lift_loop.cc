// Move a loop out of the block whose body it is.
//
//   Before                                After  sch.lift_loop(j)
//   for i in range(8):                    for i, j in T.grid(8, 4):
//     with T.block("B"):                    with T.block("B"):
//       vi = T.axis.spatial(8, i)             vi, vj = T.axis.remap("SS", [i, j])
//       for j in range(4):                    with T.block("C"):
//         with T.block("C"):                    vk = T.axis.spatial(4, vj)
//           vk = T.axis.spatial(4, j)           C[vi, vk] = A[vi, vk]
//           C[vi, vk] = A[vi, vk]
//
// Requires  P1 the loop is the whole body of a block other than the root, which has no init
//           P2 it is serial, without annotation or binding
//           P3 its iterations are independent, and stay so, as those of parallel loops around do: its axis is spatial
//           P4 each iteration has those buffers of its own that the block allocates
//           P5 its bounds are known where the block stands: they read no buffer where a condition says whether it runs
#include "schedule/primitives/lift_loop.h"

#include "analysis/allocation_locations.h"
#include "analysis/block_access_region.h"
#include "analysis/block_facts.h"
#include "analysis/independence.h"
#include "ir/build.h"
#include "ir/op.h"
#include "ir/substitute.h"
#include "schedule/edit.h"
#include "schedule/relocate.h"

namespace tilewright::schedule {
namespace {

Status check_place(const Place& loop, const Place& block) {
  const Tree& tree = *loop.tree;
  if (block.at == 0) {
    return refuse("lift_loop/P1", describe_in_nest(loop) + " stands in no block but the root", {loop.node()},
                  "name a loop inside of a block, such as 'spmm0' of an iteration 'spmm'");
  }
  if (tree.block_at(block.at).init.defined() || tree.children(block.at) != std::vector<int>{loop.at}) {
    return refuse("lift_loop/P1",
                  describe_in_nest(loop) + " is not the whole body of " + describe_block(tree.block_at(block.at)),
                  {loop.node(), block.node()},
                  "merge() it with the loops beside it, or move these away; decompose_reduction() moves an init");
  }
  return require_plain_loop(loop, "lift_loop/P2");
}

Status check_iterations(const Place& loop, const Place& block) {
  const Tree& tree = *loop.tree;
  analysis::Execution apart;
  apart.kind = ForKind::kParallel;
  if (auto dependent = analysis::why_dependent(tree, loop.at, apart)) {
    return refuse("lift_loop/P3", dependent->obstacle, "lift loops whose iterations do not depend on one another");
  }
  for (const Ref<Buffer>& buffer : tree.block_at(block.at).alloc_buffers) {
    if (analysis::is_private_to(tree, loop.at, buffer)) continue;
    return refuse("lift_loop/P4",
                  describe_block(tree.block_at(block.at)) + " allocates '" + buffer->name + "', which iterations of " +
                      describe_in_nest(loop) + " share",
                  {loop.node(), block.node()}, "lift the loop before the copy is made, or compute it in the loop");
  }
  return Ok{};
}

}  // namespace

Result<Plan> plan(const State& state, const LiftLoop& lift) {
  TW_TRY(loop, state.find(lift.loop));
  const Tree& tree = *loop.tree;
  const Place block{loop.func, loop.tree, tree[loop.at].scope};
  TW_RETURN_IF_ERROR(check_place(loop, block));
  TW_RETURN_IF_ERROR(check_iterations(loop, block));
  const For& lifted = tree.for_at(loop.at);
  const BlockRealize& realize = *tree.realize_at(block.at);
  VarMap bound;
  for (size_t i = 0; i < realize.iter_values.size(); ++i) {
    bound.emplace(realize.block->iter_vars[i]->var, realize.iter_values[i]);
  }
  const Expr min = substitute(lifted.min, bound), extent = substitute(lifted.extent, bound);
  const bool reads = effect_of(min) != Effect::kPure || effect_of(extent) != Effect::kPure;
  if (reads && !is_true(realize.predicate)) {
    return refuse("lift_loop/P5",
                  "the bounds of " + describe_in_nest(loop) + " are data, and a condition says whether " +
                      describe_block(*realize.block) + " runs",
                  {loop.node(), block.node()}, "lift the loop before the loops around the block are split");
  }
  const Ref<Var> axis = var("v" + lifted.loop_var->name_hint, lifted.loop_var.dtype());
  // A loop that begins where axes of the block say counts from 0 then: bounds that depend on one another say little.
  const bool counts = !const_int(min);
  Block inner = *realize.block;
  inner.iter_vars.push_back(make<IterVar>({.dom = counts ? range_of(extent) : range(min, extent),
                                           .var = axis,
                                           .iter_type = IterType::kDataPar,
                                           .thread_tag = ""}));
  inner.body = substitute(lifted.body, {{lifted.loop_var, counts ? axis + lifted.min : Expr(axis)}});
  analysis::BlockAccess access = analysis::block_access_region(make<Block>(Block(inner)));
  inner.reads = std::move(access.reads);
  inner.writes = std::move(access.writes);
  BlockRealize around = realize;
  around.iter_values.push_back(lifted.loop_var);
  around.block = make<Block>(std::move(inner), realize.block.span());
  For outer = lifted;
  outer.min = counts ? zero(min.dtype()) : min;
  outer.extent = extent;
  outer.body = make<BlockRealize>(std::move(around), tree.stmt(block.at).span());
  TreeEdit edit(tree);
  edit.replace(block.at, make<For>(std::move(outer), loop.node().span()));
  Plan plan = give_loops(loop.func, edit.finish(), {});
  const Tree& after = Tree::of(plan.root);
  const int moved = after.block(realize.block->id.value);
  const auto& facts = analysis::BlockFacts::of(after.block_ref(moved));
  if (facts.role != analysis::BlockFacts::of(realize.block).role) {
    return refuse("lift_loop/P3",
                  "with an axis for " + describe_in_nest(loop) + ", instances of " + describe_block(*realize.block) +
                      " would not be apart" + (facts.why.empty() ? "" : ": " + facts.why),
                  {loop.node(), block.node()}, "lift loops that select what the block writes");
  }
  TW_RETURN_IF_ERROR(recheck_execution(after, moved, "lift_loop/P3"));
  return plan;
}

}  // namespace tilewright::schedule
