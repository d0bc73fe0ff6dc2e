// Loop bounds that a step would evaluate although the program does not evaluate them.
//
//   for k in range(n):              sch.reorder(i, k)     for i in range(24 // n):
//     for i in range(24 // n):                              for k in range(n):
//
// Where n is 0, nothing runs before; afterwards the first loop divides by zero.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/tree.h"
#include "arith/analyzer.h"

namespace tilewright::schedule {

/// Whether evaluating one of the values outside of the loops `outer` may fail (analysis/divisors.h): a loop may have no
/// iterations, so that the program does not evaluate the value. The analyzer has the facts of the remaining loops.
bool may_fail_outside(const std::vector<Expr>& values, const analysis::Tree& tree, const std::vector<int>& outer,
                      arith::Analyzer& analyzer);

/// Returns what may fail in the statement, outside of its blocks, for messages: "loop 'j' (extent 24 // n), whose
/// range", a condition, or a let; nothing if there is none. The analyzer knows the loops afterwards.
std::optional<std::string> find_early_failure(const Stmt& stmt, arith::Analyzer& analyzer);

}  // namespace tilewright::schedule
