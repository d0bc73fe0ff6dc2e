#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct AddUnitLoop {
  BlockOrLoop block_or_loop;
  using Members = Fields<&AddUnitLoop::block_or_loop>;
  using Returns = LoopRV;
  static constexpr std::string_view kDoc = R"(Put a loop of one iteration around a block or a loop.

Args:
    block_or_loop: what to put it around.

Returns:
    The new loop.)";
};

}  // namespace tilewright::schedule
