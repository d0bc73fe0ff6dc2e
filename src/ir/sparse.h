// The memory layout of sparse buffers.
//
//   I = T.sp.dense_fixed(n)
//   J = T.sp.sparse_variable(I, (m, nnz), (indptr, indices))
//   K = T.sp.dense_fixed(16)
//   A = T.sp.match_buffer(a, (I, J, K))        an array of shape (nnz, 16)
//
// The positions of a variable axis are numbered consecutively across all positions of its ancestors. The axis and its
// ancestors therefore share one dimension, as I and J do above. A fixed axis that is not an ancestor of a variable axis
// has its own dimension, as K does.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/buffer_domain.h"

namespace tilewright {

/// One dimension of the array that stores a sparse buffer.
struct StoredDimension {
  size_t axis;  ///< index, in the list of axes, of the axis whose positions this dimension enumerates
  Expr extent;
};
/// Returns the dimensions of the array for a buffer over `axes`, outermost first. A dimension that several axes share
/// is ordered by the first of them.
std::vector<StoredDimension> stored_dimensions(const std::vector<Ref<Axis>>& axes);
/// Returns the extents of these dimensions.
std::vector<Expr> stored_shape(const std::vector<Ref<Axis>>& axes);
/// Returns how many elements a buffer over the axes stores.
Expr stored_elements(const std::vector<Ref<Axis>>& axes);

/// Returns the variables over which the init of an iteration runs: the spatial ones, except those whose axis is below a
/// reduction axis. Coordinates of the latter are only known during the reduction.
std::vector<Ref<SpIterVar>> variables_of_init(const SparseIteration& iteration);

/// A buffer that stores the structure of an axis, and the number of its elements that the axis uses.
struct StructureArray {
  Ref<Buffer> buffer;
  Expr needed;
};
/// Returns the indptr and the indices of an axis. Empty for an attached axis, which uses the structure of another axis.
std::vector<StructureArray> structure_arrays(const Axis& axis);

/// Returns the declared domains of the structure buffers (indptr, indices) of a function's axes: several for a
/// buffer that axes with different orders share.
std::vector<BufferDomain> structure_domains(const PrimFunc& func);

/// A violation of a rule of ir/verify.h.
struct SparseFault {
  const char* code;
  std::string message;
  NodeRef where;
  std::string hint = {};
};
std::optional<SparseFault> fault_of(const Ref<Buffer>& buffer);
std::optional<SparseFault> fault_of(const Ref<Axis>& axis);
/// Returns the fault for a node whose kind does not occur at the stage.
SparseFault misplaced(const NodeRef& node, Stage stage);
/// `around`: the axes of the enclosing iterations.
std::optional<SparseFault> fault_of(const SparseIteration& iteration, const std::vector<Ref<Axis>>& around,
                                    const NodeRef& where);

}  // namespace tilewright
