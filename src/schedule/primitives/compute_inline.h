#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct ComputeInline {
  BlockRV block;
  using Members = Fields<&ComputeInline::block>;
  using Returns = None;
  static constexpr int kRequired = 1;
  static constexpr Family kFamily = Family::kTransform;
  static constexpr std::string_view kDoc =
      R"(Put the expression that a block stores in place of every load of it, and drop the block.

Args:
    block: the producer.)";
};

Result<Plan> plan(const State& state, const ComputeInline& instruction);

}  // namespace tilewright::schedule
