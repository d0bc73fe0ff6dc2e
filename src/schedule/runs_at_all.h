// Whether a block runs at all: sums over nothing leave what was there before.
//
//   for i, k in T.grid(n, m):           where m is 0, no element of C is written, although consumers treat C as
//     with T.block("C"):                complete: they read no initialized value in the original program either. Code
//       C[vi] = C[vi] + A[vi, vk]       that a schedule adds must not read C where nothing else reads it.
#pragma once

#include <vector>

#include "analysis/tree.h"
#include "arith/int_set.h"
#include "schedule/primitive.h"

namespace tilewright::schedule {

/// Returns the terms of "all of these are greater than 0" that cannot be proved.
Expr all_positive(const std::vector<Expr>& extents, arith::Analyzer& analyzer);
/// Extents of those of the loops around the block that may have no iteration without that `values`, over all of them,
/// are none: of loops that do not move them, and of such as `f` of n * m iterations for `f // m`.
std::vector<Expr> silent_extents(const analysis::Tree& tree, int block, const std::vector<int>& loops,
                                 const std::vector<Expr>& values);
/// The condition under which the block runs for each element of `write` that it reaches while `loops` run: that its
/// reductions have steps, and so have loops that say nothing of what is written. Null where that differs between them.
Expr runs_at_all(const analysis::Tree& tree, int block, const Ref<BufferRegion>& write, const std::vector<int>& loops,
                 arith::Analyzer& analyzer);
bool surely_runs(const analysis::Tree& tree, int block, const Ref<BufferRegion>& write, const std::vector<int>& loops,
                 arith::Analyzer& analyzer);
/// Whether a condition in it decides if it reads what it may read of the buffer, or a loop that may have no iteration
/// and does not select what is read.
bool may_not_read(const NodeRef& body, const Ref<Buffer>& buffer = {});
/// Whether one of the blocks surely reads all of the box below the statement `outside`.
bool is_read_anyhow(const analysis::Tree& tree, const std::vector<int>& readers, const Ref<Buffer>& buffer,
                    const arith::Box& box, int outside);
/// The condition under which what stands before position `end` has written the buffer at all, for a copy below the
/// statement `outside` of the `box` that the readers touch: nothing to ask where one of them surely reads all of it, or
/// where the caller has. Null where it differs between elements, or nobody can say it below `outside`.
Expr has_value(const analysis::Tree& tree, int outside, int end, const Ref<Buffer>& buffer,
               const std::vector<int>& readers, const arith::Box& box);
/// The refusal where it is null.
Diagnostic no_value(const Place& block, const Ref<Buffer>& buffer, std::string code);

}  // namespace tilewright::schedule
