#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct Blockize {
  LoopOrBlocks target;
  bool preserve_unit_iters = true;
  bool inner_init = false;
  using Members = Fields<&Blockize::target, &Blockize::preserve_unit_iters, &Blockize::inner_init>;
  using Returns = BlockRV;
  static constexpr int kRequired = 1;
  static constexpr std::string_view kOmitDefault = "inner_init";
  static constexpr std::string_view kDoc = R"(Make one block of a loop's body, or of neighboring blocks.

Args:
    target: a loop with one block below it; or blocks that stand next to each other.
    preserve_unit_iters: name loops of one iteration in the axes of the new block, not their only value.
    inner_init: the init of the block below the loop stays in it, and does not become a block of its own. The loops of
        its reduction are inside then. Blocks that are joined keep theirs anyway.

Returns:
    The new block around, named BLOCK_o, or outer_BLOCK_BLOCK_ of several; the old handles mean the blocks inside.)";
};

}  // namespace tilewright::schedule
