#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct LoopPartition {
  LoopRV loop;
  Flat<Factor> factors;
  bool preserve_unit_iters = true;
  using Members = Fields<&LoopPartition::loop, &LoopPartition::factors, &LoopPartition::preserve_unit_iters>;
  using Returns = std::vector<LoopRV>;
  static constexpr int kRequired = 2;
  static constexpr bool kMayAssumeDeclarations = true;
  static constexpr std::string_view kDoc = R"(Cut a loop into consecutive ones, each with a copy of the body.

With i for the loop and B for the first block below it, the loop i0 stands in a block B_i0_partition and runs over the
first iterations, and so on; all of them stand in a block B_i_common. The blocks of each copy get its loop's name as
suffix: B_i0.

Args:
    loop: a serial loop of constant range that drives no reduction.
    factors: the lengths of the new loops, in order: integers, sampled values, at most one None for what the others
        leave. Without None, what is left becomes one more loop.
    preserve_unit_iters: keep block axes bound to a loop of one iteration bound to it instead of to a constant.

Returns:
    The new loops, in order.)";
};

}  // namespace tilewright::schedule
