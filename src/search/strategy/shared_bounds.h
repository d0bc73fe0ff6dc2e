// How many bytes of shared memory the copies of a design space take at least, in closed form over its decisions.
//
//   copy = sch.cache_read(C, 0, "shared")     C reads A[vi * 2 + vr, vk]: at a loop inside of which vi takes d0, vr d1
//   sch.compute_at(copy, k_0)                 and vk d2 values, the copy has ((d0 - 1) * 2 + d1) * d2 elements; d0, d1
//                                             and d2 are products of factors of tiles
//
// What a kernel of tensor cores writes back by way of shared memory counts where the formula agrees with the design
// space itself. It is a lower bound: what an index adds that is not linear does not count, nor do buffers whose copies
// are not made at a loop around the block that reads them.
#pragma once

#include <vector>

#include "schedule/schedule.h"
#include "search/strategy/tile_factors.h"

namespace tilewright::search {

class SharedBounds {
 public:
  SharedBounds() = default;
  /// Of a design space.
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

    uint32_t block;   ///< that reads it: those of one block are alive together
    int64_t element;  ///< bytes
    std::vector<Extent> shape;
    int64_t versions = 1;             ///< of a pipeline that has several iterations
    TileFactors::Factors iterations;  ///< of that pipeline
  };
  friend class SharedCopies;

  std::vector<Copy> copies_;
};

}  // namespace tilewright::search
