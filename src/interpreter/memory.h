// Memory of the interpreted program. Shadow memory records whether each byte was written, and which accesses used each
// element last.
//
// A pointer is an integer: the number of an allocation in the upper bits, a byte offset in the lower 40. Null is 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace tilewright::interpreter {

/// The last accesses to an element from inside a parallel loop (race_levels.h).
struct Shadow {
  uint32_t writer = 0, reader = 0;  // stamps; 0: no access
  int writer_site = 0, reader_site = 0;
  uint32_t updater = 0;  // by an atomic operation
  int updater_site = 0;
};

/// Deleter for calloc(), whose zero pages cost no memory until they are touched.
struct FreeDeleter {
  void operator()(void* memory) const { std::free(memory); }
};

struct Allocation {
  std::byte* data = nullptr;
  int64_t size = 0;     // bytes
  int64_t granule = 1;  // bytes that one Shadow tracks: one element of the buffer
  bool live = false;
  bool writable = true;
  std::unique_ptr<std::byte[], FreeDeleter> owned;
  std::unique_ptr<uint8_t[], FreeDeleter> written;  // per byte; null: all bytes were written
  std::unique_ptr<Shadow[]> shadow;                 // per granule; null until a parallel loop touches it
  int site = -1;                                    // AllocationSite; -1: memory of the caller, constants
  std::string name;
};

inline constexpr int kOffsetBits = 40;
inline int64_t allocation_of(int64_t pointer) { return pointer >> kOffsetBits; }
inline int64_t offset_of(int64_t pointer) { return pointer & ((int64_t{1} << kOffsetBits) - 1); }

class Memory {
 public:
  Memory() { allocations_.emplace_back(); }  // number 0 is null
  /// Returns a pointer to new memory, whose content is arbitrary; 0 if there is no memory.
  int64_t allocate(int64_t bytes, int64_t granule, std::string name, bool track_written);
  /// Adds memory of the caller, whose bytes all count as initialized. Returns a pointer.
  int64_t adopt(void* data, int64_t bytes, int64_t granule, bool writable, std::string name);
  void release(int64_t pointer);
  /// Null for null, freed and foreign pointers.
  Allocation* find(int64_t pointer) {
    auto id = static_cast<size_t>(allocation_of(pointer));
    if (id >= allocations_.size() || !allocations_[id].live) return nullptr;
    return &allocations_[id];
  }

 private:
  std::vector<Allocation> allocations_;
  std::vector<size_t> free_;
};

}  // namespace tilewright::interpreter
