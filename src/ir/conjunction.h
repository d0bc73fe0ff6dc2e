// Conjuncts of a condition.
#pragma once

#include <vector>

#include "ir/expr.h"

namespace tilewright {

/// Returns the operands of nested `and`s, in order, without hints that one is likely. None for a condition that is
/// constantly true.
std::vector<Expr> conjuncts(const Expr& condition);

}  // namespace tilewright
