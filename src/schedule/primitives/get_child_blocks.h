#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct GetChildBlocks {
  BlockOrLoop block_or_loop;
  using Members = Fields<&GetChildBlocks::block_or_loop>;
  using Returns = std::vector<BlockRV>;
  static constexpr Family kFamily = Family::kLookup;
  static constexpr bool kPositional = true;
  static constexpr std::string_view kDoc = R"(Return the blocks directly below a block or a loop.

Args:
    block_or_loop: where to look; blocks inside the found ones are not among the result.

Returns:
    The blocks in program order.)";
};

}  // namespace tilewright::schedule
