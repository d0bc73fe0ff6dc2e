// Binds the spatial loops of a block to the blocks and threads of a GPU.
#pragma once

#include <functional>

#include "schedule/schedule.h"

namespace tilewright::search {

/// Chooses the number of threads per block for a loop of at most that extent: a constant or a sampled value.
using ThreadFactor = std::function<Result<schedule::Factor>(schedule::Schedule&, int64_t max_extent)>;

/// Samples one of the sizes that are at most `max_extent`; `max_extent` itself if there are none.
Result<schedule::Factor> sample_thread_extent(schedule::Schedule& schedule, const std::vector<int64_t>& sizes,
                                              int64_t max_extent);

/// Binds one spatial loop to blockIdx.x and threadIdx.x. Returns the resulting loops, outermost first: over blocks,
/// over threads, and, if there are more iterations than threads, over the iterations of each thread.
Result<std::vector<schedule::LoopRV>> bind_spatial_loop(schedule::Schedule& schedule, schedule::LoopRV loop,
                                                        int64_t max_threadblocks, int64_t max_threads_per_block,
                                                        const ThreadFactor& factor);

/// Binds the outer spatial loops around the block, fused, to blockIdx.x and threadIdx.x; only to blockIdx.x where loops
/// inside are bound to threads already. A block that has both, or was tiled by a rule, stays as it is. One without
/// spatial loops gets a loop of one iteration.
Status bind_block_thread_idx(schedule::Schedule& schedule, schedule::BlockRV block, int64_t max_threadblocks,
                             int64_t max_threads_per_block, const ThreadFactor& factor);

}  // namespace tilewright::search
