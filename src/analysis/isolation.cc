#include "analysis/isolation.h"

#include "analysis/findings.h"
#include "analysis/free_vars.h"

namespace tilewright::analysis {

std::optional<Obstacle> why_not_isolated(const Tree& tree, int block, int from) {
  const auto& outside = FreeVars::of(tree.block_ref(block));
  for (int at = tree[block].parent; at != from && at != tree[block].scope; at = tree[at].parent) {
    if (!tree[at].is_loop) continue;
    const Ref<Var>& loop_var = tree.for_at(at).loop_var;
    if (outside.contains(loop_var)) {
      return Obstacle{quoted(tree.block_at(block)) + " uses the loop variable '" + loop_var->name_hint +
                          "' inside, not only to bind its axes",
                      {tree.stmt(block), tree.stmt(at)}};
    }
  }
  return std::nullopt;
}

}  // namespace tilewright::analysis
