// Blocks that deal with a whole region below a loop at once: what read_at, write_at and prefetch_at have in common.
#pragma once

#include "schedule/cache.h"

namespace tilewright::schedule {

/// A loop and what stands directly below it.
struct AtLoop {
  Place loop, block;
  int scope;
  std::vector<int> statements;  ///< statements of the loop's body
  std::vector<int> blocks;      ///< below the loop, with nothing but loops between
};
/// CODE: the loop is not around the block, in its scope, or something else than blocks stands below it.
Result<AtLoop> at_loop(const State& state, LoopRV loop, BlockRV block, const char* code);
/// The number of the statement that holds the block.
int statement_of(const AtLoop& at, int block);

/// Returns the region of the buffer that these blocks read or write in one iteration of the loop, and of those loops
/// around it whose iterations share memory of this storage scope.
arith::Region region_below(const AtLoop& at, const std::vector<int>& blocks, const Ref<Buffer>& buffer, bool reads,
                           const std::string& storage_scope);

/// A block with one axis (v0, v1, ...) for each enclosing loop that the region depends on; the region is expressed in
/// these axes. With `by_digits`, a loop that the region uses only through digits such as f // 4 gets one axis for each
/// digit, unless the digits determine the loop variable.
struct RegionBlock {
  std::vector<Ref<IterVar>> axes;
  std::vector<Expr> values;
  arith::Region region;
};
RegionBlock region_block(const AtLoop& at, const arith::Region& region, bool by_digits);

/// Why what `block` touches of the buffer is unknown where the block does not run: its condition skips instances, and
/// data that may be undefined for them select what it touches.
std::optional<analysis::Obstacle> why_region_unknown(const Tree& tree, int block, const Ref<Buffer>& buffer,
                                                     bool reads);

/// The codes of read_at and write_at.
struct AtCodes {
  const char *place, *scope, *order, *values, *execution;
};
/// The program with a copy in each iteration of the loop; `reads`: before the blocks that read, else after those that
/// write. The plan has the copying block as its output.
Result<Plan> copy_at(const State& state, const AtLoop& at, const Ref<Buffer>& buffer, const std::string& storage_scope,
                     bool reads, const AtCodes& codes);

/// The step that prefetches what a block would read, before the statements of the loop; `made` is the block of the
/// hint.
TreeEdit insert_prefetch(const AtLoop& at, const RegionBlock& frame, const Ref<Buffer>& buffer, const Expr& condition,
                         Ref<Block>* made);

}  // namespace tilewright::schedule
