// Return the variables of an iteration over sparse axes.
//
// Requires  P1 a handle of an iteration that is not lowered yet
#include "schedule/primitives/get_sp_iters.h"

#include "schedule/sparse_nest.h"

namespace tilewright::schedule {

Result<Plan> plan(const State& state, const GetSpIters& get) {
  TW_TRY(nest, find_iteration(state, get.iteration, "get_sp_iters/P1"));
  Plan plan;
  plan.func = nest.func;
  for (const Ref<SpIterVar>& iter : nest.iteration->iter_vars) {
    plan.outputs.push_back(Handle::loop(nest.func, iter->var));
  }
  return plan;
}

}  // namespace tilewright::schedule
