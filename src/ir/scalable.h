// Values that T.vscale() may have: the multiples of 128 bits that Arm's manuals allow as length of scalable vectors.
// The interpreter accepts no other, and proofs have to hold for each of them.
#pragma once

#include "ir/expr.h"

namespace tilewright {

constexpr int kVscales[] = {1, 2, 4, 8, 16};
constexpr int kMaxVscale = 16;

bool uses_vscale(const Expr& e);
/// Returns the expression with T.vscale() replaced by the number.
Expr with_vscale(const Expr& e, int vscale);

}  // namespace tilewright
