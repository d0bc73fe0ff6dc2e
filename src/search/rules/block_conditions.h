// Conditions that rules check before they change a block.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "analysis/tree.h"
#include "search/tune_context.h"

namespace tilewright::search {

using schedule::Place;

/// How the elements that a block reads correspond to those that it writes. Requires that every index of the write is an
/// axis, and every index of the read a constant or an axis of the write plus a constant; otherwise `exists` is false.
struct ReadWritePattern {
  bool exists = false;
  bool surjective = false;     ///< each index of the write occurs in the read
  bool injective = false;      ///< no index of the write occurs twice in the read
  bool ordered = false;        ///< the indices occur in the order of the write
  bool no_const_read = false;  ///< no index of the read is a constant
  bool no_shift_read = false;  ///< no index of the read is an axis plus a constant
};
ReadWritePattern read_write_pattern(const BufferRegion& read, const BufferRegion& write);

/// Whether all axes of the block are data-parallel.
bool is_spatial_block(const Block& block);
/// Whether all axes of all blocks are data-parallel.
bool is_spatial_function(const analysis::Tree& tree);
/// Whether axis i is bound to the i-th loop around the block, and there are as many loops as axes.
bool has_trivial_binding(const Place& block);
/// Whether a rule has tiled the block.
bool is_tiled(const Block& block);
/// Whether every read has the indices of the only write, in the same order: elementwise, like copies of cache_write().
bool is_write_cache(const Block& block);
/// Whether the block reads no buffer that it writes, and instances write disjoint elements (analysis/block_facts.h).
bool is_complete_block(const Place& block);
/// Whether the block has an init, and instances with different spatial axes write disjoint elements.
bool is_reduction_block(const Place& block);

/// Consumers or producers of the block in its scope, in program order.
std::vector<Place> consumers_of(const Place& block);
std::vector<Place> producers_of(const Place& block);
/// Whether the block writes a buffer that its scope does not allocate.
bool is_output_block(const Place& block);

/// Whether tiling pays: the block is a reduction, and some read does not depend on a spatial axis, so that its elements
/// are reused along this axis.
bool needs_multi_level_tiling(const Place& block);

/// Number of iterations of the spatial loops around a block, and of the reduction loops.
struct LoopLengths {
  int64_t spatial = 1, reduction = 1;
};
/// Nothing if an extent is not constant, or a loop is neither spatial nor a reduction loop.
std::optional<LoopLengths> loop_lengths(const Place& block);

/// Whether splitting the reduction pays: at most `max_parallel_extent` spatial iterations do not keep all workers busy.
bool needs_split_reduction(const Place& block, int64_t max_parallel_extent);

struct FusedReduction {
  LoopRV loop;
  size_t num_spatial_loops = 0;
};
/// Reorders the reduction loops around a block to the inside, and fuses them. Requires at least one reduction loop, as
/// needs_split_reduction() checks.
Result<FusedReduction> fuse_reduction_loops(Schedule& schedule, BlockRV block);

/// Converts the result of sample_perfect_tile() to factors of split().
std::vector<schedule::Factor> as_factors(const std::vector<std::optional<schedule::ExprRV>>& sampled);
/// Returns n equal weights that add up to 1.
std::vector<double> equal_weights(size_t n);
}  // namespace tilewright::search
