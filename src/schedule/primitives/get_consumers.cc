// Give the blocks of the same scope that read what a block writes.
//
// Requires  P1 the block is not the root
#include "schedule/primitives/get_consumers.h"

#include "analysis/scope.h"
#include "schedule/primitive.h"

namespace tilewright::schedule {

Result<Plan> plan(const State& state, const GetConsumers& get) {
  TW_TRY(place, state.find(get.block));
  const Tree& tree = *place.tree;
  int scope_at = tree[place.at].scope;
  if (scope_at == Tree::kNone) {
    return refuse("get_consumers/P1", "the root block has no consumers: nothing surrounds it", place,
                  "name a block inside of it: sch.get_child_blocks() gives them");
  }
  const analysis::Scope& scope = analysis::Scope::of(tree, scope_at);
  Plan plan;
  for (int child : scope.consumers(scope.child(place.block().id.value))) {
    plan.outputs.push_back(Handle::block(place.func, *scope.children()[child]->block));
  }
  return plan;
}

}  // namespace tilewright::schedule
