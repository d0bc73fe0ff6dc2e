// Let the iterations of a loop run as the lanes of vector instructions.
//
//   Before                                After  sch.vectorize(i)
//   for i in range(16):                   for i in T.vectorized(16):
//     with T.block("B"):                    with T.block("B"):
//       vi = T.axis.spatial(16, i)            vi = T.axis.spatial(16, i)
//       B[vi] = A[vi]                         B[vi] = A[vi]
//
// Requires  P1 everything below is in blocks
//           P2 their instances may run in any order
//           P3 a reduction that the loop drives combines one value per element in any order: a sum, product, minimum,
//              maximum, conjunction or disjunction. Each lane then has a partial result
//              (lower/vector/vectorize_reductions.cc)
//           P4 no two iterations write the same element
//           P5 none reads what another one writes
//           P6 the loop starts at 0 and its extent is constant
//           P7 no loop below is parallel, vectorized or bound to a thread
#include "schedule/execution.h"

#include "ir/build.h"
#include "schedule/primitives/vectorize.h"

namespace tilewright::schedule {
namespace {
constexpr ExecutionCodes kVectorizeCodes = {"vectorize/P1", "vectorize/P2", "vectorize/P3", "vectorize/P4",
                                            "vectorize/P5"};
}  // namespace

Result<Plan> plan(const State& state, const Vectorize& vectorize) {
  TW_TRY(place, state.find(vectorize.loop));
  const For& loop = place.loop();
  if (!is_const_int(loop.min, 0) || !const_int(loop.extent)) {
    return refuse("vectorize/P6", describe(place) + " is not a range from 0 to a constant", place,
                  "split off a constant part first, for instance sch.split(loop, factors=[None, 16])");
  }
  NodeRef inner;
  for (int at : place.tree->concurrent_loops()) {
    if (at != place.at && place.tree->contains(place.at, at)) inner = place.tree->stmt(at);
  }
  if (inner.defined()) {
    return refuse("vectorize/P7",
                  "below " + describe(place) + " " + describe_loop(*inner.as<For>()) +
                      " is parallel, vectorized or bound to a thread",
                  {place.node(), inner}, "vectorize the innermost of them");
  }
  return set_kind(state, vectorize.loop, ForKind::kVectorized, kVectorizeCodes);
}

}  // namespace tilewright::schedule
