// Where the threads of a team wait for one another, by the bytes that they use.
#pragma once

#include "lower/pass.h"

namespace tilewright::lower {

/// The kernel with barriers where they are needed, in place of those that it has. ScriptError
/// "lower/divergent-barrier" where threads that have to wait cannot.
FunctionPass place_barriers;

}  // namespace tilewright::lower
