// Inserts blocks that copy or prefetch the region of a buffer that one iteration of a loop accesses. Shared by read_at,
// write_at and prefetch_at.
#pragma once

#include "schedule/cache.h"

namespace tilewright::schedule {

/// The loop at which a copy or a prefetch is inserted, its statements and its blocks.
struct CopyLoop {
  Place loop, block;
  int scope;
  std::vector<int> statements;  ///< statements of the loop's body
  std::vector<int> blocks;      ///< blocks below the loop, with only loops in between
};
/// Finds the loop. Refuses with `code` if it is not around the block in its scope, or if a statement below it is not in
/// a block.
Result<CopyLoop> find_copy_loop(const State& state, LoopRV loop, BlockRV block, const char* code);
/// Returns the index of the statement that contains the block.
int statement_of(const CopyLoop& target, int block);

/// Returns the region of the buffer that these blocks read or write in one iteration of the loop, and of those loops
/// around it whose iterations share memory of this storage scope.
arith::Region region_below(const CopyLoop& target, const std::vector<int>& blocks, const Ref<Buffer>& buffer,
                           bool reads, const std::string& storage_scope);

/// A block with one axis (v0, v1, ...) for each enclosing loop that the region depends on; the region is expressed in
/// these axes. With `by_digits`, a loop that the region uses only through digits such as f // 4 gets one axis for each
/// digit, unless the digits determine the loop variable.
struct RegionBlock {
  std::vector<Ref<IterVar>> axes;
  std::vector<Expr> values;
  arith::Region region;
};
RegionBlock region_block(const CopyLoop& target, const arith::Region& region, bool by_digits);

/// Returns why the region of the buffer that `block` accesses is unknown: the predicate skips instances of the block,
/// and the region depends on loaded values, which may be undefined for these. Nothing if it is known.
std::optional<analysis::Obstacle> why_region_unknown(const Tree& tree, int block, const Ref<Buffer>& buffer,
                                                     bool reads);

/// Error codes, which differ between read_at and write_at.
struct CopyCodes {
  const char *location, *scope, *order, *values, *execution;
};
/// Plans a copy in each iteration of the loop: before the blocks that read the buffer if `reads` is set, else after
/// those that write it. The output of the plan is the copying block.
Result<Plan> copy_at(const State& state, const CopyLoop& target, const Ref<Buffer>& buffer,
                     const std::string& storage_scope, bool reads, const CopyCodes& codes);

/// Inserts a prefetch of the region of `frame` before the statements of the loop, and returns its block in `made`.
TreeEdit insert_prefetch(const CopyLoop& target, const RegionBlock& frame, const Ref<Buffer>& buffer,
                         const Expr& condition, Ref<Block>* made);

}  // namespace tilewright::schedule
