// Whether a block runs at all: sums over nothing leave what was there before.
//
//   for i, k in T.grid(n, m):           where m is 0, no element of C is written, though all of them "are complete"
//     with T.block("C"):                for what reads them: that has no value to read in the program as written
//       C[vi] = C[vi] + A[vi, vk]       either. What a schedule adds to read C must not, where nothing else reads it.
#pragma once

#include <vector>

#include "analysis/tree.h"
#include "arith/int_set.h"

namespace tilewright::schedule {

/// What is not proved of "all of these are greater than 0".
Expr all_positive(const std::vector<Expr>& extents, arith::Analyzer& analyzer);
/// The condition under which the block runs for each element of `write` that it reaches while `loops` run: that its
/// reductions have steps, and so have loops that say nothing of what is written. Null where that differs between them.
Expr runs_at_all(const analysis::Tree& tree, int block, const Ref<BufferRegion>& write, const std::vector<int>& loops,
                 arith::Analyzer& analyzer);
bool surely_runs(const analysis::Tree& tree, int block, const Ref<BufferRegion>& write, const std::vector<int>& loops,
                 arith::Analyzer& analyzer);
/// Whether a condition in it decides what it reads.
bool may_not_read(const NodeRef& body);
/// Whether one of the blocks surely reads all of the box below the statement `outside`.
bool is_read_anyhow(const analysis::Tree& tree, const std::vector<int>& readers, const Ref<Buffer>& buffer,
                    const arith::Box& box, int outside);

}  // namespace tilewright::schedule
