// Interval arithmetic on integers of unlimited size, as Python's.
#pragma once

#include <optional>

#include "ir/op.h"

namespace tilewright {

__extension__ using WideInteger = __int128;

/// All integers from `low` to `high`.
struct IntegerRange {
  WideInteger low, high;
};

/// Whether the integer type represents all integers of the range.
bool holds(DataType type, const IntegerRange& range);
/// Returns the range of Add, Sub, Mul, FloorDiv, FloorMod, Min, Max, or (Kind::kCall) of the bit operation `intrinsic`,
/// for operands in these ranges. Nothing if a result may need more than 126 bits, or if there is no result.
std::optional<IntegerRange> range_of_operation(Kind kind, Intrinsic intrinsic, const IntegerRange& a,
                                               const IntegerRange& b);

}  // namespace tilewright
