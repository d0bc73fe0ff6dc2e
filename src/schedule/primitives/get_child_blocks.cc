// Return the blocks directly below a block or a loop.
#include "schedule/primitives/get_child_blocks.h"

#include "schedule/primitive.h"

namespace tilewright::schedule {

Result<Plan> plan(const State& state, const GetChildBlocks& get) {
  TW_TRY(place, state.find(get.block_or_loop));
  return give_blocks(place.func, *place.tree, place.tree->child_blocks(place.at));
}

}  // namespace tilewright::schedule
