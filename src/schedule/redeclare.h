// Updates the declared regions of blocks around a changed statement.
//
//   with T.block("row"):                     the loop over p was split into p_0 and p_1, under a condition on data.
//     T.reads(A[P[vi]:P[vi + 1]])            The region that the blocks below read is no longer bounded by P[vi + 1],
//     for p_0, p_1 in T.grid(...): ...       so the block must declare all of A.
#pragma once

#include "schedule/edit.h"

namespace tilewright::schedule {

/// Returns the root after a change, in which the blocks around a block, except the root, declare all accesses inside. A
/// block that did so before the change, in `before`, gets the regions of its present body.
Ref<Block> with_regions_around(const Tree& before, const Ref<Block>& root, uint64_t identity);

}  // namespace tilewright::schedule
