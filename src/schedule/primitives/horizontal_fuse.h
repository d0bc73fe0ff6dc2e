#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct HorizontalFuse {
  Star<LoopRV> loops;
  using Members = Fields<&HorizontalFuse::loops>;
  using Returns = LoopRV;
  static constexpr std::string_view kDoc = R"(Concatenate consecutive loops into one loop.

The iterations of the first loop come first, then those of the second, and so on: a list of tasks. Where the tasks are
independent, ``parallel`` shares them among threads, whichever loops they come from. ``split`` makes tasks of about
equal work before: of 2 ** (k - i) rows in a bucket of rows of 2 ** i nonzeros.

SparseTIR, arXiv 2207.04606, section 3.3.2.

Args:
    *loops: two loops or more, neighbors in the order of the program.

Returns:
    The new loop.)";
};

}  // namespace tilewright::schedule
