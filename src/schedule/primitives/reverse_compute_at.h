#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct ReverseComputeAt {
  BlockRV block;
  LoopRV loop;
  bool preserve_unit_loops = false;
  int64_t index = -1;
  using Members = Fields<&ReverseComputeAt::block, &ReverseComputeAt::loop, &ReverseComputeAt::preserve_unit_loops,
                         &ReverseComputeAt::index>;
  using Returns = None;
  static constexpr int kRequired = 2;
  static constexpr bool kMayAssumeDeclarations = true;
  static constexpr std::string_view kDoc =
      R"(Move a consumer under a loop of its producers, and compute there what they have just produced.

Args:
    block: the consumer.
    loop: the loop to move it to; all its producers are below.
    preserve_unit_loops: keep loops of extent 1.
    index: the place among the statements of the loop; -1 for the last possible one, -2 for the first.)";
};

}  // namespace tilewright::schedule
