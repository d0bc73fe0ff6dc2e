// Checks the shapes of buffers that a schedule step allocates: they are evaluated where the buffer is allocated, which
// is earlier than where the original program evaluates these expressions.
#pragma once

#include "schedule/primitive.h"

namespace tilewright::schedule {

/// Refuses with `code` if the block `scope`, which will allocate the buffer, changes memory that the buffer's shape
/// reads, or if the shape may divide by zero when the loops around the accesses are empty.
Status require_kept_shape(const Tree& tree, int scope, const Ref<Buffer>& buffer, const char* code);

}  // namespace tilewright::schedule
