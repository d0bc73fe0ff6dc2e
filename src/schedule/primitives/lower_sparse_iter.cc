// Make blocks and loops of the iterations over sparse axes (sparse/lower_iterations.h).
//
//   Before                                               After  sch.lower_sparse_iter()
//   I = T.sp.dense_fixed(8)                              for i in range(8):
//   A = T.sp.match_buffer(a, (I,), "float32")              with T.block("twice0"):
//   with T.sp.iteration([I], "S", "twice") as [i]:           vi = T.axis.spatial(8, i)
//     A[i] = A[i] * 2                                        A[vi] = A[vi] * 2
//
// Requires  P1 a function to lower, which has sparse axes
//           it stores only to coordinates that exist ("sparse/store"), and what is searched for is known ahead
//           ("sparse/search")
#include "schedule/primitives/lower_sparse_iter.h"

#include "schedule/primitive.h"
#include "sparse/lower_iterations.h"

namespace tilewright::schedule {

Result<Plan> plan(const State& state, const LowerSparseIter& lower) {
  TW_TRY(func,
         function_meant(state, lower.func_name, "lower_sparse_iter/P1", "lower", "lower_sparse_iter(func_name=...)"));
  const Func& before = state.function_at(func);
  if (!sparse::is_sparse(before)) {
    return refuse("lower_sparse_iter/P1", "function '" + state.shown_name(func) + "' has no sparse axes", {},
                  "its blocks can be scheduled as they are");
  }
  TW_TRY(lowered, sparse::lower_iterations(before.cast<PrimFunc>()));
  Plan plan;
  plan.func = func;
  plan.functions.emplace_back(state.function_name(func), lowered);
  plan.recorded = LowerSparseIter{state.function_name(func)};
  return plan;
}

}  // namespace tilewright::schedule
