// What TVM keeps of each block of a schedule, for those who look at its state: coarser than what primitives ask here
// (block_facts.h, cover.h), and worked out only when asked for.
#pragma once

#include "analysis/tree.h"

namespace tilewright::analysis {

struct BlockFlags {
  bool affine_binding;  ///< the axes are a surjective, affine function of the loops around the block
  bool region_cover;    ///< what it reads of other blocks of its scope is written by then, all together
  bool stage_pipeline;  ///< all blocks directly inside are so covered, and none overwrites what an earlier one reads
};

BlockFlags block_flags(const Tree& tree, int block);

}  // namespace tilewright::analysis
