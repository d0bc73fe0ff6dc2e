// Whether loop bounds that read memory have the same values for two blocks. Only then may regions that depend on these
// bounds be compared.
//
//   for j in range(N[0]):                   writes X[0:N[0]]
//     with T.block("t"): ...
//   N[0] = 3
//   for j in range(N[0]):                   reads X[0:N[0]], with another value of N[0]
//     with T.block("c"): ...
#pragma once

#include <optional>

#include "analysis/cover.h"

namespace tilewright::analysis {

/// Returns why the loop bounds, predicates and bindings of two blocks, below the loops around both, may have changing
/// values: memory that they read changes in such a loop, or between the two blocks. Nothing if it does not.
std::optional<Obstacle> why_bounds_change(const Tree& tree, int one, int other);

}  // namespace tilewright::analysis
