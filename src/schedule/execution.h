// Saying who runs the iterations of a loop: what parallel, vectorize and bind have in common.
#pragma once

#include "schedule/primitive.h"

namespace tilewright::schedule {

/// The codes of the refusals, by what stands against it.
struct ExecutionCodes {
  const char *bare_statement, *other_block, *reduction, *write, *read;
};

/// The program with the loop of another kind, if its iterations are independent.
Result<Plan> set_kind(const State& state, LoopRV loop, ForKind kind, const ExecutionCodes& codes,
                      const std::string& thread_axis = "");

}  // namespace tilewright::schedule
