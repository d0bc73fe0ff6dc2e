// Give the blocks inside of a block, nested ones too, that write a buffer which is not allocated inside it.

#include "schedule/primitives/get_output_blocks.h"
#include "schedule/primitive.h"
#include "support/ranges.h"

namespace tilewright::schedule {

Result<Plan> plan(const State& state, const GetOutputBlocks& get) {
  TW_TRY(place, state.find(get.scope_block));
  const Tree& tree = *place.tree;
  std::vector<int> outputs;
  for (int at : tree.blocks()) {
    if (at == place.at || !tree.contains(place.at, at)) continue;
    const Block& block = tree.block_at(at);
    bool seen_outside = any_of(block.writes, [&](const Ref<BufferRegion>& write) {
      for (int around = tree[at].scope;; around = tree[around].scope) {
        for (const Ref<Buffer>& own : tree.block_at(around).alloc_buffers) {
          if (own->data == write->buffer->data) return false;
        }
        if (around == place.at) return true;
      }
    });
    if (seen_outside) outputs.push_back(at);
  }
  return give_blocks(place.func, tree, outputs);
}

}  // namespace tilewright::schedule
