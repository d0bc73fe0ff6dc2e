// Run axes of an iteration in one loop over the positions of the last.
//
//   Before                                                     After  sch.sparse_fuse(i, j)
//   with T.sp.iteration([I, J], "SS", "scale") as [i, j]:      with T.sp.iteration([T.sp.fuse(I, J)], "SS", "scale") as
//   [i, j]:
//     B[i, j] = A[i, j] * 2                                      B[i, j] = A[i, j] * 2
//
// Requires  P1 variables of one iteration, at least two, in their order and one behind the other
//           P2 each axis stands below the one before
#include "schedule/primitives/sparse_fuse.h"

#include "ir/make.h"
#include "schedule/primitive.h"
#include "schedule/sparse_nest.h"

namespace tilewright::schedule {

Result<Plan> plan(const State& state, const SparseFuse& fuse) {
  TW_TRY(nest, find_nest(state, fuse.iters.items, "sparse_fuse/P1"));
  std::vector<Ref<SpIterVar>> variables = nest.iteration->iter_vars;
  if (nest.at.size() < 2) {
    return refuse("sparse_fuse/P1", "one variable is named", {nest.iteration}, "name those that become one loop");
  }
  for (size_t i = 1; i < nest.at.size(); ++i) {
    const SpIterVar& outer = *variables[nest.at[i - 1]];
    SpIterVar inner = *variables[nest.at[i]];
    if (nest.at[i] != nest.at[i - 1] + 1) {
      return refuse("sparse_fuse/P1", "'" + inner.var->name_hint + "' does not follow '" + outer.var->name_hint + "'",
                    {nest.iteration}, "name variables in their order, and use sparse_reorder before");
    }
    if (inner.axis->parent != outer.axis || inner.axis->attached.defined()) {
      return refuse("sparse_fuse/P2", "axis '" + inner.axis->name + "' does not stand below '" + outer.axis->name + "'",
                    {nest.iteration}, "fuse an axis with its parent");
    }
    inner.fused = true;
    variables[nest.at[i]] = make(std::move(inner));
  }
  return give_nest(state, nest, std::move(variables));
}

}  // namespace tilewright::schedule
