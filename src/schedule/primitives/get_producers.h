#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct GetProducers {
  BlockRV block;
  using Members = Fields<&GetProducers::block>;
  using Returns = std::vector<BlockRV>;
  static constexpr Family kFamily = Family::kLookup;
  static constexpr std::string_view kDoc = R"(Return the blocks of the same scope that write the inputs of a block.

Args:
    block: the reading block.

Returns:
    The producers in program order.)";
};

}  // namespace tilewright::schedule
