// Checks that the init of a reduction runs wherever a step of it does (analysis/skipped_init.h). Otherwise, splitting
// the reduction or putting a block around it would start it with the old contents of memory.
#pragma once

#include "schedule/primitive.h"

namespace tilewright::schedule {

/// Refuses a block that has an init, or has a block with one inside, which a condition may skip.
Status require_inits_run(const Place& block, const char* code);

}  // namespace tilewright::schedule
