// The memory layout of sparse buffers.
//
//   I = T.sp.dense_fixed(n)
//   J = T.sp.sparse_variable(I, (m, nnz), (indptr, indices))
//   K = T.sp.dense_fixed(16)
//   A = T.sp.match_buffer(a, (I, J, K))        an array of shape (nnz, 16)
//
// A variable axis counts its positions through all of its ancestors, so these have one dimension together: only chains
// that end in a variable axis are flattened, and every fixed axis outside of one keeps a dimension of its own.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/buffer_domain.h"

namespace tilewright {

/// One dimension of the array: the axis that counts along it.
struct StoredDimension {
  size_t axis;  ///< its number in the list of axes
  Expr extent;
};
/// Those of a buffer over the axes, outermost first: in the order in which the chains begin.
std::vector<StoredDimension> stored_dimensions(const std::vector<Ref<Axis>>& axes);
/// Their extents.
std::vector<Expr> stored_shape(const std::vector<Ref<Axis>>& axes);
/// Returns how many elements a buffer over the axes stores.
Expr stored_elements(const std::vector<Ref<Axis>>& axes);

/// Those that an init runs over: the spatial ones, but for those below an axis of the reduction, which exist during the
/// reduction only.
std::vector<Ref<SpIterVar>> variables_of_init(const SparseIteration& iteration);

/// A buffer that holds structure of an axis, and how many elements the axis takes from it.
struct StructureArray {
  Ref<Buffer> buffer;
  Expr needed;
};
/// The indptr and the indices of an axis; none of an attached axis, whose structure is that of another one.
std::vector<StructureArray> structure_arrays(const Axis& axis);

/// Returns the declared domains of the structure buffers (indptr, indices) of a function's axes, one for each buffer.
std::vector<BufferDomain> structure_domains(const PrimFunc& func);

/// A rule that is broken (ir/verify.h).
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
/// `around`: the axes that iterations around it run over.
std::optional<SparseFault> fault_of(const SparseIteration& iteration, const std::vector<Ref<Axis>>& around,
                                    const NodeRef& where);

}  // namespace tilewright
