// Giving the iterations of a block to the blocks and threads of a GPU.
#pragma once

#include <functional>

#include "schedule/schedule.h"

namespace tilewright::search {

/// How many threads a team gets, for a loop of at most that extent: a number, or one that is drawn.
using ThreadFactor = std::function<Result<schedule::Factor>(schedule::Schedule&, int64_t max_extent)>;

/// Binds the outer spatial loops around the block, fused, to blockIdx.x and threadIdx.x; only to blockIdx.x where loops
/// inside are bound to threads already. A block that has both, or was tiled by a rule, stays as it is. One without
/// spatial loops gets a loop of one iteration.
Status bind_block_thread_idx(schedule::Schedule& schedule, schedule::BlockRV block, int64_t max_threadblocks,
                             int64_t max_threads_per_block, const ThreadFactor& factor);

}  // namespace tilewright::search
