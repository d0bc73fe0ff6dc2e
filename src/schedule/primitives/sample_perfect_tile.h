#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct SamplePerfectTile {
  LoopRV loop;
  int64_t n = 0;
  int64_t max_innermost_factor = 16;
  Decision<std::vector<int64_t>> decision;
  using Members = Fields<&SamplePerfectTile::loop, &SamplePerfectTile::n, &SamplePerfectTile::max_innermost_factor,
                         &SamplePerfectTile::decision>;
  using Returns = std::vector<std::optional<ExprRV>>;
  static constexpr int kRequired = 2;
  static constexpr std::string_view kDoc =
      R"(Sample n factors whose product is the extent of a loop, uniformly among all such factors.

Args:
    loop: the loop to tile; it stays as it is.
    n: the number of factors.
    max_innermost_factor: the largest last factor; -1 for no limit.
    decision: take these factors instead of sampling. Factors that do not divide are repaired from the innermost on.

Returns:
    The factors, outermost first, to be passed to split. Where the extent is not constant, the first is None (to be
    inferred) and all others are 1.)";
};

}  // namespace tilewright::schedule
