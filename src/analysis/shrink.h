// The same program on small shapes, so that the reference interpreter can run it in no time.
#pragma once

#include "ir/stmt.h"

namespace tilewright::analysis {

/// Every extent of a loop, an axis or a buffer that is a constant above `limit` is replaced by a small one, wherever
/// the constant occurs: equal extents stay equal, different ones stay different, and products and quotients of extents
/// that were exact (n = a * b) are kept where they can be. The result is a program of its own: it may compute
/// something else where a constant only happened to equal an extent, and it must be verified before it is used.
Ref<PrimFunc> shrink(const Ref<PrimFunc>& func, int64_t limit = 16);

}  // namespace tilewright::analysis
