#include "lower/gpu/shared_arena.h"

#include <algorithm>

#include "ir/traverse.h"
#include "support/ranges.h"

namespace tilewright::lower {

void SharedArena::allocate(const Ref<Var>& data, int64_t bytes) {
  index_[data] = tiles_.size();
  tiles_.push_back({.bytes = bytes, .declared = ++position_});
}

void SharedArena::alias(const Ref<Var>& view, const Ref<Var>& data) {
  if (auto* found = find_value(index_, data)) index_[view] = size_t{*found};
}

void SharedArena::alias(const LetStmt& let) {
  if (!let.var.dtype().is_handle()) return;
  visit(
      let.value, [&](const Ref<Var>& v) { alias(let.var, v); },
      [&](const Ref<BufferLoad>& load) { alias(let.var, load->buffer->data); });
}

SharedTile* SharedArena::find(const Ref<Var>& data) {
  auto* found = find_value(index_, data);
  return found ? &tiles_[*found] : nullptr;
}

void SharedArena::touch(const Ref<Var>& data) {
  SharedTile* tile = find(data);
  if (!tile) return;
  if (tile->first < 0) tile->first = position_;
  tile->last = position_;
}

void SharedArena::extend(int begin, int end, bool is_pipeline) {
  for (SharedTile& tile : tiles_) {
    if (tile.last < begin || (tile.declared >= begin && !is_pipeline)) continue;
    tile.first = std::min(tile.first, begin);
    tile.last = end;
  }
}

int64_t SharedArena::place() {
  std::vector<SharedTile*> order;
  for (SharedTile& tile : tiles_) {
    if (tile.first >= 0) order.push_back(&tile);
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
