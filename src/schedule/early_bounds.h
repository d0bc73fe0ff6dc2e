// Detects loop bounds, conditions and let values that a schedule step would evaluate speculatively, where the original
// program does not evaluate them, and whose evaluation may fail.
//
//   for k in range(n):              sch.reorder(i, k)     for i in range(24 // n):
//     for i in range(24 // n):                              for k in range(n):
//
// If n is 0, the original program runs nothing; the new one divides by zero.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/tree.h"
#include "arith/analyzer.h"

namespace tilewright::schedule {

/// Whether hoisting one of the values out of the loops `outer` may make its evaluation fail: the value may fail
/// (analysis/may_fail.h), and one of the loops may be empty. The analyzer must know the remaining loops.
bool may_fail_outside(const std::vector<Expr>& values, const analysis::Tree& tree, const std::vector<int>& outer,
                      arith::Analyzer& analyzer);

/// Returns a description of the first loop, condition or let in the statement, outside of its blocks, whose evaluation
/// may fail: "loop 'j' (extent 24 // n), whose range". Nothing if there is none. Binds the loops in the analyzer.
std::optional<std::string> find_early_failure(const Stmt& stmt, arith::Analyzer& analyzer);

}  // namespace tilewright::schedule
