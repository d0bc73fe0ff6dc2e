#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct GetOutputBlocks {
  BlockRV scope_block;
  using Members = Fields<&GetOutputBlocks::scope_block>;
  using Returns = std::vector<BlockRV>;
  static constexpr Family kFamily = Family::kLookup;
  static constexpr std::string_view kDoc =
      R"(Give the blocks of a scope that write a buffer which is not allocated inside it.

Args:
    scope_block: the enclosing block, often get_block("root").

Returns:
    The output blocks in program order.)";
};

}  // namespace tilewright::schedule
