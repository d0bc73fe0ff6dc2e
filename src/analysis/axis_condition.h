// Rewrites the predicate of a block, a condition on the loops around it, as a condition on the block's axes. cover.h
// and schedule/relocate.h compare such conditions of blocks under different loops.
//
//   for f in range(256):                                     condition on the loops: f % 16 <= f // 16
//     with T.block():                                        condition on the axes:  vk <= vi
//       vi, vk = T.axis.remap("SR", [f // 16, f % 16])
#pragma once

#include "analysis/tree.h"

namespace tilewright::analysis {

/// Returns the terms of the block's predicate that its axis domains do not imply. The result is `true` if the predicate
/// only guards the partial tiles at the end of split loops.
Expr condition_beyond_domains(const BlockRealize& realize);

/// Returns `condition`, of the block at position `block`, without the terms that skip steps of a reduction but never
/// its first step: terms on reduction axes that hold when all reduction axes are at the minima of their domains, for
/// all values of the other axes.
///
///   for i, k in T.grid(16, 16):
///     with T.block(): vi, vk = T.axis.remap("SR", [i, k]); T.where(k <= i)      removed: holds at k = 0
///                                                          T.where(k >= 3)      kept: skips k = 0
Expr without_reduction_terms(const Expr& condition, const Tree& tree, int block);

/// Rewrites `condition`, on the loops around the block, as a condition on the block's axes. Returns null if the axes do
/// not determine the loop variables.
Expr condition_on_axes(const Expr& condition, const Tree& tree, int block);

}  // namespace tilewright::analysis
