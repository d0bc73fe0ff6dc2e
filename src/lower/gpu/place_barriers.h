// Where the threads of a team wait for one another, by the bytes that they use.
#pragma once

#include "lower/pass.h"

namespace tilewright::lower {

/// The kernel with barriers where they are needed, in place of those that it has. ScriptError
/// "lower/divergent-barrier" where threads that have to wait cannot.
PassResult place_barriers(const Ref<PrimFunc>& func, PassContext& context);

}  // namespace tilewright::lower
