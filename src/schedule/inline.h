// Inlines the stored value of one block into another block. Shared by compute_inline and reverse_compute_inline.
//
//   B[vi] = A[vi] * 2.0;  C[vi] = B[vi] + 1.0     =>     C[vi] = A[vi] * 2.0 + 1.0
#pragma once

#include "analysis/plain_store.h"
#include "analysis/scope.h"
#include "arith/index_map.h"
#include "ir/substitute.h"
#include "schedule/primitive.h"

namespace tilewright::schedule {

/// A block whose body is `buffer[indices] = value`.
struct Assignment {
  const BufferStore* store;
  Ref<Buffer> buffer;
};
/// Returns the assignment of a complete block. Refuses other blocks with `code`.
Result<Assignment> assignment_of(const Place& block, const char* code);
/// An assignment inside of zero or more serial loops in the block, as in blocks that copy whole regions.
struct NestedAssignment : Assignment {
  std::vector<const For*> loops;  ///< outermost first
};
Result<NestedAssignment> nested_assignment_of(const Place& block, const char* code);

/// Returns the axis of each index: the axis variable by dimension, null for a dimension of one element. Nothing if an
/// index is anything else, or if an axis of more than one value is missing or occurs twice.
std::optional<std::vector<Ref<Var>>> axes_by_dimension(const Block& block, const std::vector<Expr>& indices);

/// Returns the axes in terms of the indices of an access; an axis with one value has this value.
VarMap bind_axes(const Block& block, const std::vector<Ref<Var>>& axes, const std::vector<Expr>& indices);

/// Inverts the map from the block's axes to the element at `indices`. Returns nothing if the map is not one to one, or
/// skips elements of its bounding box.
std::optional<arith::InvertedMap> invert_access(const Block& block, const std::vector<Expr>& indices,
                                                arith::Analyzer& analyzer);

/// Returns the axis values, by inverse map `back`, of an element.
VarMap axes_at(const Block& block, const arith::InvertedMap& back, const std::vector<Expr>& element,
               arith::Analyzer& analyzer);

/// Returns why the inputs of the block might change after it has run. Nothing if they are complete
/// (why_inputs_incomplete()), or if all blocks that write them, even opaque ones, have run before and do not run again.
std::optional<analysis::Obstacle> why_inputs_change(const Tree& tree, int block);

/// Refuses to inline a value into an index, a loop bound or an axis binding of the consumer if it may overflow. Stored
/// data wrap around on overflow, but index arithmetic must not overflow (docs/meaning.md).
Status check_wraps_nowhere(const Place& producer, const Assignment& made, int consumer, const char* code);

/// Returns the block. If the indices of its regions load buffers, as in A[I[i]], its reads name these buffers, too.
Ref<Block> with_reads_of_indices(Block block, SpanId span = {});
/// Returns the block with its reads computed from its body; declared reads through pointers are kept. `part` describes
/// a store whose value is now part of this block's value, so that its analysis is not repeated.
Ref<Block> with_found_reads(Block block, SpanId span, const analysis::PlainStore* part = nullptr);

}  // namespace tilewright::schedule
