// Put the axes of a block into another order. Nothing computes otherwise: axes are known by name, not by position.
//
//   Before                                After  sch.reorder_block_iter_var(B, [1, 0])
//   for i, j in T.grid(4, 8):             for i, j in T.grid(4, 8):
//     with T.block("B"):                    with T.block("B"):
//       vi = T.axis.spatial(4, i)             vj = T.axis.spatial(8, j)
//       vj = T.axis.spatial(8, j)             vi = T.axis.spatial(4, i)
//       B[vi, vj] = A[vi, vj]                 B[vi, vj] = A[vi, vj]
//
// Requires  P1 new_order names each axis once
//           P2 the block is not the root
#include <algorithm>

#include "schedule/edit.h"
#include "schedule/primitive.h"
#include "schedule/primitives/reorder_block_iter_var.h"

namespace tilewright::schedule {

Result<Plan> plan(const State& state, const ReorderBlockIterVar& reorder) {
  TW_TRY(place, state.find(reorder.block));
  const Block& block = place.block();
  std::vector<int64_t> sorted = reorder.new_order;
  std::ranges::sort(sorted);
  bool each_once = sorted.size() == block.iter_vars.size();
  for (size_t i = 0; each_once && i < sorted.size(); ++i) each_once = sorted[i] == static_cast<int64_t>(i);
  if (!each_once) {
    std::string order;
    for (int64_t axis : reorder.new_order) order += (order.empty() ? "" : ", ") + std::to_string(axis);
    return refuse("reorder_block_iter_var/P1",
                  "new_order = [" + order + "] does not name each of the " + std::to_string(block.iter_vars.size()) +
                      " axes of " + describe(place) + " once",
                  place, "axes are numbered from 0 on");
  }
  const BlockRealize* realize = place.tree->realize_at(place.at);
  if (!realize)
    return refuse("reorder_block_iter_var/P2", "the root block has no axes", place, "name a block inside of it");
  std::vector<Ref<IterVar>> axes;
  std::vector<Expr> values;
  for (int64_t from : reorder.new_order) {
    axes.push_back(block.iter_vars[from]);
    values.push_back(realize->iter_values[from]);
  }
  TreeEdit edit(*place.tree);
  edit.change_block(place.at, [&](Block& changed) { changed.iter_vars = axes; });
  edit.change_realize(place.at, [&](BlockRealize& changed) { changed.iter_values = values; });
  return give_loops(place.func, edit.finish(), {});
}

}  // namespace tilewright::schedule
