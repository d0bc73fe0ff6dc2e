// Copies that data select: a buffer indexed by the axes of a block stands for elements that the block finds through
// other buffers. What reverse_cache_read and reverse_cache_write have in common.
//
//   C[vi, vk] += A[vi, vj] * B[I[vi, vj], vk]        B_local[vi, vj, vk] stands for B[I[vi, vj], vk]
#pragma once

#include "schedule/axis_copy.h"

namespace tilewright::schedule {

/// The one element of a buffer that each instance of a block touches.
struct SelectedElement {
  std::vector<Expr> indices;  ///< indices; they may read other buffers, which the block does not write
  Expr guard;                 ///< the condition under which it is touched; null where that is not known
};
/// Refuses with CODE if the block contains blocks, touches several elements, or selects the element by more than its
/// axes and data.
Result<SelectedElement> selected_element(const Place& block, const Ref<Buffer>& buffer, const char* code);

/// The cache of the element: indexed by the axes of the block that select it, in their order or as `order` says, which
/// may name more axes. CODE where `order` does not fit, or the extent of an axis is not bounded outside of the loops.
Result<AxisCache> selected_cache(const Place& block, const Ref<Buffer>& buffer, const SelectedElement& element,
                                 const std::string& storage_scope, const std::vector<int64_t>& order, const char* code);

/// Whether an expression uses no other axes of the block than these.
bool is_said_by(const Place& block, const Expr& e, const std::vector<size_t>& axes);

/// The condition that those loops between `outside` and the block which do not move the cached axes have iterations.
/// CODE where it depends on loops between.
Result<Expr> has_instances(const Place& block, int outside, const AxisCache& cache, const char* code);

}  // namespace tilewright::schedule
