// Concatenate consecutive loops into one loop.
//
//   Before                                After  sch.horizontal_fuse(i, j)
//   for i in range(8):                    for i_j_fused in range(12):
//     with T.block("B"):                    with T.block("B"):
//       vi = T.axis.spatial(8, i)             vi = T.axis.spatial(8, i_j_fused)
//       B[vi] = A[vi]                         T.where(i_j_fused < 8)
//   for j in range(4):                        B[vi] = A[vi]
//     with T.block("C"):                    with T.block("C"):
//       vj = T.axis.spatial(4, j)             vj = T.axis.spatial(4, i_j_fused - 8)
//       C[vj] = D[vj]                         T.where(8 <= i_j_fused)
//                                             C[vj] = D[vj]
//
// The instances of the blocks run in the same order as before.
//
// Requires  P1 at least two loops, which are neighbors in one sequence, in this order
//           P2 they are serial, without annotation or binding, and start at 0
//           P3 below them stand loops and blocks alone; no data say how often these loops run, nor may ranges fail
//              in the iterations of other parts
//           P4 what the blocks write does not say how often the loops run
//           P5 no loop drives a reduction that begins with an init
//           P6 parallel loops around stay independent
#include "schedule/primitives/horizontal_fuse.h"

#include <algorithm>

#include "analysis/binding_reads.h"
#include "analysis/block_facts.h"
#include "ir/build.h"
#include "ir/op.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "schedule/early_bounds.h"
#include "schedule/edit.h"
#include "schedule/relocate.h"
#include "support/ranges.h"

namespace tilewright::schedule {
namespace {

/// The loops, and the positions of the blocks that are met first in each.
struct FusedLoops {
  std::vector<Place> loops;
  std::vector<std::vector<int>> blocks;
};

/// Inside of a part that does not run, loops are entered all the same.
Status check_body(const Place& part, int at) {
  const Tree& tree = *part.tree;
  for (int child : tree.children(at)) {
    if (tree[child].is_block) continue;
    const bool is_sequence = tree[child].node->kind == Kind::kSeqStmt;
    const bool is_loop = tree[child].is_loop && effect_of(tree.for_at(child).min) == Effect::kPure &&
                         effect_of(tree.for_at(child).extent) == Effect::kPure;
    if (!is_sequence && !is_loop) {
      return refuse("horizontal_fuse/P3",
                    "below " + describe_in_nest(part) + " stands " +
                        (tree[child].is_loop ? "a loop whose bounds are data" : "something else than loops and blocks"),
                    {part.node(), tree.stmt(child)},
                    "put what stands in the loop into one block: sch.blockize() of the loop inside");
    }
    TW_RETURN_IF_ERROR(check_body(part, child));
  }
  return Ok{};
}

Status check_neighbors(const std::vector<Place>& loops) {
  const Tree& tree = *loops[0].tree;
  const int sequence = tree[loops[0].at].parent;
  const bool in_sequence = tree[sequence].node->kind == Kind::kSeqStmt;
  const std::vector<int> children = in_sequence ? tree.children(sequence) : std::vector<int>{};
  const auto first = std::ranges::find(children, loops[0].at) - children.begin();
  for (size_t i = 1; i < loops.size(); ++i) {
    const auto at = static_cast<size_t>(first) + i;
    if (loops[i].func == loops[0].func && at < children.size() && children[at] == loops[i].at) continue;
    return refuse("horizontal_fuse/P1",
                  describe_in_nest(loops[i]) + " does not follow " + describe_in_nest(loops[i - 1]) + " in the program",
                  {loops[i - 1].node(), loops[i].node()},
                  "name neighbors in their order; move other statements away, or fuse the loops around them");
  }
  return Ok{};
}

Result<FusedLoops> find_parts(const State& state, const HorizontalFuse& fuse) {
  FusedLoops parts;
  for (LoopRV rv : fuse.loops.items) {
    TW_TRY(place, state.find(rv));
    parts.loops.push_back(place);
  }
  if (parts.loops.size() < 2) {
    return refuse("horizontal_fuse/P1", "horizontal fusion takes at least two loops", {}, "name one loop of each part");
  }
  TW_RETURN_IF_ERROR(check_neighbors(parts.loops));
  const Tree& tree = *parts.loops[0].tree;
  for (const Place& loop : parts.loops) {
    TW_RETURN_IF_ERROR(require_plain_loop(loop, "horizontal_fuse/P2"));
    TW_RETURN_IF_ERROR(require_zero_start(loop, "horizontal_fuse/P2"));
    TW_RETURN_IF_ERROR(check_body(loop, loop.at));
    parts.blocks.push_back(tree.child_blocks(loop.at));
  }
  return parts;
}

std::vector<int> all_of(const FusedLoops& parts) {
  std::vector<int> all;
  for (const std::vector<int>& blocks : parts.blocks) append_range(all, blocks);
  return all;
}

Status check_extents(const FusedLoops& parts) {
  const Tree& tree = *parts.loops[0].tree;
  for (const Place& loop : parts.loops) {
    std::vector<Ref<BufferRegion>> read;
    analysis::add_single_reads(tree.for_at(loop.at).extent, read);
    for (const Ref<BufferRegion>& region : read) {
      for (int block : all_of(parts)) {
        if (!tree.touches(tree.block_at(block).writes, region->buffer)) continue;
        return refuse("horizontal_fuse/P4",
                      describe_block(tree.block_at(block)) + " writes '" + region->buffer->name +
                          "', which says how often " + describe_in_nest(loop) + " runs",
                      {tree.stmt(block), loop.node()}, "fuse loops whose bounds are known before the first of them");
      }
    }
  }
  return Ok{};
}

Status check_init(const Place& loop, int block) {
  const Tree& tree = *loop.tree;
  const BlockRealize& realize = *tree.realize_at(block);
  if (!realize.block->init.defined()) return Ok{};
  for (size_t k : indices_of(realize.iter_values)) {
    const Ref<IterVar>& axis = realize.block->iter_vars[k];
    if (analysis::is_data_parallel(axis)) continue;
    if (!uses_var(realize.iter_values[k], tree.for_at(loop.at).loop_var)) continue;
    return refuse("horizontal_fuse/P5",
                  describe_in_nest(loop) + " drives the axis '" + axis->var->name_hint +
                      "', and the init of the block begins its reduction",
                  {loop.node(), tree.stmt(block)},
                  "let the loops run over rows, or take the init apart with sch.decompose_reduction() before");
  }
  return Ok{};
}

/// The body of a part in terms of its own variable, and its blocks under the condition.
Stmt body_of_part(const For& loop, const Expr& own, const Expr& condition) {
  return rewrite(substitute(loop.body, {{loop.loop_var, own}}), [&](const Ref<BlockRealize>& old, Rewriter&) -> Stmt {
    return with_field(old, &BlockRealize::predicate, logical_and(condition, old->predicate));
  });
}

/// Returns the widest type of the loops; int64 if extents are data, since their sum may not fit a smaller type.
DataType type_of_sum(const FusedLoops& parts) {
  const Tree& tree = *parts.loops[0].tree;
  DataType type = tree.for_at(parts.loops[0].at).loop_var.dtype();
  for (const Place& loop : parts.loops) {
    const For& each = tree.for_at(loop.at);
    if (each.loop_var.dtype().bits > type.bits) type = each.loop_var.dtype();
    if (effect_of(each.extent) != Effect::kPure) type = DataType::int_(64);
  }
  return type;
}

}  // namespace

Result<Plan> plan(const State& state, const HorizontalFuse& fuse) {
  TW_TRY(parts, find_parts(state, fuse));
  TW_RETURN_IF_ERROR(check_extents(parts));
  for (size_t i : indices_of(parts.loops)) {
    for (int block : parts.blocks[i]) TW_RETURN_IF_ERROR(check_init(parts.loops[i], block));
  }
  const Tree& tree = *parts.loops[0].tree;
  const DataType type = type_of_sum(parts);
  std::string name;
  for (const Place& loop : parts.loops) name += tree.for_at(loop.at).loop_var->name_hint + "_";
  const Ref<Var> task = var(name + "fused", type);
  auto analyzer = analysis::analyzer_above(tree, tree[parts.loops[0].at].parent);
  Expr start = zero(type);
  std::vector<Stmt> bodies;
  for (size_t i : indices_of(parts.loops)) {
    const For& loop = tree.for_at(parts.loops[i].at);
    Expr count = cast(type, loop.extent);
    if (!analyzer.can_prove_greater_equal(count, 0)) count = tilewright::max(count, zero(type));
    const Expr end = analyzer.simplify(start + count);
    Expr condition = bool_imm(true);
    if (i > 0) condition = le(start, task);
    if (i + 1 < parts.loops.size()) condition = logical_and(condition, lt(task, end));
    const Expr own = cast(loop.loop_var.dtype(), i > 0 ? Expr(task) - start : Expr(task));
    bodies.push_back(body_of_part(loop, own, condition));
    start = end;
  }
  analyzer.bind(task, range_of(start));
  for (size_t i : indices_of(bodies)) {
    auto failing = find_early_failure(bodies[i], analyzer);
    if (!failing) continue;
    return refuse("horizontal_fuse/P3",
                  "below " + describe_in_nest(parts.loops[i]) + " stands " + *failing +
                      " may divide by zero in the iterations of other parts",
                  parts.loops[i], "put the loop into one block: sch.blockize() of the loop inside");
  }
  For fused;
  fused.loop_var = task;
  fused.min = zero(type);
  fused.extent = start;
  fused.body = seq(std::move(bodies));
  TreeEdit edit(tree);
  for (size_t i = 1; i < parts.loops.size(); ++i) edit.remove(parts.loops[i].at);
  edit.replace(parts.loops[0].at, make(std::move(fused), parts.loops[0].node().span()));
  Plan plan = give_loops(parts.loops[0].func, edit.finish(), {task});
  const Tree& after = Tree::of(plan.root);
  for (int block : all_of(parts)) {
    const int at = after.block(tree.block_at(block).id.value);
    TW_RETURN_IF_ERROR(recheck_execution(after, at, "horizontal_fuse/P6"));
  }
  return plan;
}

}  // namespace tilewright::schedule
