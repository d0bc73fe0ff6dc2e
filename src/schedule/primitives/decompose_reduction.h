#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct DecomposeReduction {
  BlockRV block;
  LoopRV loop;
  using Members = Fields<&DecomposeReduction::block, &DecomposeReduction::loop>;
  using Returns = BlockRV;
  static constexpr std::string_view kDoc = R"(Move the init of a reduction into a separate block before a loop.

Args:
    block: the reduction block; afterwards it is named BLOCK_update and has no init.
    loop: the loop to put the new block before; no loop around it drives the reduction.

Returns:
    The new block, named BLOCK_init.)";
};

}  // namespace tilewright::schedule
