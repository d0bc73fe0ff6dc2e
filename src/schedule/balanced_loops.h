// An invariant of every step: the offsets that balance a parallel loop (primitives/balance.h) are in memory before the
// loop begins.
//
//   for i in T.parallel(8, annotations={"balanced_by": [P.data, 9]}): ...
//
// An annotation of a loop is not an access of a block. A step that removes P, or moves the block that writes P into the
// loop, does not find in the accesses that the loop still reads P.
#pragma once

#include "schedule/state.h"

namespace tilewright::schedule {

/// ScheduleError "schedule/balanced-loop" where the plan would leave such a loop without its offsets.
Status check_balanced_loops(const State& state, const Plan& plan);

}  // namespace tilewright::schedule
