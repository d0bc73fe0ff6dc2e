// Give the blocks of a scope that write a buffer which is not allocated inside it.
#include "analysis/scope.h"
#include "schedule/primitive.h"

namespace tilewright::schedule {

Result<Plan> plan(const State& state, const GetOutputBlocks& get) {
  TW_TRY(place, state.find(get.scope_block));
  const analysis::Scope& scope = analysis::Scope::of(place.block());
  Plan plan;
  for (size_t i = 0; i < scope.children().size(); ++i) {
    if (scope.is_output(static_cast<int>(i))) {
      plan.outputs.push_back(Handle::block(place.func, *scope.children()[i]->block));
    }
  }
  return plan;
}

}  // namespace tilewright::schedule
