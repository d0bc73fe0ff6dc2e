#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct Unroll {
  LoopRV loop;
  using Members = Fields<&Unroll::loop>;
  using Returns = None;
  static constexpr int kRequired = 1;
  static constexpr Family kFamily = Family::kTransform;
  static constexpr std::string_view kDoc = R"(Unroll a loop.

Args:
    loop: the loop.)";
};

Result<Plan> plan(const State& state, const Unroll& instruction);

}  // namespace tilewright::schedule
