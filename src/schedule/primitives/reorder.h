#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct Reorder {
  Star<LoopRV> ordered_loops;
  using Members = Fields<&Reorder::ordered_loops>;
  using Returns = None;
  static constexpr bool kMayAssumeDeclarations = true;
  static constexpr std::string_view kDoc = R"(Put loops of one nest into another order.

Args:
    *ordered_loops: the loops in their new order, outermost first. Loops of the nest that are not named keep their place.)";
};

}  // namespace tilewright::schedule
