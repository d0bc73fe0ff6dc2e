#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct Bind {
  LoopRV loop;
  std::string thread_axis;
  using Members = Fields<&Bind::loop, &Bind::thread_axis>;
  using Returns = None;
  static constexpr bool kMayAssumeDeclarations = true;
  static constexpr std::string_view kDoc = R"(Let the iterations of a loop run on the threads of a GPU.

Args:
    loop: a loop whose iterations are independent of one another.
    thread_axis: "blockIdx.x", "threadIdx.y", "vthread.z", ...)";
};

}  // namespace tilewright::schedule
