"""All numbers of the heuristics for CPUs: what a core does in a cycle, assumptions of estimates, and thresholds of
decisions.

Cycles are those of one core. The *uses* of an element are the results that need it.
"""

from __future__ import annotations

from tilewright import _core

# The machine: src/target/machine_model.def. -----------------------------------------------------------------------

_MACHINE = _core.machine_model()

#: bytes of a cache line
LINE_BYTES = int(_MACHINE["line_bytes"])
#: bytes per cycle from L2, and from L3 or memory
L2_BYTES_PER_CYCLE = _MACHINE["l2_bytes_per_cycle"]
L3_BYTES_PER_CYCLE = _MACHINE["l3_bytes_per_cycle"]
#: distance in bytes at which lines map to the same set of L1, and lines that a set holds
ALIASED_BYTES, ALIASED_LINES = int(_MACHINE["l1_way_bytes"]), int(_MACHINE["l1_ways"])
#: latency of a multiply-add in cycles, and the number of independent accumulators that keep all ports busy
FMA_CYCLES = int(_MACHINE["fma_latency_cycles"])
BUSY_ACCUMULATORS = FMA_CYCLES * int(_MACHINE["fma_ports"])
#: bytes of L3 that one core can use for most of a matrix
L3_SHARE_BYTES = int(_MACHINE["l3_share_bytes"])
#: outstanding cache misses of one core
LINES_IN_FLIGHT = int(_MACHINE["lines_in_flight"])
#: contiguous bytes from which on the hardware prefetcher works well
PREFETCHED_BYTES = int(_MACHINE["prefetched_bytes"])
#: multiply-adds and loads in a cycle
FMA_PORTS, LOAD_PORTS = _MACHINE["fma_ports"], _MACHINE["load_ports"]
#: cycles per lane of a vector whose elements are loaded one by one
GATHER_CYCLES = _MACHINE["gather_cycles_per_lane"]

# Register tiles: cycles. ------------------------------------------------------------------------------------------

#: share of the time of L2 and L3 accesses that multiply-adds do not hide
EXPOSED = 0.35
#: cycles per load that multiply-adds do not hide
LOAD_CYCLES = 0.15
#: when two times overlap, share of the shorter one that adds to the longer one
NOT_HIDDEN = 0.1
#: cycles per element of a packed copy: from contiguous columns, and from a transposed operand
COPY_CYCLES, TRANSPOSE_CYCLES = 0.25, 0.7
#: cycles of the horizontal sum of one result's lanes
HORIZONTAL_SUM_CYCLES = 4.0
#: cycles of a tile in addition to its steps
TILE_START_CYCLES = 30
#: cost factor of vector loads that cross a cache line
SPLIT_LINE_FACTOR = 1.5
#: number of tiles that use a panel, from which on packing contiguous columns pays
PACKED_USES = 6
#: number of tiles that a search samples from
SAMPLED_TILES = 16

# Contractions. ----------------------------------------------------------------------------------------------------

#: ratio of estimates from which on vector accumulators replace a register tile, and up to which a search samples both
ACCUMULATORS_BETTER, ESTIMATES_CLOSE = 1.15, 2.0
#: multiply-adds from which on a contraction is parallel
PARALLEL_MULTIPLY_ADDS = 1 << 19
#: uses up to which padded elements are computed where they are used
PADDING_USES = 16
#: number of adjacent tiles from which on boundary tiles get their own code
PARTITIONED_TILES = 8
#: vectors of a result row up to which a matrix-vector product keeps the row in registers
GEMV_VECTORS = 8
#: share of busy cores that counts as all of them
BALANCED = 0.9

# Packing. ---------------------------------------------------------------------------------------------------------

#: bytes of a source row from which on a fetch pays
PACKED_PIECE_BYTES = 2 * LINE_BYTES
#: number of panel counts that a search samples from
SAMPLED_PANELS = 4
#: steps along the rows of a source that are transposed together: minimum and maximum
FEWEST_TRANSPOSED_STEPS, MOST_TRANSPOSED_STEPS = 32, 128

# Skinny GEMM. -----------------------------------------------------------------------------------------------------

#: share of L2 for the rows of the matrix that one part of the reduction reads
SKINNY_L2_SHARE = 0.6
#: rows: minimum, maximum, and the number from which on the panel is copied
SKINNY_FEWEST_ROWS, SKINNY_MOST_ROWS, SKINNY_COPY_ROWS = 8, 128, 24
#: share of L1 for a copied panel, and the panel's width in vectors
SKINNY_L1_SHARE, SKINNY_VECTORS = 0.7, 4
#: size of the matrix, as a multiple of L2, from which on most of the matrix is not in L2
SKINNY_L2_SIZES = 1.4
#: bytes of a row from which on the row is prefetched
SKINNY_PREFETCH_BYTES = 256
#: reduction steps per part: minimum, best, maximum; and the shortest reduction
SKINNY_FEWEST_STEPS, SKINNY_STEPS, SKINNY_MOST_STEPS, SKINNY_REDUCTION = 32, 64, 128, 256

# Split-K. ---------------------------------------------------------------------------------------------------------

#: uses below which an operand need not stay in a cache
SPLIT_K_USES = 8
#: minimum number of steps of a part
SPLIT_K_STEPS = 256
#: share of L2 for the columns of a tile and the rows that are multiplied by them, and the maximum number of rows
#: counted
SPLIT_K_L2_SHARE, SPLIT_K_ROWS_NEAR = 0.8, 64
#: number of rows that amortizes partial results
SPLIT_K_ROWS = 64
#: number of steps from which on several accumulators per result pay
SEVERAL_ACCUMULATORS_STEPS = 256

# Dot-product instructions. ----------------------------------------------------------------------------------------

#: accumulators of one instruction
DOT_LANES = 16
#: maximum number of column vectors to which a tile is padded
DOT_VECTORS = 4
#: panels that are packed while their cache lines are in L1
DOT_PANELS = 4
#: bytes of a row that are padded together
DOT_PADDED_BYTES = 64
#: cycles per packed byte: contiguous columns, transposed; cost factor of the latter if the operand is also padded
DOT_PACK_CYCLES, DOT_TRANSPOSE_CYCLES, DOT_PADDING_FACTOR = 0.1, 0.15, 1.5
#: cost factor of a padded contraction, which is copied before and after
DOT_PADDED_FACTOR = 1.05
#: cost of a bfloat16 pair product in multiply-adds, on processors with AMX, whose pair product is slow
SLOW_PAIRS_FACTOR = 3.2
#: cost factor of vector accumulators of low-precision floats, each of which is converted
UPCAST_FACTOR = 1.5

# AMX tiles. -------------------------------------------------------------------------------------------------------

#: rows of a tile
AMX_ROWS = 16
#: tiles of accumulators, rows by columns, that leave room for tiles of operands
AMX_BLOCKS = ((2, 2), (2, 1), (1, 4), (1, 3), (1, 2), (1, 1))
#: cycles: latency of an instruction, configuration of the unit, storing a row of results through memory
AMX_LATENCY_CYCLES, AMX_SETUP_CYCLES, AMX_ROW_CYCLES = 52.0, 250.0, 3.0
#: cycles per element of a padded operand
AMX_PADDING_CYCLES = 0.1
#: number of variants that a search samples from
SAMPLED_AMX = 8

# Layouts of operands. ---------------------------------------------------------------------------------------------

#: cycles per element of a transposed copy, and per result whose lanes are summed
RELAYOUT_CYCLES, RELAYOUT_RESULT_CYCLES = 2.0, 12.0
#: uses from which on a strided operand is de-interleaved, and the largest stride
DEINTERLEAVE_USES, DEINTERLEAVE_STRIDE = 8, 4
#: uses from which on operands are upcast once
UPCAST_USES = 48

# Sliding windows. -------------------------------------------------------------------------------------------------

#: minimum number of unrolled steps of a window that slides along the vectors, whose shifted loads are not shared
WINDOW_TERMS_ALONG = 16
#: share of the vector registers for accumulators; the others hold the loads that windows share
WINDOW_ACCUMULATORS = 1 / 4

# Row blocking of chained products. --------------------------------------------------------------------------------

#: share of L2 for the largest intermediate buffer: of a row block, of a single block with all rows, and unblocked
BLOCK_L2_SHARE, WHOLE_BLOCK_L2_SHARE, NEAR_L2_SHARE = 1 / 4, 3 / 4, 1 / 2
#: rows of a block: minimum, maximum, and preferred multiple, so that blocks contain whole tiles
BLOCK_FEWEST_ROWS, BLOCK_MOST_ROWS, BLOCK_ROWS_MULTIPLE = 16, 128, 8
#: maximum length of a reduction that may reload operands that all rows share from beyond L2 for each block
BLOCK_REDUCTION = 256

# Single blocks. ---------------------------------------------------------------------------------------------------

#: number of elements from which on a loop is parallel
PARALLEL_ELEMENTS = 1 << 15
#: chunks per core of a parallel loop, and how many numbers of chunks are tried for one that divides a loop: all would
#: take minutes for a prime of 31 bits
CHUNKS_PER_CORE, MOST_DIVISORS = 16, 1 << 16
#: reduction steps that take as long as computing and storing an element
STEPS_PER_ELEMENT = 8
#: rows that are added to accumulators together, and the minimum number of columns of a thread
ACCUMULATED_ROWS, THREAD_COLUMNS = 4, 256
#: lanes that lowering transposes in registers, and the side of the squares of a transposed copy that stay in L1
TRANSPOSED_LANES, TRANSPOSED_SIDE = 16, 32
#: periods of a row up to which its loop is unrolled
UNROLLED_PERIODS = 4
#: maximum number of reduction steps that are unrolled
UNROLLED_STEPS = 64

# Rows with data-dependent lengths. --------------------------------------------------------------------------------

#: prefetch distance in a buffer of indices: it hides the latency of memory, and the prefetched elements are still in L1
#: when they are read. With rows of 128 bytes from an operand larger than L2, on Zen 3, in the geometric mean of five
#: structures, SDDMM takes 0.81 of its time without prefetches at distance 32, and 0.86 at 16. The kernel of SpMM in
#: intrinsics takes 0.87 and 0.92
PREFETCHED_POSITIONS = 32
#: maximum number of bytes of these prefetched elements. In SpMM with rows of 1 KiB, 16 rows fill half of L1 and take up
#: to 14 % longer than 8 rows
PREFETCHED_AHEAD_BYTES = 8192
#: bytes selected by an index from which on they are prefetched: two cache lines
PREFETCHED_ROW_BYTES = 128

# Recurrences. -----------------------------------------------------------------------------------------------------

#: vectors of adjacent sequences that one thread processes together: the minimum, so that it reads whole cache lines in
#: each step, and the maximum. A recurrence of 256 float32 columns takes 0.9, 0.6, 0.25 and 0.2 ms with 1, 2, 4 and 8
#: vectors of AVX-512, and 35 ms column by column
RECURRENCE_FEWEST_VECTORS, RECURRENCE_VECTORS = 2, 8

# Estimates of programs. -------------------------------------------------------------------------------------------

#: ratio of estimated times up to which a heuristic schedule is used although the unscheduled program seems faster
ESTIMATE_TOLERANCE = 2.0
