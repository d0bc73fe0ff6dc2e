// Where a block could be computed.
#pragma once

#include "schedule/state.h"

namespace tilewright::schedule {

/// What sample_compute_location() draws among, as its decisions: -2 to inline the block, -1 to leave it, and numbers of
/// loops, ascending. Empty for the root.
Result<std::vector<int64_t>> compute_locations(const State& state, BlockRV block);

}  // namespace tilewright::schedule
