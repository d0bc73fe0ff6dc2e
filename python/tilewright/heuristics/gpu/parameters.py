"""All numbers of the heuristics for GPUs."""

from __future__ import annotations

#: threads per block: exact for elementwise kernels, the maximum for all others
BLOCK_THREADS = 256
#: threads that execute in lockstep; smaller blocks leave lanes idle
WARP_THREADS = 32

# Tiles of products. -----------------------------------------------------------------------------------------------

#: tile sizes of products, (rows, columns) of a block and of one thread, in descending order
TILES = (((64, 64), (4, 4)), ((32, 32), (4, 2)), ((16, 16), (2, 2)))
#: the number of blocks that occupies a device; smaller tiles are used if a grid would have fewer blocks
BUSY_BLOCKS = 64
#: reduction steps per fetch into shared memory; axes are fetched whole if the product stays below the second number
FETCHED_STEPS, MOST_FETCHED_STEPS = 16, 32

# Reductions. ------------------------------------------------------------------------------------------------------

#: the minimum length of a reduction that the threads of a block share
SHARED_STEPS = 32
#: with at least this many results, each thread reduces one result, if adjacent threads read contiguous elements
MANY_RESULTS = 4096
#: columns per block in column reductions, whose threads share the rows
COLUMNS = 32
#: reduction steps per block if a reduction is split among blocks (split-K)
STEPS_PER_BLOCK = 4096
#: the maximum number of partial results of a reduction that is split among blocks
MOST_PARTS = 256
#: the fraction of shared memory that intermediate rows may use
SHARED_SHARE = 0.5
