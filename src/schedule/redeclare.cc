#include "schedule/redeclare.h"

#include "analysis/block_access_region.h"
#include "analysis/block_facts.h"
#include "ir/build.h"

namespace tilewright::schedule {

Ref<Block> with_regions_around(const Tree& before, const Ref<Block>& root, uint64_t identity) {
  const Tree& after = Tree::of(root);
  TreeEdit edit(after);
  bool changed = false;
  for (int at = after[after.block(identity)].scope; at > 0; at = after[at].scope) {
    const Ref<Block> block = after.block_ref(at);
    const int was = before.block(block->id.value);
    const bool declared = was != Tree::kNone && analysis::BlockFacts::of(before.block_ref(was)).undeclared.empty();
    if (!declared || analysis::BlockFacts::of(block).undeclared.empty()) continue;
    changed = true;
    edit.change_block(at, [](Block& outer) {
      analysis::BlockAccess found = analysis::block_access_region(make<Block>(Block(outer)));
      outer.reads = std::move(found.reads);
      outer.writes = std::move(found.writes);
    });
  }
  return changed ? edit.finish() : root;
}

}  // namespace tilewright::schedule
