// What rules want to know of a block before they touch it.
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
  bool injective = false;      ///< none occurs twice
  bool ordered = false;        ///< they occur in the order of the write
  bool no_const_read = false;  ///< no index is a constant
  bool no_shift_read = false;  ///< none is shifted
};
ReadWritePattern read_write_pattern(const BufferRegion& read, const BufferRegion& write);

/// All axes are data-parallel.
bool is_spatial_block(const Block& block);
/// All axes of all blocks are.
bool is_spatial_function(const analysis::Tree& tree);
/// Each axis is one of the loops around, in their order, and all of them.
bool has_trivial_binding(const Place& block);
/// A rule has tiled it.
bool is_tiled(const Block& block);
/// It copies a buffer element by element, in order.
bool is_write_cache(const Block& block);
/// It reads and writes different buffers, each instance elements of its own.
bool is_complete_block(const Place& block);
bool is_reduction_block(const Place& block);

/// Blocks of the same scope, in program order.
std::vector<Place> consumers_of(const Place& block);
std::vector<Place> producers_of(const Place& block);
/// Whether what it writes is seen outside of its scope.
bool is_output_block(const Place& block);

/// Tiling pays: a reduction that reads some elements again, along a spatial axis that does not move in one of the
/// buffers.
bool needs_multi_level_tiling(const Place& block);

/// The iterations of the loops around a block: of those that are spatial, and of those that reduce.
struct LoopLengths {
  int64_t spatial = 1, reduction = 1;
};
/// None where an extent is not constant.
std::optional<LoopLengths> loop_lengths(const Place& block);

/// Splitting the reduction pays: there are not `enough` spatial iterations to keep all workers busy.
bool needs_split_reduction(const Place& block, int64_t enough);

struct FusedReduction {
  LoopRV loop;
  size_t num_spatial_loops = 0;
};
/// Moves the reduction loops around a block inside, and makes one of them.
Result<FusedReduction> fuse_reduction_loops(Schedule& schedule, BlockRV block);

/// The factors of sample_perfect_tile() as split() takes them.
std::vector<schedule::Factor> as_factors(const std::vector<std::optional<schedule::ExprRV>>& sampled);
/// n equal weights that add up to 1.
std::vector<double> equal_weights(size_t n);
}  // namespace tilewright::search
