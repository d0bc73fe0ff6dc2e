// Conjuncts of a condition.
#pragma once

#include <vector>

#include "ir/expr.h"

namespace tilewright {

/// The terms that hold where the condition does, in order, none of them an `and` or a hint that one is likely; a
/// condition that always holds has none.
std::vector<Expr> conjuncts(const Expr& condition);

}  // namespace tilewright
