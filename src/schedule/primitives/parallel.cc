// Let the iterations of a loop run on several cores.
//
//   Before                                After  sch.parallel(i)
//   for i in range(128):                  for i in T.parallel(128):
//     with T.block("B"):                    with T.block("B"):
//       vi = T.axis.spatial(128, i)           vi = T.axis.spatial(128, i)
//       B[vi] = A[vi]                         B[vi] = A[vi]
//
// Requires  P1 everything below is in blocks
//           P2 their instances may run in any order
//           P3 the loop drives no reduction
//           P4 no two iterations write the same element
//              Atomic operations (ir/atomic_operation.h) may meet in an element, if their results are not used, they
//              are of one operation, and nothing else below the loop uses what they update. Their loops may drive
//              reductions
//           P5 none reads what another one writes. A buffer that is used below the loop only, and that each iteration
//              fills before it reads it, counts as one per iteration.
#include "schedule/primitives/parallel.h"

#include "schedule/execution.h"

namespace tilewright::schedule {
namespace {
constexpr ExecutionCodes kParallelCodes = {"parallel/P1", "parallel/P2", "parallel/P3", "parallel/P4", "parallel/P5"};
}  // namespace

Result<Plan> plan(const State& state, const Parallel& parallel) {
  return set_kind(state, parallel.loop, ForKind::kParallel, kParallelCodes);
}

}  // namespace tilewright::schedule
