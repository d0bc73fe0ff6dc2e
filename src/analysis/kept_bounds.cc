#include "analysis/kept_bounds.h"

#include <algorithm>

#include "analysis/binding_reads.h"
#include "analysis/changes.h"
#include "support/ranges.h"

namespace tilewright::analysis {
namespace {

/// Returns the loop bounds and conditions that read data, from a statement down to a block, and those of the block's
/// own axes and predicate.
std::vector<Expr> reading_bounds(const Tree& tree, int from, int block) {
  std::vector<Expr> found;
  auto add = [&](const Expr& bound) {
    if (!bound.is<IntImm>() && !bound.is<Var>() && reads_memory(bound)) found.push_back(bound);
  };
  for (int at = tree[block].parent; at != from; at = tree[at].parent) {
    if (!tree[at].is_loop) continue;
    add(tree.for_at(at).min);
    add(tree.for_at(at).extent);
  }
  if (tree[block].binds_data) for_each_bound(*tree.realize_at(block), add);
  return found;
}

bool may_change_any(const Tree& tree, int at, const std::vector<Expr>& values) {
  return any_of(values, [&](const Expr& value) { return may_change(tree, tree.stmt(at), value); });
}

}  // namespace

std::optional<Obstacle> why_bounds_change(const Tree& tree, int one, int other) {
  int positions[] = {one, other};
  const int lca = tree.common_ancestor(positions);
  if (lca == one || lca == other) return std::nullopt;
  const std::vector<Expr> of_one = reading_bounds(tree, lca, one), of_other = reading_bounds(tree, lca, other);
  if (of_one.empty() && of_other.empty()) return std::nullopt;
  const int first = tree.child_towards(lca, one), second = tree.child_towards(lca, other);
  bool changes = may_change_any(tree, first, of_one) || may_change_any(tree, second, of_other);
  if (!of_one.empty() && !of_other.empty()) {
    const auto [begin, end] = std::minmax(first, second);
    for (int between : tree.children(lca)) {
      if (begin < between && between < end) changes |= may_change_any(tree, between, of_one);
    }
  }
  if (!changes) return std::nullopt;
  return Obstacle{"bounds around '" + tree.block_at(one).name_hint + "' and '" + tree.block_at(other).name_hint +
                      "' read data that the program changes there, or between the two blocks",
                  {tree.stmt(one), tree.stmt(other)}};
}

}  // namespace tilewright::analysis
