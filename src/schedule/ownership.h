// An invariant of every step: a buffer that each iteration of a parallel or thread-bound loop owns is still owned
// afterwards.
//
//   for s in range(4):
//     for p in T.parallel(8):
//       for i in range(16): B[i] = ...     each iteration of p owns a B, since it reads only what it has just written:
//       for i in range(16): ... = B[i]     no value of an earlier s is needed
//
// That is proved from the program as it is (analysis/allocation_locations.h). A step that rewrites loops or copies
// blocks may leave a program of which it can no longer be proved: all iterations would then share one buffer.
#pragma once

#include "schedule/state.h"

namespace tilewright::schedule {

/// ScheduleError "schedule/shared-buffer" where the plan would take away such a buffer.
Status check_owned_buffers(const State& state, const Plan& plan);

/// Whether a plan might, which neither changes what kind of loop a loop is nor moves accesses out of loops: costs
/// little.
bool may_take_buffers(const State& state, const Plan& plan);

}  // namespace tilewright::schedule
