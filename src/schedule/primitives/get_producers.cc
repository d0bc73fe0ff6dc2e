// Give the blocks of the same scope that write what a block reads.
//
// Requires  P1 the block is not the root
#include "schedule/primitives/get_producers.h"

#include "analysis/scope.h"
#include "schedule/primitive.h"

namespace tilewright::schedule {

Result<Plan> plan(const State& state, const GetProducers& get) {
  TW_TRY(place, state.find(get.block));
  const Tree& tree = *place.tree;
  int scope_at = tree[place.at].scope;
  if (scope_at == Tree::kNone) {
    return refuse("get_producers/P1", "the root block has no producers: nothing surrounds it", place,
                  "name a block inside of it: sch.get_child_blocks() gives them");
  }
  const analysis::Scope& scope = analysis::Scope::of(tree, scope_at);
  Plan plan;
  for (int child : scope.producers(scope.child(place.block().id.value))) {
    plan.outputs.push_back(Handle::block(place.func, *scope.children()[child]->block));
  }
  return plan;
}

}  // namespace tilewright::schedule
