// Recombination of the digits of a number: e // 5 and e % 5 determine e.
#pragma once

#include <vector>

#include "ir/expr.h"

namespace tilewright::arith {

/// Replaces e // c by e where e % c is among the values, too, which is taken away. Gives the positions of those that
/// are left. Different values before are different values then, and the other way round.
std::vector<size_t> join_digits(std::vector<Expr>& values);

}  // namespace tilewright::arith
