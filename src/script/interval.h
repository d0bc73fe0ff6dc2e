// How scripts write what the IR holds as (min, extent): as start and stop. Used by the parser's side (IRBuilder) and by
// the printer, so that what one writes the other reads back.
#pragma once

#include "ir/build.h"

namespace tilewright::script {

inline bool is_zero_literal(const Expr& e) { return e.is<IntImm>() && e.as<IntImm>()->value == 0; }

/// The expression in a type whose arithmetic does not overflow, int32 or int64, for bounds of loops, axes and regions.
/// Smaller and unsigned types wrap: b - a would be 253 where b is a - 3, and tiles would end beyond the type.
Expr as_index(const Expr& e);

/// The extent of [start, stop): the difference of constants, `stop` itself for a start of 0, `e` where stop is
/// `start + e`, else `stop - start` simplified.
Expr extent_of(const Expr& start, const Expr& stop);

/// A stop for which extent_of(min, stop) is `extent` again. Both have one type.
Expr stop_of(const Expr& min, const Expr& extent);

/// The vector index that the slice [start:stop:step] means; a start alone where it has one element. Null when the
/// number of elements is neither constant nor a multiple of vscale. `step` may be null: 1.
Expr ramp_of_slice(const Expr& start, const Expr& stop, const Expr& step);

}  // namespace tilewright::script
