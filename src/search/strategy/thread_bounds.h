// How many threads and virtual threads the tiles of a design space give a block, in closed form over its decisions.
// Most tilings at random have too few threads or too many, which VerifyGPUCode finds only after the steps were done
// again.
//
//   v0, v1, v2 = sch.sample_perfect_tile(i, n=3)      the product of the factors of loops that are bound to
//   _, l1, _ = sch.split(i, [v0, v1, v2])             threadIdx, here v1 * v4, has to be between the annotations
//   f = sch.fuse(l1, l4)                              meta_schedule.thread_extent_low_inclusive and ..._high_inclusive
//   sch.bind(f, "threadIdx.x")                        of the block
#pragma once

#include <optional>
#include <vector>

#include "schedule/random.h"
#include "schedule/trace.h"
#include "target/target.h"

namespace tilewright::search {

class ThreadBounds {
 public:
  ThreadBounds() = default;
  /// Of the trace of a design space, whose tiles have decisions.
  ThreadBounds(const schedule::Trace& trace, const Target& target);

  /// Samples the tiles that decide about threads and that `decisions`, those of the first sampling steps, leave open:
  /// until all bounds hold, or many times. Returns how often they did not hold.
  int64_t sample(schedule::Random& random, std::vector<schedule::Value>& decisions) const;

 private:
  struct Tile {
    size_t sample;  ///< number among the sampling steps
    int64_t extent, count, most_innermost;
  };
  struct Factor {
    size_t tile, position;
  };
  using Factors = std::vector<Factor>;
  struct Bound {
    Factors factors;
    int64_t low, high;
  };
  using Tilings = std::vector<std::optional<std::vector<int64_t>>>;

  bool hold(const Tilings& tilings) const;

  std::vector<Tile> tiles_;
  std::vector<Bound> bounds_;
};

}  // namespace tilewright::search
