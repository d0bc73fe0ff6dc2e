// Buffers with fewer strides than dimensions: the strides are those of the last dimensions, the others follow
// compactly.
//
//   T.alloc_buffer((80, 40), strides=[1])    element [i, j] lies at i * 40 + j
#pragma once

#include <vector>

#include "ir/stmt.h"

namespace tilewright {

/// One stride for each dimension; none for a compact buffer.
std::vector<Expr> all_strides(const Buffer& buffer);
/// The module with all strides of such buffers written out; itself where there are none.
Ref<Module> with_all_strides(const Ref<Module>& module);

}  // namespace tilewright
