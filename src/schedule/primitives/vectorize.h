#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct Vectorize {
  LoopRV loop;
  using Members = Fields<&Vectorize::loop>;
  using Returns = None;
  static constexpr int kRequired = 1;
  static constexpr Family kFamily = Family::kTransform;
  static constexpr std::string_view kDoc = R"(Let the iterations of a loop run as the lanes of vector instructions.

Args:
    loop: a loop whose iterations are independent of one another.)";
};

}  // namespace tilewright::schedule
