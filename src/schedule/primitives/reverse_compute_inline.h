#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct ReverseComputeInline {
  BlockRV block;
  using Members = Fields<&ReverseComputeInline::block>;
  using Returns = None;
  static constexpr int kRequired = 1;
  static constexpr Family kFamily = Family::kTransform;
  static constexpr std::string_view kDoc = R"(Inline the only consumer of a block into the block.

Args:
    block: the consumer.)";
};

Result<Plan> plan(const State& state, const ReverseComputeInline& instruction);

}  // namespace tilewright::schedule
