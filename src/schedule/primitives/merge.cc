// Merge neighboring loop nests into one.
//
//   Before                                After  sch.merge(i, j)
//   for i in range(8):                    for i_m in range(8):
//     with T.block("B"):                    with T.block("B"):
//       vi = T.axis.spatial(8, i)             vi = T.axis.spatial(8, i_m)
//       B[vi] = A[vi]                         B[vi] = A[vi]
//   for j in range(8):                      with T.block("C"):
//     with T.block("C"):                      vi = T.axis.spatial(8, i_m)
//       vi = T.axis.spatial(8, j)             C[vi] = A[vi] + 1.0
//       C[vi] = A[vi] + 1.0
//
// Requires  P1 at least two loops, none named twice or around another
//           P2 they are in one scope
//           P3 those to be merged are serial, without annotation or binding, and start at 0
//           P4 from what is around all of them down to each, loops are the only statements of one another
//           P5 there are equally many in each nest, with the same extents, which depend on nothing below, and on no
//              data that the program changes from the first nest to the last one
//           P6 the blocks below see the same in the new order: each is complete or a regular reduction, the new loops
//              repeat none, and what one reads of another is complete in the same iteration; nothing in between touches
//              what the nests touch
//           P7 parallel loops around and below stay independent
#include <algorithm>

#include "analysis/block_facts.h"
#include "analysis/changes.h"
#include "analysis/independence.h"
#include "analysis/scope.h"
#include "analysis/unsettled.h"
#include "ir/build.h"
#include "ir/substitute.h"
#include "ir/traverse.h"
#include "schedule/edit.h"
#include "schedule/primitives/merge.h"
#include "schedule/relocate.h"
#include "support/ranges.h"

namespace tilewright::schedule {
namespace {

/// The loops from below `around` down to the one named, outermost first.
Result<std::vector<int>> find_nest(const Place& loop, int around) {
  const Tree& tree = *loop.tree;
  std::vector<int> nest;
  for (int at = loop.at; at != around; at = tree[at].parent) {
    if (tree[at].node->kind == Kind::kSeqStmt && tree[at].parent == around) break;
    Place place{loop.func, loop.tree, at};
    bool only = nest.empty() || (tree[at].is_loop && tree.for_at(at).body == tree.stmt(nest.back()));
    if (!tree[at].is_loop || !only) {
      return refuse("merge/P4", describe(loop) + " is not alone below " + (tree[at].is_loop ? describe(place) : "it"),
                    {tree.stmt(at), loop.node()}, "merge the nests from further inside, or move the others away first");
    }
    TW_RETURN_IF_ERROR(require_plain_loop(place, "merge/P3"));
    TW_RETURN_IF_ERROR(require_zero_start(place, "merge/P3"));
    nest.push_back(at);
  }
  std::ranges::reverse(nest);
  return nest;
}

Status check_extents(const Tree& tree, const std::vector<std::vector<int>>& nests, int around) {
  auto analyzer = analysis::analyzer_above(tree, around);
  for (const std::vector<int>& nest : nests) {
    if (nest.size() != nests[0].size()) {
      return refuse("merge/P5",
                    describe_loop(tree.for_at(nest.back())) + " is " + std::to_string(nest.size()) + " deep and " +
                        describe_loop(tree.for_at(nests[0].back())) + " " + std::to_string(nests[0].size()),
                    {tree.stmt(nest.back()), tree.stmt(nests[0].back())}, "name loops at the same depth");
    }
    for (size_t i : indices_of(nest)) {
      const For &loop = tree.for_at(nest[i]), &first = tree.for_at(nests[0][i]);
      for (size_t outer = 0; outer < i; ++outer) {
        if (!uses_var(loop.extent, tree.for_at(nest[outer]).loop_var)) continue;
        return refuse("merge/P5",
                      "the extent of " + describe_loop(loop) + " depends on " + describe_loop(tree.for_at(nest[outer])),
                      {tree.stmt(nest[i])}, "merge loops of rectangles");
      }
      if (loop.loop_var.dtype() != first.loop_var.dtype() || !analyzer.can_prove_equal(loop.extent, first.extent)) {
        return refuse("merge/P5", describe_loop(loop) + " and " + describe_loop(first) + " are not equally long",
                      {tree.stmt(nest[i]), tree.stmt(nests[0][i])},
                      "merge loops of one length; split() or loop_partition() makes parts of equal lengths");
      }
    }
  }
  return Ok{};
}

/// Checks that extents which read data have the same values wherever they are evaluated, from the first nest to the
/// last one.
Status check_kept_extents(const Tree& tree, const std::vector<std::vector<int>>& nests) {
  int first = nests[0].front(), last = first;
  for (const std::vector<int>& nest : nests) {
    first = std::min(first, nest.front());
    last = std::max(last, nest.front());
  }
  for (const std::vector<int>& nest : nests) {
    for (int at : nest) {
      const Expr& extent = tree.for_at(at).extent;
      if (!analysis::reads_memory(extent)) continue;
      for (int stmt = first; stmt <= last; stmt = tree[stmt].end) {
        if (!analysis::may_change(tree, tree.stmt(stmt), extent)) continue;
        return refuse("merge/P5",
                      "the extent of " + describe_loop(tree.for_at(at)) + " reads data that the program changes " +
                          "between the first nest and the end of the last one",
                      {tree.stmt(at), tree.stmt(stmt)}, "copy the extent to a buffer of its own before the nests");
      }
    }
  }
  return Ok{};
}

/// The outermost blocks of a statement, which may be one itself.
std::vector<int> blocks_of(const Tree& tree, int at) {
  return tree[at].is_block ? std::vector<int>{at} : tree.child_blocks(at);
}

/// Checks that of two statements that change places, neither writes what the other accesses.
Status check_passed(const Tree& tree, const analysis::Scope& scope, int passed, int moved) {
  const std::vector<analysis::Dependence> dependences = scope.dependences();
  auto child = [&](int block) { return scope.child(tree.block_at(block).id.value); };
  for (int a : blocks_of(tree, passed)) {
    for (int b : blocks_of(tree, moved)) {
      const Block &one = tree.block_at(a), &other = tree.block_at(b);
      const int first = std::min(child(a), child(b)), second = std::max(child(a), child(b));
      auto joins = [&](const analysis::Dependence& d) { return d.src == first && d.dst == second; };
      if (none_of(dependences, joins)) continue;
      return refuse("merge/P6",
                    describe_block(one) + " and " + describe_block(other) + " would change places, and use one buffer",
                    {tree.stmt(a), tree.stmt(b)},
                    "merge before they share a buffer, or move one into the loops of the other with compute_at()");
    }
  }
  return Ok{};
}

/// Checks the code that a nest is moved across, up to the last nest: statements between them, and nests whose order
/// changes.
Status check_between(const Tree& tree, const std::vector<std::vector<int>>& nests, int around) {
  const auto& scope = analysis::Scope::of(tree, tree[nests.front().front()].scope);
  std::vector<int> tops;
  for (const std::vector<int>& nest : nests) tops.push_back(nest.front());
  for (size_t i : indices_of(tops)) {
    for (size_t j = i + 1; j < tops.size(); ++j) {
      if (tops[i] > tops[j]) TW_RETURN_IF_ERROR(check_passed(tree, scope, tops[i], tops[j]));
    }
  }
  std::vector<int> places = tree.children(around);
  if (places.size() == 1 && tree.stmt(places[0]).is<SeqStmt>()) places = tree.children(places[0]);
  for (int at : places) {
    if (is_contained(tops, at)) continue;
    for (int top : tops) {
      if (at < std::min(top, tops.back()) || at > std::max(top, tops.back())) continue;
      if (analysis::unsettled_statement_in(tree, at)) {
        return refuse("merge/P6", "a statement between the nests is not in a block", {tree.stmt(at)},
                      "put it into a block");
      }
      TW_RETURN_IF_ERROR(check_passed(tree, scope, at, top));
    }
  }
  return Ok{};
}

}  // namespace

Result<Plan> plan(const State& state, const Merge& merge) {
  std::vector<Place> loops;
  std::vector<int> positions;
  for (LoopRV rv : merge.loops.items) {
    TW_TRY(place, state.find(rv));
    for (const Place& other : loops) {
      if (other.func != place.func || (*other.tree)[other.at].scope != (*place.tree)[place.at].scope) {
        return refuse("merge/P2", describe(place) + " and " + describe(other) + " are not in the same block scope",
                      {place.node(), other.node()}, "both loops have to stand in one block");
      }
      if (other.tree->contains(other.at, place.at) || other.tree->contains(place.at, other.at)) {
        return refuse("merge/P1", describe(place) + " and " + describe(other) + " do not stand beside each other",
                      {place.node(), other.node()},
                      "merge the outermost loops of two neighboring nests, or loops inside of merged ones");
      }
    }
    loops.push_back(place);
    positions.push_back(place.at);
  }
  if (loops.size() < 2) {
    return refuse("merge/P1", "merging takes at least two loops", {}, "name one loop of each nest");
  }
  const Tree& tree = *loops[0].tree;
  int around = tree.common_ancestor(positions);
  if (tree[around].node->kind == Kind::kSeqStmt) around = tree[around].parent;
  std::vector<std::vector<int>> nests;
  for (const Place& loop : loops) {
    TW_TRY(nest, find_nest(loop, around));
    nests.push_back(std::move(nest));
  }
  TW_RETURN_IF_ERROR(check_extents(tree, nests, around));
  TW_RETURN_IF_ERROR(check_kept_extents(tree, nests));
  TW_RETURN_IF_ERROR(check_between(tree, nests, around));

  std::vector<Ref<Var>> vars;
  for (int at : nests[0]) {
    const Ref<Var>& old = tree.for_at(at).loop_var;
    vars.push_back(var(old->name_hint + "_m", old.dtype()));
  }
  std::vector<Stmt> bodies;
  for (const std::vector<int>& nest : nests) {
    VarMap map;
    for (size_t i : indices_of(nest)) map.emplace(tree.for_at(nest[i]).loop_var, vars[i]);
    bodies.push_back(substitute(tree.for_at(nest.back()).body, map));
  }
  Stmt merged = seq(std::move(bodies));
  for (size_t i = vars.size(); i-- > 0;) {
    const For& old = tree.for_at(nests[0][i]);
    merged = make<For>({.loop_var = vars[i],
                        .min = old.min,
                        .extent = old.extent,
                        .thread_binding = {},
                        .annotations = {},
                        .body = std::move(merged)},
                       tree.stmt(nests[0][i]).span());
  }
  TreeEdit edit(tree);
  for (const std::vector<int>& nest : nests) {
    if (nest.front() != nests.back().front()) edit.remove(nest.front());
  }
  edit.replace(nests.back().front(), std::move(merged));
  Plan plan = give_loops(loops[0].func, edit.finish(), {vars.back()});
  const Tree& after = Tree::of(plan.root);
  std::vector<int> chain;
  for (const Ref<Var>& loop_var : vars) chain.push_back(after.loop(loop_var));
  if (auto problem = analysis::why_order_matters(after, chain))
    return refuse("merge/P6", problem->obstacle, "merge nests whose iterations do not depend on one another");
  for (int block : after.child_blocks(chain.front())) {
    if (auto obstacle = analysis::why_inputs_incomplete(after, block))
      return refuse("merge/P6", *obstacle,
                    "a block that reads what the other nest writes moves with compute_at() or reverse_compute_at()");
    TW_RETURN_IF_ERROR(recheck_execution(after, block, "merge/P7"));
  }
  return plan;
}

}  // namespace tilewright::schedule
