// Memory of the interpreted program, with what is known about each element: whether it was written, and by whom.
//
// A pointer is an integer: the number of an allocation in the upper bits, a byte offset in the lower 40. Null is 0.
//
// Races. Iterations of parallel loops run one after another, in order, and a counter gives each its start. An access
// is stamped with the counter. Let the loops around the current point be L1 (outermost) to Ln, `begin` of each the
// counter when this execution of the loop began, and `start` when its current iteration began. An earlier access with
// stamp e is unordered with the current point exactly if begin(Lj) < e < start(Lj) for some j: it came after the loop
// began, and before the current iteration, so it belongs to another iteration. One last reader and one last writer per
// element are enough to find a race wherever there is one (Feng and Leiserson, "Efficient detection of determinacy
// races in Cilk programs", 1997). Atomic operations conflict with all but each other: one last step is enough too. A
// barrier orders all that came before it: it moves `begin` of the team's loops.
//
// In lowered programs (InterpretOptions::lanes_in_step) lanes race only if running them in lockstep, each statement for
// all lanes, orders two accesses differently from running them sequentially. The position in the body decides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace tilewright::interpreter {

/// Who used an element last, from inside a parallel loop.
struct Shadow {
  uint32_t writer = 0, reader = 0;  // stamps; 0: nobody
  int writer_site = 0, reader_site = 0;
  uint32_t updater = 0;  // by an atomic operation
  int updater_site = 0;
};

/// Memory of calloc(): zeros, of which the machine has only those pages that were accessed.
struct Freed {
  void operator()(void* memory) const { std::free(memory); }
};

struct Allocation {
  std::byte* data = nullptr;
  int64_t size = 0;  // bytes
  int64_t granule = 1;
  bool live = false;
  bool writable = true;
  std::unique_ptr<std::byte[], Freed> owned;
  std::unique_ptr<uint8_t[], Freed> written;  // per byte; null: all of it was
  std::unique_ptr<Shadow[]> shadow;           // per granule; null until a parallel loop touches it
  int site = -1;                              // AllocationSite; -1: memory of the caller, constants
  std::string name;
};

/// One execution of a parallel loop, or of the threads of a team between two barriers.
struct Fork {
  int site = 0;  // LoopSite
  uint32_t begin = 0;
  int64_t count = 0;             // threads of a team; 0: iterations that are no threads
  std::vector<uint32_t> starts;  // starts of the iterations so far, ascending
  std::vector<int64_t> indices;
  /// The iteration that was running at `stamp`.
  int64_t index_at(uint32_t stamp) const;
};
struct Level {
  Fork* fork = nullptr;
  uint32_t start = 0;
  int64_t index = 0;
  uint64_t id = 0;       // no two levels ever share one
  bool in_team = false;  // an iteration is a thread of its own
};

inline constexpr int kOffsetBits = 40;
inline int64_t allocation_of(int64_t pointer) { return pointer >> kOffsetBits; }
inline int64_t offset_of(int64_t pointer) { return pointer & ((int64_t{1} << kOffsetBits) - 1); }

class Memory {
 public:
  Memory() { allocations_.emplace_back(); }  // number 0 is null
  /// 0 when there is no memory.
  int64_t allocate(int64_t bytes, int64_t granule, std::string name, bool track_written);
  /// Memory of the caller, all of it written.
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
