// Buffers with fewer strides than dimensions: the strides are those of the last dimensions, the others follow
// compactly.
//
//   T.alloc_buffer((80, 40), strides=[1])    element [i, j] is at i * 40 + j
#pragma once

#include <optional>
#include <vector>

#include "ir/stmt.h"

namespace tilewright {

/// The number of elements with these extents, as int64.
Expr element_count(const std::vector<Expr>& extents);
/// `first` times all extents; nothing where one of them is not known, or int64 does not hold the product.
std::optional<int64_t> known_product(int64_t first, const std::vector<Expr>& extents);
/// One stride for each dimension; none for a compact buffer.
std::vector<Expr> all_strides(const Buffer& buffer);
/// The module with all strides of such buffers written out; itself where there are none.
Ref<Module> with_all_strides(const Ref<Module>& module);

}  // namespace tilewright
