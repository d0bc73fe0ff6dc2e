// Computes the positions of nonzeros along one axis of a sparse format from their keys, on the threads of a context.
#pragma once

#include <cstdint>

#include "runtime/values.h"

namespace tilewright::runtime {

/// The number base[i] * radix + offset[i] for each nonzero i, such as its position along a dense axis below another
/// axis. An array without data holds zeros.
struct MixedRadix {
  tw_integers base;
  int64_t radix;
  tw_integers offset;
};

/// The input: a parent position and a key for each nonzero.
struct AxisKeys {
  MixedRadix parents;  ///< positions along the parent of the axis, less than num_parents
  int64_t num_parents;
  tw_integers keys;  ///< not negative
};

/// The output arrays. All integers have as many bits as the base of `parents`.
struct AxisPositions {
  void* positions;  ///< position of each nonzero
  void* offsets;    ///< num_parents + 1: parent position p has the positions [offsets[p], offsets[p + 1])
  int32_t bits;
};

struct AxisCount {
  int32_t code;   ///< TW_OK, or the code of a failed loop
  int64_t count;  ///< positions along the axis; more than `bits` hold: no position is written
  int64_t fault;  ///< the first nonzero whose key is negative or whose parent is out of range; -1: there is none
};

/// A dense variable axis: each parent position has as many positions as its largest key requires.
AxisCount varied_positions(tw_ctx* ctx, const AxisKeys& axis, const AxisPositions& result);

/// A compressed axis: each parent position has one position for each distinct key, in ascending order. Takes two passes
/// if the keys of each parent are sorted already; otherwise sorts the keys of one parent position at a time.
AxisCount compressed_positions(tw_ctx* ctx, const AxisKeys& axis, const AxisPositions& result);

/// Stores the value of each nonzero at its position in an array of the same type, or the nonzero's number if `values`
/// has no data. Returns the first nonzero whose position is out of bounds or, with `verify`, was overwritten by another
/// value; -1 if there is none.
int64_t scatter(tw_ctx* ctx, const MixedRadix& positions, int64_t nonzeros, tw_integers values, bool verify, void* out,
                int64_t count, int32_t bits);

}  // namespace tilewright::runtime
