// Coverage of elements that a condition on the axes of their writer chooses: each access of the reader shows that its
// element is one of them.
//
//   for i, j: B[i, j] = ..    where j <= i
//   for i, j: .. = B[i, j]    where j <= i; or B[i, i // 2]; or if_then_else(j < i, B[i, j], 0)
#pragma once

#include "analysis/tree.h"

namespace tilewright::analysis {

/// Whether the block reads no elements of the buffer but those at which `chosen` holds of the axes that `write` has for
/// indices.
bool reads_only_chosen(const Tree& tree, int reader, const Ref<BufferRegion>& write, const Expr& chosen);

}  // namespace tilewright::analysis
