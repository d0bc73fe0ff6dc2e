#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct GetBlock {
  std::string name;
  std::string func_name;
  using Members = Fields<&GetBlock::name, &GetBlock::func_name>;
  using Returns = BlockRV;
  static constexpr int kRequired = 1;
  static constexpr Family kFamily = Family::kLookup;
  static constexpr std::string_view kDoc = R"(Find the block with a name.

Args:
    name: the block's name; exactly one block of the function has it. The implicit root block is named "root".
    func_name: the function to look in; by default the one being worked on.

Returns:
    A handle that stays valid while the block exists.)";
};

}  // namespace tilewright::schedule
