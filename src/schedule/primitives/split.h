#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct Split {
  LoopRV loop;
  Flat<Factor> factors;
  bool preserve_unit_iters = true;
  bool disable_predication = false;
  using Members = Fields<&Split::loop, &Split::factors, &Split::preserve_unit_iters, &Split::disable_predication>;
  using Returns = std::vector<LoopRV>;
  static constexpr int kRequired = 2;
  static constexpr std::string_view kDoc = R"(Split a loop into a nest, in the same order of iterations.

Where the product of the factors exceeds the extent, the blocks inside get a condition (T.where) that skips the
iterations beyond it.

Args:
    loop: the loop to split.
    factors: the extents of the new loops, outermost first: integers, sampled values, expressions of ``T.vscale()``,
        at most one None to be inferred.
    preserve_unit_iters: keep block axes of extent 1 bound to loops instead of to constants.
    disable_predication: add no condition; accepted only where none is needed.

Returns:
    The new loops, outermost first.)";
};

}  // namespace tilewright::schedule
