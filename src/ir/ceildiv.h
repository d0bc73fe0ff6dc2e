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

}  // namespace tilewright
