#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct Fuse {
  Star<LoopRV> loops;
  bool preserve_unit_iters = true;
  using Members = Fields<&Fuse::loops, &Fuse::preserve_unit_iters>;
  using Returns = LoopRV;
  static constexpr int kRequired = 1;
  static constexpr std::string_view kDoc =
      R"(Make one loop out of directly nested ones, in the same order of iterations.

Args:
    *loops: the loops, outermost first, each the only content of the one before.
    preserve_unit_iters: keep block axes of extent 1 bound to loops instead of to constants.

Returns:
    The new loop.)";
};

}  // namespace tilewright::schedule
