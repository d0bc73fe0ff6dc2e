#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct SparseFuse {
  Star<LoopRV> iters;
  using Members = Fields<&SparseFuse::iters>;
  using Returns = None;
  static constexpr bool kOnIterations = true;
  static constexpr std::string_view kDoc = R"(Run axes of an iteration in one loop over the positions of the last.

SparseTIR, arXiv 2207.04606, section 3.2.2.

Args:
    *iters: variables that follow one another, each below the one before.)";
};

}  // namespace tilewright::schedule
