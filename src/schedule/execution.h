// Changes the kind of a loop: shared by parallel, vectorize and bind.
#pragma once

#include "schedule/primitive.h"

namespace tilewright::schedule {

/// Error codes, by obstacle.
struct ExecutionCodes {
  const char *bare_statement, *other_block, *reduction, *write, *read;
};

/// Plans the change of the loop's kind. Refuses if its iterations are not independent.
Result<Plan> set_kind(const State& state, LoopRV loop, ForKind kind, const ExecutionCodes& codes,
                      const std::string& thread_axis = "");

}  // namespace tilewright::schedule
