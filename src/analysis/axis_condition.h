// What the condition of a block asks of its axes: which of their values run at all, wherever the block stands.
#pragma once

#include "analysis/tree.h"

namespace tilewright::analysis {

/// What is left of a block's condition where its axes lie inside their domains: nothing, if it only keeps the last
/// tiles of split loops inside.
Expr condition_beyond_domains(const BlockRealize& realize);

/// The condition of the block at `block` without terms that compare a reduction with other axes and hold where all
/// reductions start, for all values of the others. Such a term leaves steps of sums out, always the same ones, and
/// never the first.
///
///   for i, k in T.grid(16, 16):
///     with T.block(): vi, vk = T.axis.remap("SR", [i, k]); T.where(k <= i)      gone
///                                                          T.where(k >= 3)      stays
Expr without_terms_of_sums(const Expr& condition, const Tree& tree, int block);

/// `condition`, of the loops around the block, as one on its axes; null where these do not tell which loop is where.
Expr condition_on_axes(const Expr& condition, const Tree& tree, int block);

}  // namespace tilewright::analysis
