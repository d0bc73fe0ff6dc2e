// Write out the iterations of a loop one after another.
//
//   Before                                After  sch.unroll(i)
//   for i in range(4):                    for i in T.unroll(4):
//     with T.block("B"):                    with T.block("B"):
//       vi = T.axis.spatial(4, i)             vi = T.axis.spatial(4, i)
//       B[vi] = A[vi]                         B[vi] = A[vi]
//
// The order of iterations stays, so nothing is required. A thread binding is dropped.
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
  edit.replace(place.at, make<For>(std::move(loop), place.node().span()));
  return give_loops(place.func, edit.finish(), {});
}

}  // namespace tilewright::schedule
