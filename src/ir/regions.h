// Regions of buffers, a range for each dimension.
#pragma once

#include <vector>

#include "ir/stmt.h"

namespace tilewright {

/// All of a buffer of this shape.
std::vector<Ref<Range>> whole_region(const std::vector<Expr>& shape);
Ref<BufferRegion> whole_region(const Ref<Buffer>& buffer);

/// Whether the variable occurs in a bound of the region.
bool uses_var(const std::vector<Ref<Range>>& region, const Ref<Var>& v);

}  // namespace tilewright
