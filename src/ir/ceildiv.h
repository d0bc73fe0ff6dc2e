// Division of sizes that rounds up. ir/build.h has the general ceildiv(), which cannot overflow.
//
// Sizes are the extents of buffers and loops. Analyses assume that sums of sizes do not overflow (arith/analyzer.h),
// and calls check it (analysis/size_limits.h), so that the shorter form (a + b - 1) // b is valid for them.
#pragma once

#include "ir/expr.h"

namespace tilewright {

/// Returns the number of tiles of b > 0 elements that cover a size `a`: a constant if both are constants, otherwise
/// (a + b - 1) // b.
Expr size_ceildiv(const Expr& a, const Expr& b);
/// Rewrites a // c + (a % c != 0) to (a + c - 1) // c within a size. `a` is an expression of variables, and c > 0 is a
/// constant.
Expr size_text(const Expr& size);
/// Rewrites (a + c - 1) // c to a // c + (a % c != 0) within an extent, where c > 0 is a constant. Extents that are
/// computed from data are executed in this form: no check of the call ensures that a + c - 1 does not overflow.
Expr exact_extent(const Expr& extent);

}  // namespace tilewright
