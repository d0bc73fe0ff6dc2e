// Checks that a schedule step keeps the offsets that balance a parallel loop (primitives/balance.h) available: they
// must be in memory before the loop begins.
//
//   for i in T.parallel(8, annotations={"balanced_by": [P.data, 9]}): ...
//
// The annotation reads P, but it is not an access of a block. Steps that analyze accesses would therefore allow that P
// is removed, or that the block that writes P moves into the loop.
#pragma once

#include "schedule/state.h"

namespace tilewright::schedule {

/// Returns the error schedule/balanced-loop if the plan would leave such a loop without its offsets.
Status check_balanced_loops(const State& state, const Plan& plan);

}  // namespace tilewright::schedule
