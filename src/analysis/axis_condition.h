// The condition of a block in terms of its axes alone: which axis values are executed, independent of the loops around
// the block.
#pragma once

#include "analysis/tree.h"

namespace tilewright::analysis {

/// The part of a block's condition that its axis domains do not imply. Empty if the condition only guards the last,
/// partial tiles of split loops.
Expr condition_beyond_domains(const BlockRealize& realize);

/// The condition of the block at `block` without terms that compare a reduction with other axes and hold where all
/// reductions start, for all values of the others. Such a term leaves steps of sums out, always the same ones, and
/// never the first.
///
///   for i, k in T.grid(16, 16):
///     with T.block(): vi, vk = T.axis.remap("SR", [i, k]); T.where(k <= i)      gone
///                                                          T.where(k >= 3)      stays
Expr without_terms_of_sums(const Expr& condition, const Tree& tree, int block);

/// `condition`, of the loops around the block, as one on its axes; null where the axes do not determine the loops.
Expr condition_on_axes(const Expr& condition, const Tree& tree, int block);

}  // namespace tilewright::analysis
