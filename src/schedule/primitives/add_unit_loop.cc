// Put a loop of one iteration around a block or a loop.
//
//   Before                          After  sch.add_unit_loop(sch.get_block("B"))
//   with T.block("B"):              for u in range(1):
//     vi = T.axis.spatial(1, 0)       with T.block("B"):
//     B[vi] = A[vi]                     vi = T.axis.spatial(1, 0)
//                                       B[vi] = A[vi]
//
// Requires  P1 it is not the root block
#include "schedule/primitives/add_unit_loop.h"

#include "ir/build.h"
#include "schedule/edit.h"
#include "schedule/primitive.h"

namespace tilewright::schedule {

Result<Plan> plan(const State& state, const AddUnitLoop& add) {
  TW_TRY(place, state.find(add.block_or_loop));
  if ((*place.tree)[place.at].parent == Tree::kNone) {
    return refuse("add_unit_loop/P1", "no loop can stand around the root block: it is the body of the function", place,
                  "pass a block inside of it, or a loop");
  }
  Ref<Var> u = var("u");
  For loop;
  loop.loop_var = u;
  loop.min = i32(0);
  loop.extent = i32(1);
  loop.body = place.tree->stmt(place.at);
  TreeEdit edit(*place.tree);
  edit.replace(place.at, make(std::move(loop)));
  return give_loops(place.func, edit.finish(), {u});
}

}  // namespace tilewright::schedule
