// Return the loops around a block, up to the enclosing block.
#include "schedule/primitives/get_loops.h"

#include "schedule/primitive.h"

namespace tilewright::schedule {

Result<Plan> plan(const State& state, const GetLoops& get) {
  TW_TRY(place, state.find(get.block));
  Plan plan;
  for (int at : place.tree->loops_above(place.at)) {
    plan.outputs.push_back(Handle::loop(place.func, place.tree->for_at(at).loop_var));
  }
  return plan;
}

}  // namespace tilewright::schedule
