// Computes the loops below which a block can be computed, for sample_compute_location.
#pragma once

#include "schedule/state.h"

namespace tilewright::schedule {

/// Returns the decisions that sample_compute_location() samples from: -2 to inline the block, -1 to leave it where it
/// is, and the numbers of loops, ascending. Empty for the root block.
Result<std::vector<int64_t>> compute_locations(const State& state, BlockRV block);

}  // namespace tilewright::schedule
