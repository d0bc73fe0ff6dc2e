// Which instances of a block access a region of a buffer.
#pragma once

#include <vector>

#include "arith/int_set.h"
#include "ir/stmt.h"

namespace tilewright::schedule {

/// Values that each axis of a block shall take, while the loops around the new place are constant. The ends may mention
/// other axes of the block. An open set: all.
using AxisSets = arith::Box;

/// How a region of a block relates to the box one knows of the buffer.
enum class Fit {
  kTouch,   ///< instances whose region has an element in the box
  kWithin,  ///< instances whose region is in the box
};

/// Sets that hold every instance (kTouch), or instances only (kWithin, where the region's form is understood), of the
/// block for which `region` fits `box`. Axes about which a dimension says nothing stay open. The block checks later on
/// are what makes the result right; this makes it small.
AxisSets solve_axes(const Block& block, const Ref<BufferRegion>& region, const arith::Box& box, Fit fit,
                    arith::Analyzer& analyzer);

/// The terms of a sum or difference.
struct Term {
  Expr value;
  bool negative;
};
std::vector<Term> terms_of(const Expr& sum);

}  // namespace tilewright::schedule
