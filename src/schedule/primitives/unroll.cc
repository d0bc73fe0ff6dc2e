// Unroll a loop.
//
//   Before                                After  sch.unroll(i)
//   for i in range(4):                    for i in T.unroll(4):
//     with T.block("B"):                    with T.block("B"):
//       vi = T.axis.spatial(4, i)             vi = T.axis.spatial(4, i)
//       B[vi] = A[vi]                         B[vi] = A[vi]
//
// The order of iterations stays. A thread binding is dropped.
//
// Requires  P1 what threads of the loop gave to one another, one after another they do not need
#include "schedule/primitives/unroll.h"

#include "analysis/independence.h"
#include "analysis/threads.h"
#include "ir/make.h"
#include "schedule/edit.h"
#include "schedule/primitive.h"

namespace tilewright::schedule {

Result<Plan> plan(const State& state, const Unroll& unroll) {
  TW_TRY(place, state.find(unroll.loop));
  For loop = place.loop();
  loop.kind = ForKind::kUnrolled;
  loop.thread_binding = {};
  TreeEdit edit(*place.tree);
  edit.replace(place.at, make(std::move(loop), place.node().span()));
  Plan plan = give_loops(place.func, edit.finish(), {});
  if (auto axis = analysis::thread_axis(place.loop()); axis && axis->in_team()) {
    const Tree& after = Tree::of(plan.root);
    if (auto problem = analysis::why_order_matters(after, {after.loop(place.loop().loop_var)})) {
      return refuse("unroll/P1", problem->obstacle, "threads of a team run at the same time: keep the loop bound");
    }
  }
  return plan;
}

}  // namespace tilewright::schedule
