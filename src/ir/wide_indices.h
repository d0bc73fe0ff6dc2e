// Conversion of programs to 64-bit indices.
#pragma once

#include "ir/stmt.h"

namespace tilewright {

/// Returns the function with loops, axes, sizes and indices converted from 32 to 64 bits. The types of values that it
/// loads, computes and stores do not change.
Ref<PrimFunc> with_wide_indices(const Ref<PrimFunc>& func);

}  // namespace tilewright
