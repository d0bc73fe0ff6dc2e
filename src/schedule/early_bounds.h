// Bounds of loops that a step would have evaluated where the program does not.
//
//   for k in range(n):              sch.reorder(i, k)     for i in range(24 // n):
//     for i in range(24 // n):                              for k in range(n):
//
// Where n is 0, nothing runs before; afterwards the first loop divides by zero.
#pragma once

#include <vector>

#include "analysis/tree.h"
#include "arith/analyzer.h"

namespace tilewright::schedule {

/// Whether one of the values may fail (analysis/divisors.h) where one of the loops `outer`, in which it is evaluated
/// now, may have no iteration. The analyzer knows what the value stays inside of.
bool may_fail_outside(const std::vector<Expr>& values, const analysis::Tree& tree, const std::vector<int>& outer,
                      arith::Analyzer& analyzer);

/// Returns a loop in the statement, outside of its blocks, whose bounds may fail; null if there is none. The analyzer
/// knows these loops afterwards.
const For* find_failing_loop(const Stmt& stmt, arith::Analyzer& analyzer);

}  // namespace tilewright::schedule
