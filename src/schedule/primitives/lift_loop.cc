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
//           P3 the loop carries no dependence, and with a spatial axis for it the block keeps its role, and the
//           parallel
//              loops around stay valid
//           P4 no buffer that the block allocates is shared by iterations
//           P5 if the block has a predicate, the loop's bounds read no buffer; the loop changes nothing that decides
//              where or whether the block runs, or where its views begin
#include "schedule/primitives/lift_loop.h"

#include "analysis/allocation_locations.h"
#include "analysis/binding_reads.h"
#include "analysis/block_access_region.h"
#include "analysis/block_facts.h"
#include "analysis/changes.h"
#include "analysis/independence.h"
#include "ir/build.h"
#include "ir/op.h"
#include "ir/substitute.h"
#include "schedule/edit.h"
#include "schedule/relocate.h"
#include "support/ranges.h"

namespace tilewright::schedule {
namespace {

Status check_location(const Place& loop, const Place& block) {
  const Tree& tree = *loop.tree;
  if (block.at == 0) {
    return refuse("lift_loop/P1", describe_in_nest(loop) + " stands in no block but the root", loop,
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

/// Refuses values that the loop may change: they are evaluated once per block now, and would be once per iteration.
Status check_values_unchanged(const Place& loop, const Place& block) {
  const Tree& tree = *loop.tree;
  Expr changing;
  auto look = [&](const Expr& value) {
    if (!changing.defined() && analysis::may_change(tree, tree.stmt(loop.at), value)) changing = value;
  };
  analysis::for_each_bound(*tree.realize_at(block.at), look);
  for (const Ref<MatchBufferRegion>& match : tree.block_at(block.at).match_buffers) {
    for (const Ref<Range>& range : match->source->region) {
      look(range->min);
      look(range->extent);
    }
  }
  if (!changing.defined()) return Ok{};
  return refuse("lift_loop/P5",
                describe_in_nest(loop) + " changes what " + brief(changing) + " reads, which " +
                    describe_block(tree.block_at(block.at)) + " evaluates once, before all iterations",
                {loop.node(), block.node()}, "copy the value to a buffer of its own before the block");
}

/// The loop outside of the block, where its bounds use values of the block's axes.
struct Lifted {
  Expr min, extent;
  bool from_zero;  ///< the new loop starts at 0; otherwise at `min`
};

Lifted lifted_bounds(const For& loop, const BlockRealize& realize) {
  VarMap axis_values;
  for (size_t i = 0; i < realize.iter_values.size(); ++i) {
    axis_values.emplace(realize.block->iter_vars[i]->var, realize.iter_values[i]);
  }
  Expr min = substitute(loop.min, axis_values);
  // A symbolic start becomes 0: interval analysis of [A[i], A[i + 1]) does not know the extent A[i + 1] - A[i].
  const bool from_zero = !const_int(min);
  return {std::move(min), substitute(loop.extent, axis_values), from_zero};
}

/// The block with an axis for the loop, and with the loop's body.
Block inner_block(const Block& block, const For& loop, const Lifted& lifted) {
  const Ref<Var> axis = var("v" + loop.loop_var->name_hint, loop.loop_var.dtype());
  Block inner = block;
  inner.iter_vars.push_back(
      make<IterVar>({.dom = lifted.from_zero ? range_of(lifted.extent) : range(lifted.min, lifted.extent),
                     .var = axis,
                     .iter_type = IterType::kDataPar,
                     .thread_tag = ""}));
  inner.body = substitute(loop.body, {{loop.loop_var, lifted.from_zero ? axis + loop.min : Expr(axis)}});
  analysis::BlockAccess access = analysis::block_access_region(make<Block>(Block(inner)));
  inner.reads = std::move(access.reads);
  inner.writes = std::move(access.writes);
  return inner;
}

For outer_loop(const For& loop, const Lifted& lifted, Stmt body) {
  For outer = loop;
  outer.min = lifted.from_zero ? zero(lifted.min.dtype()) : lifted.min;
  outer.extent = lifted.extent;
  outer.body = std::move(body);
  return outer;
}

}  // namespace

Result<Plan> plan(const State& state, const LiftLoop& lift) {
  TW_TRY(loop, state.find(lift.loop));
  const Tree& tree = *loop.tree;
  const Place block{loop.func, loop.tree, tree[loop.at].scope};
  TW_RETURN_IF_ERROR(check_location(loop, block));
  TW_RETURN_IF_ERROR(check_iterations(loop, block));
  TW_RETURN_IF_ERROR(check_values_unchanged(loop, block));
  const For& source = tree.for_at(loop.at);
  const BlockRealize& realize = *tree.realize_at(block.at);

  const Lifted lifted = lifted_bounds(source, realize);
  const bool reads = effect_of(lifted.min) != Effect::kPure || effect_of(lifted.extent) != Effect::kPure;
  if (reads && !is_true(realize.predicate)) {
    return refuse("lift_loop/P5",
                  "the bounds of " + describe_in_nest(loop) + " are data, and a condition says whether " +
                      describe_block(*realize.block) + " runs",
                  {loop.node(), block.node()}, "lift the loop before the loops around the block are split");
  }

  BlockRealize inner = realize;
  inner.iter_values.push_back(source.loop_var);
  inner.block = make<Block>(inner_block(*realize.block, source, lifted), realize.block.span());
  For outer = outer_loop(source, lifted, make(std::move(inner), tree.stmt(block.at).span()));
  TreeEdit edit(tree);
  edit.replace(block.at, make(std::move(outer), loop.node().span()));
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
