#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct SamplePartitionedTile {
  LoopRV loop;
  int64_t n = 0;
  int64_t partition_pos = 0;
  int64_t innerpart_factor = 1;
  Decision<std::vector<int64_t>> decision;
  using Members = Fields<&SamplePartitionedTile::loop, &SamplePartitionedTile::n, &SamplePartitionedTile::partition_pos,
                         &SamplePartitionedTile::innerpart_factor, &SamplePartitionedTile::decision>;
  using Returns = std::vector<std::optional<ExprRV>>;
  static constexpr int kRequired = 2;
  static constexpr std::string_view kDoc =
      R"(Sample n factors whose product is the extent of a loop, the inner ones together a multiple of a number.

Uniform among all such lists of factors.

Args:
    loop: the loop to tile; it stays as it is.
    n: the number of factors.
    partition_pos: the first of the inner factors.
    innerpart_factor: what divides the product of the inner factors.
    decision: take these factors instead of sampling. Where they do not fit, the outermost takes what the inner part
        leaves, and the first inner one takes innerpart_factor.

Returns:
    The factors, outermost first, to be passed to split. Where the extent is not constant, or innerpart_factor does not
    divide it, the first is None (to be inferred) and all others are 1.)";
};

}  // namespace tilewright::schedule
