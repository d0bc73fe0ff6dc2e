#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct ComputeAt {
  BlockRV block;
  LoopRV loop;
  bool preserve_unit_loops = false;
  int64_t index = -1;
  using Members = Fields<&ComputeAt::block, &ComputeAt::loop, &ComputeAt::preserve_unit_loops, &ComputeAt::index>;
  using Returns = None;
  static constexpr int kRequired = 2;
  static constexpr bool kMayAssumeDeclarations = true;
  static constexpr std::string_view kDoc =
      R"(Move a producer under a loop of its consumers, and compute there only what they need.

Args:
    block: the producer.
    loop: the loop to move it to; all its consumers are below.
    preserve_unit_loops: keep loops of extent 1.
    index: the place among the statements of the loop; -1 for the last possible one, -2 for the first.)";
};

}  // namespace tilewright::schedule
