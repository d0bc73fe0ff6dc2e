// Checks that a schedule step keeps private buffers private: if each iteration of a parallel or thread-bound loop has
// its own copy of a buffer before the step, it still has one afterwards.
//
//   for s in range(4):
//     for p in T.parallel(8):
//       for i in range(16): B[i] = ...     B is private to an iteration of p, which reads only elements that it has
//       for i in range(16): ... = B[i]     written; no value of an earlier s is needed
//
// Privacy is derived from the program (analysis/allocation_locations.h), not stored in it. A step that rewrites loops
// or copies blocks may make this proof fail. All iterations would then share one buffer, which is a race.
#pragma once

#include "schedule/state.h"

namespace tilewright::schedule {

/// Returns the error schedule/shared-buffer if a private buffer would become shared.
Status check_owned_buffers(const State& state, const Plan& plan);

/// A cheap test whether check_owned_buffers() can fail. For plans that neither change the kinds of loops nor move
/// accesses out of loops.
bool may_lose_owned_buffers(const State& state, const Plan& plan);

}  // namespace tilewright::schedule
