// A lower bound of the shared memory that a candidate allocates, in bytes, in closed form over sampled tile factors.
//
//   copy = sch.cache_read(C, 0, "shared")     C reads A[vi * 2 + vr, vk]
//   sch.compute_at(copy, k_0)                 inside of k_0, vi has d0 values, vr has d1 and vk has d2: the copy has
//                                             ((d0 - 1) * 2 + d1) * d2 elements. d0, d1 and d2 are products of tile
//                                             factors
//
// Ignored, so that it stays a lower bound: nonlinear terms of indices, and buffers whose copies are not computed at a
// loop around the block that reads them. The shared buffer through which tensor cores write their result back counts
// where the formula gives the size that the design space itself has.
#pragma once

#include <vector>

#include "schedule/schedule.h"
#include "search/strategy/tile_factors.h"

namespace tilewright::search {

class SharedBounds {
 public:
  SharedBounds() = default;
  /// The bounds of a design space.
  SharedBounds(const schedule::Schedule& space, const TileFactors& tiles);

  /// The bytes of the kernel that needs most.
  int64_t bytes(const TileFactors::Tilings& tilings) const;

 private:
  /// constant + sum over axes of by * (product of factors - 1), at most `most`.
  struct Extent {
    struct Part {
      int64_t by;
      TileFactors::Factors factors;
    };
    int64_t constant, most;
    std::vector<Part> parts;
  };
  struct Copy {
    int64_t bytes_of(const TileFactors::Tilings& tilings) const;

    uint32_t block;   ///< reading block, or the copy of a result: buffers of one are alive together
    int64_t element;  ///< bytes
    std::vector<Extent> shape;
    int64_t versions = 1;             ///< versions in a pipeline with several iterations
    TileFactors::Factors iterations;  ///< iterations of that pipeline
  };
  friend class SharedCopies;

  std::vector<Copy> copies_;
};

}  // namespace tilewright::search
