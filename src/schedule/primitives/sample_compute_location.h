#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct SampleComputeLocation {
  BlockRV block;
  Decision<int64_t> decision;
  using Members = Fields<&SampleComputeLocation::block, &SampleComputeLocation::decision>;
  using Returns = LoopRV;
  static constexpr int kRequired = 1;
  static constexpr std::string_view kDoc = R"(Sample a loop that a block may be computed at.

Args:
    block: the producer to be moved.
    decision: take this place instead of sampling: -2 to inline the block, -1 to leave it where it is, otherwise the
        number of a loop of its first consumer. Where it is not possible, the next lower possible one is taken.

Returns:
    The loop, to be passed to compute_at or reverse_compute_at. It may stand for inlining, or for staying in place:
    these two steps then do so.)";
};

}  // namespace tilewright::schedule
