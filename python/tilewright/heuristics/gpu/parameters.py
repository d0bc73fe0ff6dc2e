"""All numbers of the heuristics for GPUs."""

from __future__ import annotations

#: threads of a block of an elementwise kernel, and the most of any other one
BLOCK_THREADS = 256
#: threads that run in lockstep: fewer leave lanes of the processor idle
WARP_THREADS = 32

# Tiles of products. -----------------------------------------------------------------------------------------------

#: results of a block along both sides of a product, and of one thread, the largest first
TILES = (((64, 64), (4, 4)), ((32, 32), (4, 2)), ((16, 16), (2, 2)))
#: blocks that keep the processors of a device busy: smaller tiles are taken where there would be fewer
BUSY_BLOCKS = 64
#: steps of the reduction whose operands are fetched at a time; whole axes are taken up to the second number
FETCHED_STEPS, MOST_FETCHED_STEPS = 16, 32

# Reductions. ------------------------------------------------------------------------------------------------------

#: steps from which on the threads of a block share a reduction
SHARED_STEPS = 32
#: results from which on each thread reduces one of them, where neighbors read contiguous elements
MANY_RESULTS = 4096
#: columns of a block whose threads share the rows of a column
COLUMNS = 32
#: steps of a reduction for one block, where there are too few results for all processors
STEPS_PER_BLOCK = 4096
#: parts of a reduction that blocks share, which one block adds up
MOST_PARTS = 256
#: share of the memory of a block for what its threads hand on to one another
SHARED_SHARE = 0.5
