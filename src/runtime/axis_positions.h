// The positions of nonzeros along one axis of a sparse format, which follow from their keys. Everything runs on the
// threads of a context.
#pragma once

#include <cstdint>

#include "runtime/values.h"

namespace tilewright::runtime {

/// A number for each nonzero, base[i] * radix + offset[i]: a position along a dense axis below another one. An array
/// without data holds zeros.
struct MixedRadix {
  tw_integers base;
  int64_t radix;
  tw_integers offset;
};

/// What the nonzeros have along an axis.
struct AxisKeys {
  MixedRadix parents;  ///< positions along the parent of the axis, less than num_parents
  int64_t num_parents;
  tw_integers keys;  ///< not negative
};

/// Where positions go. All integers have as many bits as the base of `parents`.
struct AxisPositions {
  void* positions;  ///< of each nonzero
  void* offsets;    ///< num_parents + 1: position p of the parent has those from offsets[p] to before offsets[p + 1]
  int32_t bits;
};

struct AxisCount {
  int32_t code;   ///< TW_OK, or the code of a failed loop
  int64_t count;  ///< positions along the axis; more than `bits` hold: no position is written
  int64_t fault;  ///< the first nonzero whose key is negative or whose parent is out of range; -1: there is none
};

/// An axis that has as many positions below each of its parent's as the largest key there needs.
AxisCount varied_positions(tw_ctx* ctx, const AxisKeys& axis, const AxisPositions& result);

/// An axis that has one position for each key that occurs below a position of its parent, in ascending order. Two
/// passes where the keys of each parent ascend in the order of the nonzeros; else those of one parent are sorted at a
/// time.
AxisCount compressed_positions(tw_ctx* ctx, const AxisKeys& axis, const AxisPositions& result);

/// Stores the value of each nonzero at its position of an array of the same type; its number, where `values` has no
/// data. Returns the first nonzero whose position is outside of the array or, if `verify` is set, holds another value
/// in the end; -1 if there is none.
int64_t scatter(tw_ctx* ctx, const MixedRadix& positions, int64_t nonzeros, tw_integers values, bool verify, void* out,
                int64_t count, int32_t bits);

}  // namespace tilewright::runtime
