// Programs over buffers with sizes of 64 bits.
#pragma once

#include "ir/stmt.h"

namespace tilewright {

/// The function with loops, axes, sizes and indices of 32 bits made ones of 64. What it computes with stays.
Ref<PrimFunc> with_wide_indices(const Ref<PrimFunc>& func);

}  // namespace tilewright
