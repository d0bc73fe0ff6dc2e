// Putting one block's store into another block: what compute_inline and reverse_compute_inline have in common.
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
/// Refuses a block that is not complete or not one such assignment.
Result<Assignment> assignment_of(const Place& block, const char* code);
/// An assignment in each iteration of serial loops in the block, as in copies of whole regions, or without loops.
struct NestedAssignment : Assignment {
  std::vector<const For*> loops;  ///< outermost first
};
Result<NestedAssignment> nested_assignment_of(const Place& block, const char* code);

/// Returns the axis of each index: the axis variable by dimension, null for a dimension of one element. Nothing if an
/// index is anything else, or if an axis of more than one value is missing or occurs twice.
std::optional<std::vector<Ref<Var>>> axes_by_dimension(const Block& block, const std::vector<Expr>& indices);

/// Returns the axes in terms of the indices of an access; an axis with one value has this value.
VarMap bind_axes(const Block& block, const std::vector<Ref<Var>>& axes, const std::vector<Expr>& indices);

/// The way from the element that a block touches, at indices that are one to one in its axes, back to the axes. Nothing
/// where they are not, or where elements in between are touched by none.
std::optional<arith::InvertedMap> invert_access(const Block& block, const std::vector<Expr>& indices,
                                                arith::Analyzer& analyzer);

/// Returns the axes in terms of the indices of an element.
VarMap axes_at(const Block& block, const arith::InvertedMap& back, const std::vector<Expr>& element,
               arith::Analyzer& analyzer);

/// Why what the block reads might change after it has run. Nothing where it is complete (why_inputs_incomplete()), or
/// where all blocks that write it, be they opaque, have run for good before.
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
