// Ranges of integers as Python computes with them: without overflow.
#pragma once

#include <optional>

#include "ir/op.h"

namespace tilewright {

__extension__ using WideInteger = __int128;

/// All integers from `low` to `high`.
struct IntegerRange {
  WideInteger low, high;
};

/// Whether each of them is a value of the integer type.
bool holds(DataType type, const IntegerRange& range);
/// What Add, Sub, Mul, FloorDiv, FloorMod, Min, Max, or (Kind::kCall) the `intrinsic` of bits may give of operands in
/// these ranges. Nothing where a result may have more than 126 bits, or where there is no result.
std::optional<IntegerRange> range_of_operation(Kind kind, Intrinsic intrinsic, const IntegerRange& a,
                                               const IntegerRange& b);

}  // namespace tilewright
