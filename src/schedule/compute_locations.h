// Where a block could be computed.
#pragma once

#include "schedule/state.h"

namespace tilewright::schedule {

/// The decisions among which sample_compute_location() chooses: -2 to inline the block, -1 to leave it, and the numbers
/// of loops, ascending. Empty for the root.
Result<std::vector<int64_t>> compute_locations(const State& state, BlockRV block);

}  // namespace tilewright::schedule
