// Whether a block accesses the same memory through two buffers (aliasing). BlockFacts distinguishes buffers by
// identity, so it misses a dependence between two instances that access one element through different buffers.
//
//   X = T.match_buffer(C[0:16], (16,))
//   Y = T.match_buffer(C[0:16], (16,))
//   for i in range(16):
//     with T.block("B"): Y[vi] = X[15 - vi]
#pragma once

#include "analysis/cover.h"

namespace tilewright::analysis {

/// Returns why aliasing may make the order of the block's instances matter: it writes through one view, and accesses
/// the same memory through another view that is not known to have other elements. Nothing if it does not matter.
std::optional<Obstacle> why_two_names(const Tree& tree, int block);

}  // namespace tilewright::analysis
