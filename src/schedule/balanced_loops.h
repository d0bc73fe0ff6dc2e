// An invariant of every step: the offsets that balance a parallel loop (primitives/balance.h) are in memory before the
// loop begins.
//
//   for i in T.parallel(8, annotations={"balanced_by": [P.data, 9]}): ...
//
// An annotation of a loop is no access of a block. So a step that takes P away, or moves what fills it below the loop,
// does not see from accesses alone that the loop still needs it.
#pragma once

#include "schedule/state.h"

namespace tilewright::schedule {

/// ScheduleError "schedule/balanced-loop" where the plan would leave such a loop without its offsets.
Status check_balanced_loops(const State& state, const Plan& plan);

}  // namespace tilewright::schedule
