#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct RFactor {
  LoopRV loop;
  int64_t factor_axis = 0;
  using Members = Fields<&RFactor::loop, &RFactor::factor_axis>;
  using Returns = BlockRV;
  static constexpr std::string_view kDoc = R"(Reduce each iteration of a loop separately, then the partial results.

A new block BLOCK_rf keeps one partial result for each iteration of the loop, in a buffer with one dimension more; the
block itself combines them. Floating-point sums are added up in another order than before.

Where data select the elements to which the block adds, as in ``Y[R[vp]] = Y[R[vp]] + A[vp]``, each iteration of the loop
adds to a copy of the whole result, and the block itself adds the copies.

An argmax or argmin that keeps the first of equal values (>=, <=) finds the first one in the new order. That is the same
one where the loop is the outermost one of the reduction; verify() reports others. Let the smaller index decide between
equal values to factor any loop: `best > value or (best == value and index < k)`. Where values are NaN, any may be found.

Args:
    loop: a serial loop that drives the reduction, and whose only block is the reduction block.
    factor_axis: where the new dimension goes; negative ones count from the back, -1 is the last.

Returns:
    The new block, BLOCK_rf.)";
};

}  // namespace tilewright::schedule
