// Whether what bounds read is the same to two blocks, so that regions in terms of it may be compared.
//
//   for j in range(N[0]):                   writes X[0:N[0]]
//     with T.block("t"): ...
//   N[0] = 3
//   for j in range(N[0]):                   reads X[0:N[0]]: another N[0]
//     with T.block("c"): ...
#pragma once

#include <optional>

#include "analysis/cover.h"

namespace tilewright::analysis {

/// Returns why the bounds of loops around two blocks, up to what is around both, and what the blocks ask before they
/// run, are no numbers that a proof could name: what they read changes while such a loop runs, or between the two
/// blocks.
std::optional<Obstacle> why_bounds_change(const Tree& tree, int one, int other);

}  // namespace tilewright::analysis
