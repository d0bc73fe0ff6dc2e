// Buffers with fewer strides than dimensions: the strides belong to the last dimensions, and the dimensions before them
// are contiguous.
//
//   T.alloc_buffer((80, 40), strides=[1])    element [i, j] is at i * 40 + j
#pragma once

#include <optional>
#include <vector>

#include "ir/stmt.h"

namespace tilewright {

/// The number of elements with these extents, as int64.
Expr element_count(const std::vector<Expr>& extents);
/// Returns `first` times the product of all extents. Nothing if an extent is not constant, or if the product overflows
/// int64.
std::optional<int64_t> known_product(int64_t first, const std::vector<Expr>& extents);
/// Returns one stride for each dimension; empty for a compact buffer.
std::vector<Expr> all_strides(const Buffer& buffer);
/// Returns the module with one stride per dimension in all such buffers; the same pointer if there are none.
Ref<Module> with_all_strides(const Ref<Module>& module);

}  // namespace tilewright
