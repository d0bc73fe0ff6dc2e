// Whether a block depends on the loops around it through its axes only. Primitives that create new loops or change loop
// ranges require that.
//
//   for i, j in T.grid(4, 4):
//     with T.block("B"):
//       vi = T.axis.spatial(4, i)
//       B[vi + j] = A[vi, j]         uses j inside
#pragma once

#include "analysis/cover.h"

namespace tilewright::analysis {

/// Returns which of the loops below `from`, or of the block's scope, the block uses inside. Nothing if it uses none.
std::optional<Obstacle> why_not_isolated(const Tree& tree, int block, int from = Tree::kNone);

}  // namespace tilewright::analysis
