// Places barriers in a kernel where different threads access the same bytes (team_conflicts.h).
#pragma once

#include "lower/pass.h"

namespace tilewright::lower {

/// Replaces the barriers of a kernel by those that are needed. Returns the error lower/divergent-barrier if one is
/// needed where not all threads of the block arrive.
FunctionPass place_barriers;

}  // namespace tilewright::lower
