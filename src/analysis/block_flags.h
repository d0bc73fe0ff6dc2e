// The block flags of TVM's ScheduleState, for scripts that inspect the state. They are coarser than the conditions of
// our primitives (block_facts.h, cover.h), and computed on request only.
#pragma once

#include "analysis/tree.h"

namespace tilewright::analysis {

struct BlockFlags {
  bool affine_binding;  ///< the axes are a surjective, affine function of the loops around the block
  bool region_cover;    ///< together, other blocks of the scope have written everything that it reads
  bool stage_pipeline;  ///< region_cover holds for all its child blocks, and none overwrites what an earlier one reads
};

BlockFlags block_flags(const Tree& tree, int block);

}  // namespace tilewright::analysis
