#pragma once

#include "schedule/instruction_fields.h"

namespace tilewright::schedule {

struct LiftLoop {
  LoopRV loop;
  using Members = Fields<&LiftLoop::loop>;
  using Returns = None;
  static constexpr std::string_view kDoc = R"(Move a loop out of the block whose body it is.

Afterwards the loop encloses the block, which has a new spatial axis. Use it to split, reorder or bind inner loops of a
sparse iteration together with outer ones.

Args:
    loop: a loop with independent iterations that is the whole body of a block.)";
};

}  // namespace tilewright::schedule
