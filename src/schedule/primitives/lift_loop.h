#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct LiftLoop {
  LoopRV loop;
  using Members = Fields<&LiftLoop::loop>;
  using Returns = None;
  static constexpr int kRequired = 1;
  static constexpr Family kFamily = Family::kTransform;
  static constexpr std::string_view kDoc = R"(Move a loop out of the block whose body it is.

The loop stands around the block then, which gets a spatial axis for it. So loops inside of the blocks of a sparse
iteration are split, reordered and bound together with those around.

Args:
    loop: a loop with independent iterations that is the whole body of a block.)";
};

Result<Plan> plan(const State& state, const LiftLoop& instruction);

}  // namespace tilewright::schedule
