// A hash table by address that keeps its nodes alive. Its entries are one array in order of insertion. Clearing costs
// no more than filling did, so a table that was large once does not slow later scopes.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "ir/node.h"

#include "support/ranges.h"

namespace tilewright::arith {

template <class V>
class NodeTable {
 public:
  /// Valid until the next insertion.
  V* find(const NodeRef& node) { return const_cast<V*>(std::as_const(*this).find(node.get())); }
  const V* find(const NodeBase* node) const {
    if (slots_.empty()) return nullptr;
    for (size_t at = start(node);; at = (at + 1) & mask()) {
      uint32_t slot = slots_[at];
      if (slot == 0) return nullptr;
      const Entry& entry = entries_[slot - 1];
      if (entry.node.get() == node) return &entry.value;
    }
  }
  /// The node must not be in the table. Valid until the next insertion.
  V& insert(const NodeRef& node, V value) {
    if (2 * (entries_.size() + 1) > slots_.size()) grow();
    if (entries_.capacity() == 0) entries_.reserve(kFirstEntries);
    entries_.push_back({node, std::move(value)});
    place(entries_.size());
    return entries_.back().value;
  }
  size_t size() const { return entries_.size(); }
  void clear() {
    if (entries_.empty()) return;
    for (size_t i : indices_of(entries_)) {
      // Found at or after its start: every slot up to the next free one goes.
      for (size_t at = start(entries_[i].node.get()); slots_[at] != 0; at = (at + 1) & mask()) slots_[at] = 0;
    }
    entries_.clear();
  }

 private:
  struct Entry {
    NodeRef node;
    V value;
  };
  /// Most tables have a few.
  static constexpr size_t kFirstEntries = 8;
  size_t mask() const { return slots_.size() - 1; }
  size_t start(const NodeBase* node) const {
    uint64_t hash = (reinterpret_cast<uintptr_t>(node) >> 4) * 0x9e3779b97f4a7c15ULL;
    return (hash >> 32) & mask();
  }
  void place(size_t number) {
    size_t at = start(entries_[number - 1].node.get());
    while (slots_[at] != 0) at = (at + 1) & mask();
    slots_[at] = static_cast<uint32_t>(number);
  }
  void grow() {
    slots_.assign(slots_.empty() ? 32 : slots_.size() * 2, 0);
    for (size_t number = 1; number <= entries_.size(); ++number) place(number);
  }

  std::vector<Entry> entries_;
  std::vector<uint32_t> slots_;  ///< 0: free, else number of an entry; a power of two of them
};

}  // namespace tilewright::arith
