// Quotients of sizes that are rounded up, beside the exact ceildiv() of ir/build.h.
#pragma once

#include "ir/expr.h"

namespace tilewright {

/// How often a step b > 0 has to be taken to get over a size: a number where both are; else (a + b - 1) // b, since
/// sizes are small enough for what is made of them (arith/analyzer.h).
Expr size_ceildiv(const Expr& a, const Expr& b);
/// A size with (a + c - 1) // c in the place of a // c + (a % c != 0), where `a` is made of variables and c > 0 is a
/// number.
Expr size_text(const Expr& size);
/// An extent with a // c + (a % c != 0) in the place of (a + c - 1) // c where c > 0 is a number: as it is executed,
/// where it may be made of data that no call is asked about.
Expr exact_extent(const Expr& extent);

}  // namespace tilewright
