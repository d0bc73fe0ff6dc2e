// Shapes of buffers that a step allocates.
#pragma once

#include "schedule/primitive.h"

namespace tilewright::schedule {

/// Nothing in the block `scope`, which is to allocate the buffer, changes what its shape reads.
Status require_kept_shape(const Tree& tree, int scope, const Ref<Buffer>& buffer, const char* code);

}  // namespace tilewright::schedule
