#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct ReorderBlockIterVar {
  BlockRV block;
  std::vector<int64_t> new_order;
  using Members = Fields<&ReorderBlockIterVar::block, &ReorderBlockIterVar::new_order>;
  using Returns = None;
  static constexpr std::string_view kAmongInputs = "new_order";
  static constexpr std::string_view kDoc = R"(Put the axes of a block into another order; loops stay as they are.

Args:
    block: the block.
    new_order: for each place the number of the axis that comes to stand there.)";
};

}  // namespace tilewright::schedule
