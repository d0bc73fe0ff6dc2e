// Refuses steps on reductions whose init may be skipped (analysis/skipped_init.h). Splitting such a reduction, or
// putting a block around it, would make it start with uninitialized memory.
#pragma once

#include "schedule/primitive.h"

namespace tilewright::schedule {

/// Refuses the block if its init, or that of a block inside, may be skipped.
Status require_inits_run(const Place& block, const char* code);

}  // namespace tilewright::schedule
