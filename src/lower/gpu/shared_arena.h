// Offsets of buffers of shared memory in the one array of their kernel: those that are never alive together share
// bytes.
#pragma once

#include <cstdint>
#include <vector>

namespace tilewright::lower {

/// A buffer in shared memory, alive between two positions in the program.
struct SharedTile {
  int64_t bytes = 0;
  int first = -1, last = -1;  ///< positions of accesses; -1: there are none
  int64_t alignment = 16;     ///< bytes; 16 are the widest vector access
  int64_t offset = 0;         ///< where it begins, from place_in_arena()
};

/// Places the tiles by first fit, the largest first. Returns the size of the arena in bytes.
int64_t place_in_arena(const std::vector<SharedTile*>& tiles);

}  // namespace tilewright::lower
