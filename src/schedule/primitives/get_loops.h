#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct GetLoops {
  BlockRV block;
  using Members = Fields<&GetLoops::block>;
  using Returns = std::vector<LoopRV>;
  static constexpr Family kFamily = Family::kLookup;
  static constexpr std::string_view kDoc = R"(Return the loops around a block, up to the enclosing block.

Args:
    block: the block.

Returns:
    The loops, outermost first.)";
};

}  // namespace tilewright::schedule
