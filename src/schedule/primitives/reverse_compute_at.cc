// Move a consumer under a loop of its producers, and compute there what they have just produced.
//
//   Before                                    After  sch.reverse_compute_at(C, i)
//   B = T.alloc_buffer((16, 16))              B = T.alloc_buffer((16, 16))
//   for i, j in T.grid(16, 16):               for i in range(16):
//     with T.block("B"):                        for j in range(16):
//       vi, vj = T.axis.remap("SS", [i, j])       with T.block("B"):
//       B[vi, vj] = A[vi, vj] + 1.0                 vi, vj = T.axis.remap("SS", [i, j])
//   for x, y in T.grid(16, 16):                     B[vi, vj] = A[vi, vj] + 1.0
//     with T.block("C"):                        for ax0 in range(16):
//       vi, vj = T.axis.remap("SS", [x, y])       with T.block("C"):
//       C[vi, vj] = B[vi, vj] * 2.0                 vi, vj = T.axis.remap("SS", [i, ax0])
//                                                   C[vi, vj] = B[vi, vj] * 2.0
//
// Requires  P1 the block is complete or a regular reduction
//           P2 it and the loop are in one scope, and the loop is not around it
//           P3 it is the only writer of its buffers, and nothing before reads them
//           P4 all its producers are under the loop, and it has some
//           P5 what it reads is complete where it stands and where it goes
//           P6 all that it wrote before is written afterwards, and complete where it is read
//           P7 the index is possible
//           P8 it can be proved which instances run now
//           P9 parallel loops around stay independent
#include <algorithm>

#include "analysis/may_fail.h"
#include "analysis/scope.h"
#include "analysis/sizes.h"
#include "ir/build.h"
#include "ir/conjunction.h"
#include "ir/substitute.h"
#include "schedule/primitives/reverse_compute_at.h"
#include "schedule/primitives/reverse_compute_inline.h"
#include "schedule/relocate.h"
#include "support/ranges.h"

namespace tilewright::schedule {
namespace {
constexpr MoveCodes kReverseComputeAtCodes = {.role = "reverse_compute_at/P1",
                                              .scope = "reverse_compute_at/P2",
                                              .writer = "reverse_compute_at/P3",
                                              .index = "reverse_compute_at/P7",
                                              .instances = "reverse_compute_at/P8",
                                              .inputs = "reverse_compute_at/P5",
                                              .results = "reverse_compute_at/P6",
                                              .execution = "reverse_compute_at/P9"};

/// Returns the terms of a condition that depend on these loops alone, such as the one of a split with a remainder.
/// Terms with outer loops cut off the last tile, which the moved block handles itself.
Expr condition_on(const Tree& tree, const std::vector<int>& loops, const Expr& predicate) {
  Expr condition = bool_imm(true);
  for (const Expr& term : conjuncts(predicate)) {
    const bool mentions_others = uses_any_var(
        term, [&](const Ref<Var>& v) { return none_of(loops, [&](int at) { return tree.for_at(at).loop_var == v; }); });
    if (!mentions_others) condition = logical_and(condition, term);
  }
  return condition;
}

}  // namespace

Result<Plan> plan(const State& state, const ReverseComputeAt& compute) {
  TW_TRY(block, state.find(compute.block));
  const Handle& target = state.handle(compute.loop.index);
  if (target.is_root_mark()) return Plan{};
  if (target.is_inline_mark()) return plan(state, ReverseComputeInline{compute.block});
  TW_TRY(loop, state.find(compute.loop));
  Move move{block, loop, compute.preserve_unit_loops, compute.index, 0, 0, kReverseComputeAtCodes, false};
  const Tree& tree = *block.tree;
  TW_RETURN_IF_ERROR(check_same_scope(move));
  TW_RETURN_IF_ERROR(check_block_role(move));
  const analysis::Scope& scope = analysis::Scope::of(tree, tree[block.at].scope);
  int self = scope.child(block.block().id.value);
  TW_RETURN_IF_ERROR(check_only_writer(block, scope, self, kReverseComputeAtCodes.writer, false));

  std::vector<int> statements = statements_of(tree, loop.at);
  move.last = static_cast<int>(statements.size());
  auto analyzer = analysis::analyzer_above(tree, loop.at);
  analysis::assume_runs_around(analyzer, tree, loop.at);
  std::optional<AxisSets> possible;
  auto position = [&](int child) { return scope.position(tree, child); };
  for (int child : scope.producers(self)) {
    int producer = position(child);
    int statement = statement_with(tree, statements, producer);
    if (statement < 0) {
      return refuse("reverse_compute_at/P4",
                    "the step requires all the producers under the loop: " + describe_block(tree.block_at(producer)) +
                        " is not under " + describe(loop),
                    {block.node(), loop.node(), tree.stmt(producer)}, "take a loop that is around all its producers");
    }
    move.first = std::max(move.first, statement + 1);
    std::vector<int> below = tree.loops_above(producer);
    std::erase_if(below, [&](int at) { return at <= loop.at; });
    for (const Ref<BufferRegion>& read : block.block().reads) {
      for (const Ref<BufferRegion>& write : tree.block_at(producer).writes) {
        if (write->buffer != read->buffer) continue;
        const BlockRealize& realize = *tree.realize_at(producer);
        const Expr runs = condition_on(tree, below, realize.predicate);
        analysis::SureReads sure;
        sure.add(tree, loop.at, producer, analyzer);
        arith::Box box = analysis::without_failing_bounds(
            analysis::relaxed(analysis::bound_region(realize, write), tree, below, analyzer, runs), analyzer, sure,
            sure);
        AxisSets sets = solve_axes(block.block(), read, box, Fit::kWithin, analyzer);
        possible = possible ? arith::intersect(*possible, sets, analyzer) : sets;
      }
    }
  }
  if (!possible) {
    return refuse("reverse_compute_at/P4", describe(block) + " has no producers", block,
                  "reverse_compute_at moves a block to what it reads; compute_at to what reads its results");
  }
  for (int child : scope.consumers(self)) {
    int statement = statement_with(tree, statements, position(child));
    if (statement >= 0) move.last = std::min(move.last, statement);
  }
  return finish_move(move, *possible, [&](const Tree& after, int moved) -> Status {
    if (auto obstacle = analysis::why_irregular_reduction(after, after[moved].scope, moved)) {
      return refuse(kReverseComputeAtCodes.results, *obstacle, "take a loop further out, around all its reduction");
    }
    return check_same_outputs(tree, block.at, after, moved, kReverseComputeAtCodes.results);
  });
}

}  // namespace tilewright::schedule
