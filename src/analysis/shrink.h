// Makes the same program on small shapes, so that the reference interpreter can execute all of it quickly.
#pragma once

#include "ir/stmt.h"

namespace tilewright::analysis {

/// Sizes above `limit` that provably scale are replaced by small ones.
///
/// Theorem. Call a loop, an axis of a block and a dimension of a buffer linked when the loop's variable alone is bound
/// to the axis, or the variable alone indexes the dimension. Let all of a class of linked ones start at 0 and have one
/// constant size n, and let none of its variables occur anywhere else: not in another index, condition, predicate,
/// extent or value. Then the program is one for every n >= 1, and accesses of the class stay within bounds for each.
///
/// All else keeps its size: padding (X[v - 1] under v >= 1), X[255 - v], strides, dilation, X[v // 2], X[table[v]].
Ref<PrimFunc> shrink(const Ref<PrimFunc>& func, int64_t limit = 16);

}  // namespace tilewright::analysis
