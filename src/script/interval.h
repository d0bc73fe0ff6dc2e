// Converts between the intervals of scripts, [start, stop), and those of the IR, (min, extent). IRBuilder and the
// printer share these functions, so that printed text parses to the same program.
#pragma once

#include "ir/build.h"

namespace tilewright::script {

inline bool is_zero_literal(const Expr& e) { return e.is<IntImm>() && e.as<IntImm>()->value == 0; }

/// Converts a bound of a loop, axis or region to int32 or int64, whose index arithmetic does not overflow. Smaller and
/// unsigned types wrap: in uint8, the extent b - a would be 253 for b = a - 3.
Expr as_index(const Expr& e);

/// Returns the extent of [start, stop): the difference of constants, `stop` itself for a start of 0, `e` for a stop
/// `start + e`, else `stop - start` simplified.
Expr extent_of(const Expr& start, const Expr& stop);

/// Returns a stop for which extent_of(min, stop) is `extent`. Both arguments have one type.
Expr stop_of(const Expr& min, const Expr& extent);

/// Returns the vector index of the slice [start:stop:step]; `start` if the slice has one element. Null if the number of
/// elements is neither constant nor a multiple of vscale. `step`: null for 1.
Expr ramp_of_slice(const Expr& start, const Expr& stop, const Expr& step);

}  // namespace tilewright::script
