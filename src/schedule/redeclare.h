// Updates declared regions of blocks around a change.
//
//   with T.block("row"):                          the loop over p has become one over p_0 and p_1 whose condition is
//     T.reads(A[P[vi]:P[vi + 1]])                 data: the region of A that the blocks below read is no longer bounded
// by
//     for p_0, p_1 in T.grid(...): ...            P[vi + 1], so the block declares A as a whole
#pragma once

#include "schedule/edit.h"

namespace tilewright::schedule {

/// The root after a change, in which blocks around one (the root of the function excepted) declare all that is touched
/// inside: a block that has declared that before the change, `before`, gets the regions that its body has now.
Ref<Block> with_regions_around(const Tree& before, const Ref<Block>& root, uint64_t identity);

}  // namespace tilewright::schedule
