#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct SparseReorder {
  Star<LoopRV> new_order;
  using Members = Fields<&SparseReorder::new_order>;
  using Returns = None;
  static constexpr int kRequired = 1;
  static constexpr Family kFamily = Family::kTransform;
  static constexpr bool kOnIterations = true;
  static constexpr std::string_view kDoc = R"(Put the axes of an iteration into another order.

SparseTIR, arXiv 2207.04606, section 3.2.2.

Args:
    *new_order: all variables of one iteration, outermost first; the parent of an axis stays in front of it.)";
};

Result<Plan> plan(const State& state, const SparseReorder& instruction);

}  // namespace tilewright::schedule
