// Shapes of buffers that a step allocates.
#pragma once

#include "schedule/primitive.h"

namespace tilewright::schedule {

/// Requires that nothing in the block `scope`, which will allocate the buffer, changes memory that the buffer's shape
/// reads, and that the shape divides by nothing that may be zero where the loops around an access do not run.
Status require_kept_shape(const Tree& tree, int scope, const Ref<Buffer>& buffer, const char* code);

}  // namespace tilewright::schedule
