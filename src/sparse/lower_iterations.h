// From iterations over sparse axes to blocks and arrays.
//
//   with T.sp.iteration([I, J], "SR", "spmv") as [i, j]:    for i in range(m):
//     with T.init():                                          with T.block("spmv0"):
//       y[i] = 0                                                vi = T.axis.spatial(m, i)
//     y[i] += A[i, j] * x[j]                                    with T.block("spmv_init"):
//                                                                 y[vi] = 0
//                                                               for j in range(indptr[vi + 1] - indptr[vi]):
//                                                                 with T.block("spmv1"):
//                                                                   vj = T.axis.reduce(indptr[vi + 1] - indptr[vi], j)
//                                                                   y[vi] += A[indptr[vi] + vj]
//                                                                            * x[indices[indptr[vi] + vj]]
//
// Loops run over positions. A block begins wherever the extent of a loop is data that the axes before it select, so
// that blocks are well nested. Sparse buffers become the arrays that hold their elements: an index becomes the position
// of its coordinate, which is that of a loop where the program iterates over the axis, and is searched for elsewhere
// (locate.cc). What axes say of their structure is declared by the root block (ir/buffer_domain.h).
#pragma once

#include "ir/stmt.h"
#include "support/result.h"

namespace tilewright::sparse {

enum class Form {
  kOwn,
  /// Blocks as schedules for SparseTIR's implementation expect them. The init of a reduction over the elements of a row
  /// belongs to the innermost block, annotated `init_without_steps` (ir/annotations.h). Parents of fused positions are
  /// searched for, in blocks with the names of searches. Stores to coordinates that may be absent are skipped where
  /// these are, instead of refused.
  kPublished,
};

/// Whether the function has axes.
bool is_sparse(const Func& func);

/// Replaces the sparse iterations of the function by loops and blocks over arrays. ScriptError: "verify/..." if it is
/// not well formed, "sparse/store" if it stores to coordinates that may be absent, "sparse/search" if the position of a
/// coordinate is needed before it can be computed.
///
Result<Ref<PrimFunc>> lower_iterations(const Ref<PrimFunc>& func, Form form = Form::kOwn);
/// The module with the iterations of each function that has axes lowered.
Result<Ref<Module>> lower_iterations(const Ref<Module>& module, Form form = Form::kOwn);

}  // namespace tilewright::sparse
