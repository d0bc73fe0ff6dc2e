// Whether blocks touch different elements because the data that select them are declared to be disjoint.
//
//   T.assume_disjoint(rows_0, rows_1)
//   for i in range(n_0): with T.block("a"): C[rows_0[vi], ...] += ...
//   for i in range(n_1): with T.block("b"): C[rows_1[vi], ...] += ...      no element of C is one of block "a"
#pragma once

#include "analysis/tree.h"

namespace tilewright::analysis {

/// Whether a block around both declares, of the data that select what each of them touches of the buffer in one
/// dimension, that they have no value in common. Their regions hold all that they access.
bool touch_disjoint_rows(const Tree& tree, int one, int other, const Ref<Buffer>& buffer);

}  // namespace tilewright::analysis
