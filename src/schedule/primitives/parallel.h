#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct Parallel {
  LoopRV loop;
  using Members = Fields<&Parallel::loop>;
  using Returns = None;
  static constexpr bool kMayAssumeDeclarations = true;
  static constexpr std::string_view kDoc = R"(Let the iterations of a loop run on several cores.

Args:
    loop: a loop whose iterations are independent of one another.)";
};

}  // namespace tilewright::schedule
