#include "lower/gpu/shared_arena.h"

#include <algorithm>

#include "support/ranges.h"

namespace tilewright::lower {

int64_t place_in_arena(const std::vector<SharedTile*>& tiles) {
  std::vector<SharedTile*> order;
  for (SharedTile* tile : tiles) {
    if (tile->first >= 0) order.push_back(tile);
  }
  std::ranges::stable_sort(order, [](const SharedTile* a, const SharedTile* b) { return a->bytes > b->bytes; });
  int64_t size = 0;
  for (size_t i : indices_of(order)) {
    SharedTile& tile = *order[i];
    std::vector<const SharedTile*> others;
    for (size_t j = 0; j < i; ++j) {
      if (order[j]->first <= tile.last && tile.first <= order[j]->last) others.push_back(order[j]);
    }
    std::ranges::sort(others, [](const SharedTile* a, const SharedTile* b) { return a->offset < b->offset; });
    for (const SharedTile* other : others) {
      if (tile.offset + tile.bytes <= other->offset) break;
      int64_t behind = other->offset + other->bytes;
      tile.offset = std::max(tile.offset, (behind + tile.alignment - 1) / tile.alignment * tile.alignment);
    }
    size = std::max(size, tile.offset + tile.bytes);
  }
  return size;
}

}  // namespace tilewright::lower
