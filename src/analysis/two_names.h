// Whether a block knows one memory by two names. Its facts (block_facts.h) distinguish buffers by their names: they do
// not show that an instance reads, or writes again, what another one writes.
//
//   X = T.match_buffer(C[0:16], (16,))
//   Y = T.match_buffer(C[0:16], (16,))
//   for i in range(16):
//     with T.block("B"): Y[vi] = X[15 - vi]
#pragma once

#include "analysis/cover.h"

namespace tilewright::analysis {

/// Returns why the order of the block's instances may matter beyond its facts: it writes through one view of a memory,
/// and reads or writes through another one, which is not known to show other elements. Nothing if it does not.
std::optional<Obstacle> why_two_names(const Tree& tree, int block);

}  // namespace tilewright::analysis
