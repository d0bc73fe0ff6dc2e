#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct ReverseComputeInline {
  BlockRV block;
  using Members = Fields<&ReverseComputeInline::block>;
  using Returns = None;
  static constexpr std::string_view kDoc = R"(Inline the only consumer of a block into the block.

Args:
    block: the consumer.)";
};

}  // namespace tilewright::schedule
