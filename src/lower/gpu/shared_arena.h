// Lifetimes of buffers in shared memory, and their offsets in the one array of their kernel: buffers that are never
// alive together share bytes.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "ir/stmt.h"

namespace tilewright::lower {

/// A buffer in shared memory, alive between two positions in the program.
struct SharedTile {
  int64_t bytes = 0;
  int declared = 0;           ///< position of the allocation
  int first = -1, last = -1;  ///< positions of accesses; -1: there are none
  int64_t alignment = 16;     ///< bytes; 16 are the widest vector access
  int64_t offset = 0;         ///< where it begins, from SharedArena::place()
};

/// The shared memory of a kernel. Whoever visits the kernel reports allocations, accesses and loops in their order.
///
/// A buffer is alive from its first access to its last. An access inside a loop makes it alive in the whole loop if it
/// is allocated outside, since the next iteration may read what this one wrote, or if the loop is a pipeline, whose
/// iterations overlap.
class SharedArena {
 public:
  void allocate(const Ref<Var>& data, int64_t bytes);
  /// From now on, accesses through `view` are accesses of `data`.
  void alias(const Ref<Var>& view, const Ref<Var>& data);
  /// From now on, accesses through the pointer that it binds are accesses of what its value points into.
  void alias(const LetStmt& let);
  void touch(const Ref<Var>& data);
  void next_statement() { ++position_; }
  template <class Descend>
  void loop(bool is_pipeline, Descend descend) {
    const int begin = ++position_;
    descend();
    extend(begin, ++position_, is_pipeline);
  }
  /// Places the buffers by first fit, the largest first. Returns the size of the arena in bytes.
  int64_t place();

  /// The buffer that a pointer points into; null for other pointers.
  SharedTile* find(const Ref<Var>& data);
  /// In the order of their allocations.
  const std::vector<SharedTile>& tiles() const { return tiles_; }

 private:
  void extend(int begin, int end, bool is_pipeline);

  std::vector<SharedTile> tiles_;
  std::unordered_map<NodeRef, size_t> index_;
  int position_ = 0;
};

}  // namespace tilewright::lower
