#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct GetConsumers {
  BlockRV block;
  using Members = Fields<&GetConsumers::block>;
  using Returns = std::vector<BlockRV>;
  static constexpr Family kFamily = Family::kLookup;
  static constexpr std::string_view kDoc = R"(Return the blocks of the same scope that read the results of a block.

Args:
    block: the writing block.

Returns:
    The consumers in program order.)";
};

}  // namespace tilewright::schedule
