#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct DecomposePadding {
  BlockRV block;
  LoopRV loop;
  using Members = Fields<&DecomposePadding::block, &DecomposePadding::loop>;
  using Returns = BlockRV;
  static constexpr std::string_view kDoc = R"(Fill the padding first, then copy the interior without a condition.

Args:
    block: a block that stores T.if_then_else(CONDITION, VALUE, CONSTANT), where CONDITION bounds its axes; afterwards
        it stores VALUE, and its axes take the values inside of the bounds only.
    loop: the loop around it to put the new block before.

Returns:
    The new block, BLOCK_pad_const, which stores the constant.)";
};

}  // namespace tilewright::schedule
