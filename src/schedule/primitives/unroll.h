#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct Unroll {
  LoopRV loop;
  using Members = Fields<&Unroll::loop>;
  using Returns = None;
  static constexpr std::string_view kDoc = R"(Unroll a loop.

Args:
    loop: the loop.)";
};

}  // namespace tilewright::schedule
