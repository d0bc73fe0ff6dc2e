// Detection of races between iterations of parallel loops.
//
// Iterations of parallel loops run one after another, in order, and a counter gives each its start. An access
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

#include <cstdint>
#include <vector>

namespace tilewright::interpreter {

/// One execution of a parallel loop, or of the threads of a team between two barriers.
struct Fork {
  int site = 0;  // LoopSite
  uint32_t begin = 0;
  int64_t count = 0;             // threads of a team; 0: the iterations are not threads
  std::vector<uint32_t> starts;  // starts of the iterations so far, ascending
  std::vector<int64_t> indices;
  /// Returns the iteration that was running at `stamp`.
  int64_t index_at(uint32_t stamp) const;
};

/// A parallel loop around the current point, and its current iteration.
struct LoopLevel {
  Fork* fork = nullptr;
  uint32_t start = 0;
  int64_t index = 0;
  uint64_t id = 0;       // unique among all levels
  bool in_team = false;  // each iteration is a thread of a team
};

}  // namespace tilewright::interpreter
