// Gathers and scatters elements that data select into a cache that is indexed by the axes of a block. Shared by
// reverse_cache_read and reverse_cache_write.
//
//   C[vi, vk] += A[vi, vj] * B[I[vi, vj], vk]        B_local[vi, vj, vk] stands for B[I[vi, vj], vk]
#pragma once

#include "schedule/axis_copy.h"

namespace tilewright::schedule {

/// The one element of a buffer that each instance of a block accesses.
struct SelectedElement {
  std::vector<Expr> indices;  ///< indices; they may read other buffers, which the block does not write
  Expr guard;                 ///< the condition under which it is accessed; null if unknown
};
/// Returns that element. Refuses with `code` if the block contains blocks, accesses several elements, or selects the
/// element by anything but its axes and data.
Result<SelectedElement> selected_element(const Place& block, const Ref<Buffer>& buffer, const char* code);

/// The cache of the element: indexed by the axes of the block that select it, in their order or as `order` says, which
/// may name more axes. Refuses with `code` if `order` does not fit, or if the extent of an axis depends on the loops.
Result<AxisCache> selected_cache(const Place& block, const Ref<Buffer>& buffer, const SelectedElement& element,
                                 const std::string& storage_scope, const std::vector<int64_t>& order, const char* code);

/// Whether an expression uses no other axes of the block than these.
bool is_said_by(const Place& block, const Expr& e, const std::vector<size_t>& axes);

/// Returns the condition that the loops between `outside` and the block that do not drive the cached axes are not
/// empty. Refuses with `code` if the condition depends on such loops.
Result<Expr> has_instances(const Place& block, int outside, const AxisCache& cache, const char* code);

}  // namespace tilewright::schedule
