// Proves coverage for a writer whose predicate masks elements, such as a triangular update: each access of the reader
// must imply that its element fulfills the writer's mask.
//
//   for i, j: B[i, j] = ..    where j <= i
//   for i, j: .. = B[i, j]    where j <= i; or B[i, i // 2]; or if_then_else(j < i, B[i, j], 0)
#pragma once

#include "analysis/tree.h"

namespace tilewright::analysis {

/// Whether the block reads only elements of the buffer for which `mask` holds. `mask` is a condition on the axes that
/// are the indices of `write`.
bool reads_only_under_mask(const Tree& tree, int reader, const Ref<BufferRegion>& write, const Expr& mask);

}  // namespace tilewright::analysis
