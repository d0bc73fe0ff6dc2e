#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct ComputeInline {
  BlockRV block;
  using Members = Fields<&ComputeInline::block>;
  using Returns = None;
  static constexpr std::string_view kDoc =
      R"(Put the expression that a block stores in place of every load of it, and drop the block.

Args:
    block: the producer.)";
};

}  // namespace tilewright::schedule
