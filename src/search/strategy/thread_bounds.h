// How many threads and virtual threads, and how much shared memory, the tiles of a design space give a block, in closed
// form over its decisions. Most tilings at random have too few threads or too many, or too large tiles, which
// VerifyGPUCode finds only after the steps were done again.
//
//   v0, v1, v2 = sch.sample_perfect_tile(i, n=3)      the product of the factors of loops that are bound to
//   _, l1, _ = sch.split(i, [v0, v1, v2])             threadIdx, here v1 * v4, has to be between the annotations
//   f = sch.fuse(l1, l4)                              meta_schedule.thread_extent_low_inclusive and ..._high_inclusive
//   sch.bind(f, "threadIdx.x")                        of the block
//
// What is refused here VerifyGPUCode refuses too.
#pragma once

#include <string>
#include <vector>

#include "schedule/random.h"
#include "schedule/schedule.h"
#include "search/strategy/refusals.h"
#include "search/strategy/shared_bounds.h"
#include "search/strategy/tile_factors.h"
#include "target/target.h"

namespace tilewright::search {

class ThreadBounds {
 public:
  ThreadBounds() = default;
  /// The bounds of a design space.
  ThreadBounds(const schedule::Schedule& space, const Target& target);

  enum class Excess : uint8_t { kNone, kThreads, kSharedMemory };
  /// Returns the limit that the decisions of all sampling steps exceed.
  Excess excess(const std::vector<schedule::Value>& decisions) const;
  static const char* name_of(Excess excess);
  static void add(Refusals& refusals, Excess excess);

  /// Samples the tiles that decide about threads and that `decisions`, those of the first sampling steps, leave open:
  /// until all bounds hold, or many times. Adds to `refusals` each time they did not hold. Returns how often.
  int64_t sample(schedule::Random& random, std::vector<schedule::Value>& decisions, Refusals& refusals) const;

 private:
  struct Bound {
    TileFactors::Factors factors;
    int64_t times;  ///< threads that are no loop of the tiles: those of a warp
    int64_t low, high;
  };

  void note_threads(const schedule::Trace& trace, const Target& target);
  Excess excess(const TileFactors::Tilings& tilings) const;

  TileFactors tiles_;
  std::vector<Bound> bounds_;
  SharedBounds shared_;
  int64_t most_shared_ = 0;  ///< 0: not stated
};

}  // namespace tilewright::search
