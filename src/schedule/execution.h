// Saying who runs the iterations of a loop: what parallel, vectorize and bind have in common.
#pragma once

#include "schedule/primitive.h"

namespace tilewright::schedule {

/// The program with the loop of another kind, if its iterations are independent: refusals are METHOD/P1 to METHOD/P5.
/// `private_buffers`: each iteration can have its own copy of a buffer.
Result<Plan> set_kind(const State& state, LoopRV loop, ForKind kind, const std::string& method, bool private_buffers,
                      const std::string& thread_axis = "");

}  // namespace tilewright::schedule
