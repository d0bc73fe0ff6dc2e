#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct SparseReorder {
  Star<LoopRV> new_order;
  using Members = Fields<&SparseReorder::new_order>;
  using Returns = None;
  static constexpr bool kOnIterations = true;
  static constexpr std::string_view kDoc = R"(Put the axes of an iteration into another order.

SparseTIR, arXiv 2207.04606, section 3.2.2.

Args:
    *new_order: all variables of one iteration, outermost first; the parent of an axis stays in front of it.)";
};

}  // namespace tilewright::schedule
