// Put loops of one nest into another order.
//
//   Before                                After  sch.reorder(j, i)
//   for i, j in T.grid(4, 8):             for j, i in T.grid(8, 4):
//     with T.block("B"):                    with T.block("B"):
//       vi = T.axis.spatial(4, i)             vi = T.axis.spatial(4, i)
//       vj = T.axis.spatial(8, j)             vj = T.axis.spatial(8, j)
//       B[vi, vj] = A[vi, vj]                 B[vi, vj] = A[vi, vj]
//
// Requires  P1 no loop is named twice
//           P2 the loops form one chain, and between the outermost and the innermost of them stand only loops, each
//              the only statement of the one before
//           P3 the range of a loop depends on no loop that comes to stand inside it, and does not fail where that has
//           no
//              iteration
//           P4 the blocks below see the same in any order: each is complete, or an affine reduction that no loop
//              repeats; and what one reads of another is complete in the same iteration. Loops over blocks stay outside
//              of the threads that make a copy together (read_at, write_at)
//           P5 a reduction that is not commutative keeps the order of its loops
//           P6 parallel, vectorized and thread-bound loops stay independent
#include <algorithm>

#include "analysis/block_facts.h"
#include "analysis/independence.h"
#include "analysis/sizes.h"
#include "analysis/threads.h"
#include "ir/build.h"
#include "ir/make.h"
#include "ir/substitute.h"
#include "schedule/early_bounds.h"
#include "schedule/edit.h"
#include "schedule/primitives/reorder.h"
#include "schedule/relocate.h"
#include "support/ranges.h"

namespace tilewright::schedule {
namespace {

/// The chain of loops from the outermost to the innermost of those named.
Result<std::vector<int>> find_chain(const Tree& tree, const std::vector<Place>& named) {
  auto [top, bottom] = std::ranges::minmax_element(named, [](const Place& a, const Place& b) { return a.at < b.at; });
  std::vector<int> chain;
  for (int at = bottom->at;; at = tree[at].parent) {
    if (at == Tree::kNone || at < top->at) {
      return refuse("reorder/P2", describe_in_nest(*bottom) + " is not inside " + describe_in_nest(*top),
                    {top->node(), bottom->node()}, "reorder takes loops of one nest");
    }
    if (!tree[at].is_loop) {
      return refuse("reorder/P2",
                    "between " + describe(*top) + " and " + describe(*bottom) +
                        " stands something else than a loop: a " + kind_name(tree[at].node->kind),
                    {tree.stmt(tree[at].parent), bottom->node()},
                    "loops can change places only where each is the only statement of the one before");
    }
    chain.push_back(at);
    if (at == top->at) break;
  }
  std::ranges::reverse(chain);
  for (const Place& place : named) {
    if (!is_contained(chain, place.at)) {
      return refuse("reorder/P2",
                    describe(place) + " is not on the way from " + describe(*top) + " to " + describe(*bottom),
                    {place.node(), top->node(), bottom->node()}, "reorder takes loops of one nest");
    }
  }
  return chain;
}

Status check_ranges(const Tree& tree, const std::vector<int>& order) {
  for (size_t outer : indices_of(order)) {
    const For& loop = tree.for_at(order[outer]);
    for (size_t inner = outer + 1; inner < order.size(); ++inner) {
      const For& other = tree.for_at(order[inner]);
      if (!uses_var(loop.min, other.loop_var) && !uses_var(loop.extent, other.loop_var)) continue;
      return refuse("reorder/P3",
                    "the range of " + describe_loop(loop) + " depends on " + describe_loop(other) +
                        ", which would come to stand inside it",
                    {tree.stmt(order[outer]), tree.stmt(order[inner])},
                    "keep the two loops in their order, or fuse() them");
    }
  }
  return Ok{};
}

/// Refuses ranges that divide by a size, if they would be evaluated where loops around them have no iteration.
Status check_early_ranges(const Tree& tree, const std::vector<int>& chain, const std::vector<int>& order) {
  auto is_number = [&](int at) { return tree.for_at(at).extent.is<IntImm>() && tree.for_at(at).min.is<IntImm>(); };
  if (all_of(chain, is_number)) return Ok{};
  auto analyzer = analysis::analyzer_above(tree, tree[chain.front()].parent);
  analysis::assume_runs_around(analyzer, tree, tree[chain.front()].parent);
  for (auto at = order.begin(); at != order.end(); ++at) {
    const For& loop = tree.for_at(*at);
    std::vector<int> passed(at + 1, order.end());
    std::erase_if(passed, [&](int other) { return other > *at; });
    if (may_fail_outside({loop.min, loop.extent}, tree, passed, analyzer)) {
      return refuse("reorder/P3",
                    "the range of " + describe_loop(loop) + " may divide by zero, or read out of bounds, where " +
                        describe_loop(tree.for_at(passed.front())) + " has no iteration",
                    {tree.stmt(*at), tree.stmt(passed.front())}, "keep the two loops in their order");
    }
    analyzer.bind(loop.loop_var, range(loop.min, loop.extent));
    analysis::assume_runs(analyzer, tree, {*at});
  }
  return Ok{};
}

/// Loops of `chain` that drive a reduction axis of the block, in the given order.
std::vector<int> reduction_loops(const Tree& tree, const std::vector<int>& order, int block) {
  const BlockRealize& realize = *tree.realize_at(block);
  std::vector<int> result;
  for (int at : order) {
    for (size_t i : indices_of(realize.iter_values)) {
      if (!analysis::is_reduction_axis(realize.block->iter_vars[i])) continue;
      if (uses_var(realize.iter_values[i], tree.for_at(at).loop_var)) result.push_back(at);
    }
  }
  return result;
}

/// Threads make a copy together (read_at, write_at) below the loops over blocks: inside of a thread's iteration, no
/// other thread would be there.
Status check_joint_copies(const Tree& tree, const std::vector<int>& chain, const std::vector<int>& order) {
  std::vector<int> blocks = tree.child_blocks(chain.back());
  auto copy = find_if(blocks, [&](int at) { return tree.block_at(at).annotations.has("auto_copy"); });
  if (copy == blocks.end()) return Ok{};
  auto inside =
      analysis::blocks_in_threads(tree, order, [](const For& loop) { return analysis::thread_axis(loop)->in_team(); });
  if (!inside) return Ok{};
  return refuse("reorder/P4",
                describe_block(tree.block_at(*copy)) + " is a copy that threads make together, and " +
                    describe_loop(tree.for_at(inside->blocks)) + " over blocks would come to stand inside the threads",
                {tree.stmt(inside->threads), tree.stmt(inside->blocks), tree.stmt(*copy)},
                "keep loops over blocks outside of loops over threads");
}

/// Checks the blocks below the last loop of `order`, with the loops in that order.
Status check_blocks(const Tree& tree, const std::vector<int>& chain, const std::vector<int>& order) {
  if (auto problem = analysis::why_order_matters(tree, chain))
    return refuse(
        "reorder/P4", problem->obstacle,
        "reorder before blocks that depend on one another share these loops, or before a reduction is decomposed; "
        "blockize() at the loop whose steps have an order makes a block of them, and leaves the loops around it free");
  for (int block : tree.child_blocks(chain.back())) {
    const auto& facts = analysis::BlockFacts::of(tree.block_ref(block));
    if (!facts.commutative && reduction_loops(tree, chain, block) != reduction_loops(tree, order, block)) {
      return refuse("reorder/P5",
                    describe_block(tree.block_at(block)) + " combines values in a way whose order matters",
                    {tree.stmt(block)}, "keep the loops of its reduction in their order");
    }
  }
  return Ok{};
}

}  // namespace

Result<Plan> plan(const State& state, const Reorder& reorder) {
  std::vector<Place> named;
  for (LoopRV rv : reorder.ordered_loops.items) {
    TW_TRY(place, state.find(rv));
    for (const Place& other : named) {
      if (other.func == place.func && other.at == place.at) {
        return refuse("reorder/P1", describe(place) + " is named twice", place, "name each loop once");
      }
      if (other.func != place.func) {
        return refuse("reorder/P2", describe(place) + " and " + describe(other) + " are in different functions",
                      {place.node(), other.node()}, "reorder takes loops of one nest");
      }
    }
    named.push_back(place);
  }
  if (named.size() < 2) return Plan{};
  const Tree& tree = *named[0].tree;
  TW_TRY(chain, find_chain(tree, named));
  std::vector<int> order = chain;
  size_t next = 0;
  for (int& at : order) {
    bool moves = any_of(named, [&](const Place& place) { return place.at == at; });
    if (moves) at = named[next++].at;
  }
  if (order == chain) return Plan{};
  TW_RETURN_IF_ERROR(check_ranges(tree, order));
  TW_RETURN_IF_ERROR(check_early_ranges(tree, chain, order));
  TW_RETURN_IF_ERROR(check_joint_copies(tree, chain, order));

  Stmt nest = tree.for_at(chain.back()).body;
  for (int loop : reversed(order)) nest = with_body(tree.stmt(loop).borrow<For>(), std::move(nest));
  TreeEdit edit(tree);
  edit.replace(chain.front(), std::move(nest));
  Plan plan = give_loops(named[0].func, edit.finish(), {});
  // The conditions on blocks hold before and after.
  TW_RETURN_IF_ERROR(check_blocks(tree, chain, order));
  const Tree& after = Tree::of(plan.root);
  std::vector<int> new_chain;
  for (int at : order) new_chain.push_back(after.loop(tree.for_at(at).loop_var));
  if (auto problem = analysis::why_order_matters(after, new_chain))
    return refuse(
        "reorder/P4", problem->obstacle,
        "keep the loops of a reduction inside of those that repeat it, and what a block reads complete before it runs");
  for (int block : after.child_blocks(new_chain.front())) {
    TW_RETURN_IF_ERROR(recheck_execution(after, block, "reorder/P6"));
  }
  return plan;
}

}  // namespace tilewright::schedule
