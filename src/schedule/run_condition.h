// Computes the condition under which a block runs. A reduction over an empty domain writes nothing, so a copy that a
// schedule inserts must not read its result then, unless the original program reads it too.
//
//   for i, k in T.grid(n, m):           writes no element of C if m is 0; the condition is m > 0
//     with T.block("C"):
//       C[vi] = C[vi] + A[vi, vk]
#pragma once

#include <vector>

#include "analysis/tree.h"
#include "arith/int_set.h"
#include "schedule/primitive.h"

namespace tilewright::schedule {

/// Returns the condition that all extents are positive, without the terms that can be proved.
Expr all_positive(const std::vector<Expr>& extents, arith::Analyzer& analyzer);
/// Returns the extents, not proved to be positive, of `loops` on which `values` do not depend, or depend only through
/// quotients such as f // m. If such a loop is empty, nothing runs, although the range of `values` is not empty.
std::vector<Expr> possibly_empty_extents(const analysis::Tree& tree, int block, const std::vector<int>& loops,
                                         const std::vector<Expr>& values);
/// Returns the condition, outside of `loops`, under which the block runs at least once for each element of `write` that
/// it reaches in them: reduction domains, and loops that do not select elements, must not be empty. Null if the
/// condition would depend on `loops` or on memory.
Expr run_condition(const analysis::Tree& tree, int block, const Ref<BufferRegion>& write, const std::vector<int>& loops,
                   arith::Analyzer& analyzer);
/// Whether that condition is always true.
bool surely_runs(const analysis::Tree& tree, int block, const Ref<BufferRegion>& write, const std::vector<int>& loops,
                 arith::Analyzer& analyzer);
/// Whether `body` may skip reads of the buffer: under a condition, or in a loop that may be empty although the region
/// that is read is not.
bool may_skip_read(const NodeRef& body, const Ref<Buffer>& buffer = {});
/// Whether one of the `readers` surely reads all of `box` in each execution of the statement `outside`.
bool surely_reads(const analysis::Tree& tree, const std::vector<int>& readers, const Ref<Buffer>& buffer,
                  const arith::Box& box, int outside);
/// Returns the condition under which statements before position `end` have written the buffer, for a copy of `box` that
/// is inserted below the statement `outside`. The condition is true if one of the `readers` surely reads all of `box`,
/// or if only callers write the buffer. Null if it differs between elements, or depends on loops that `outside` is not
/// in.
Expr written_condition(const analysis::Tree& tree, int outside, int end, const Ref<Buffer>& buffer,
                       const std::vector<int>& readers, const arith::Box& box);
/// Returns the error for a condition that is null.
Diagnostic refuse_unwritten(const Place& block, const Ref<Buffer>& buffer, std::string code);

}  // namespace tilewright::schedule
