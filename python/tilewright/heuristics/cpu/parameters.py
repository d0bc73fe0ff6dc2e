"""All numbers of the heuristics for CPUs: what a core does in a cycle, what estimates assume, where decisions change.

Cycles are of one core. A *use* of an element is a result that needs it.
"""

from __future__ import annotations

from tilewright import _core

# The machine: src/target/machine_model.def. -----------------------------------------------------------------------

_MACHINE = _core.machine_model()

#: bytes of a cache line
LINE_BYTES = int(_MACHINE["line_bytes"])
#: bytes per cycle from L2, and from what is behind it
L2_BYTES_PER_CYCLE = _MACHINE["l2_bytes_per_cycle"]
L3_BYTES_PER_CYCLE = _MACHINE["l3_bytes_per_cycle"]
#: distance in bytes at which lines map to the same set of L1, and lines that a set holds
ALIASED_BYTES, ALIASED_LINES = int(_MACHINE["l1_way_bytes"]), int(_MACHINE["l1_ways"])
#: cycles that a multiply-add takes, and independent accumulators that keep all ports busy for so long
FMA_CYCLES = int(_MACHINE["fma_latency_cycles"])
BUSY_ACCUMULATORS = FMA_CYCLES * int(_MACHINE["fma_ports"])
#: bytes of the part of L3 that holds most of a matrix for one core
L3_SHARE_BYTES = int(_MACHINE["l3_share_bytes"])
#: lines in flight that a core can wait for
LINES_IN_FLIGHT = int(_MACHINE["lines_in_flight"])
#: contiguous bytes that the hardware prefetcher fetches well
PREFETCHED_BYTES = int(_MACHINE["prefetched_bytes"])
#: multiply-adds and loads in a cycle
FMA_PORTS, LOAD_PORTS = _MACHINE["fma_ports"], _MACHINE["load_ports"]
#: cycles per lane of a vector whose elements are loaded one by one
GATHER_CYCLES = _MACHINE["gather_cycles_per_lane"]

# Register tiles: cycles. ------------------------------------------------------------------------------------------

#: share of the time of L2 and L3 that multiply-adds do not hide
EXPOSED = 0.35
#: cycles per load that multiply-adds do not hide
LOAD_CYCLES = 0.15
#: share of the shorter of two times that overlap, which adds to the longer one
NOT_HIDDEN = 0.1
#: cycles per element of a packed copy: from contiguous columns, and from a transposed operand
COPY_CYCLES, TRANSPOSE_CYCLES = 0.25, 0.7
#: cycles of adding up the lanes of one result
HORIZONTAL_SUM_CYCLES = 4.0
#: cycles of a tile besides its steps
TILE_START_CYCLES = 30
#: factor of loads that cross a cache line each
SPLIT_LINE_FACTOR = 1.5
#: uses by tiles from which on packing contiguous columns pays
PACKED_USES = 6
#: tiles that a search samples from
SAMPLED_TILES = 16

# Contractions. ----------------------------------------------------------------------------------------------------

#: ratio of estimates from which on vector accumulators replace a register tile, and up to which a search samples both
ACCUMULATORS_BETTER, ESTIMATES_CLOSE = 1.15, 2.0
#: multiply-adds from which on a contraction is parallel
PARALLEL_MULTIPLY_ADDS = 1 << 19
#: uses up to which padded elements are made where they are used
PADDING_USES = 16
#: number of adjacent tiles from which on those at the boundary get code of their own
PARTITIONED_TILES = 8
#: vectors of a result row up to which a matrix-vector product keeps it in registers
GEMV_VECTORS = 8
#: share of busy cores that counts as all of them
BALANCED = 0.9

# Packing. ---------------------------------------------------------------------------------------------------------

#: bytes of a row of the source that are worth fetching
PACKED_PIECE_BYTES = 2 * LINE_BYTES
#: numbers of panels at a time that a search samples from
SAMPLED_PANELS = 4
#: steps along the rows of a source that are transposed at a time
FEWEST_TRANSPOSED_STEPS, MOST_TRANSPOSED_STEPS = 32, 128

# Skinny GEMM. -----------------------------------------------------------------------------------------------------

#: share of L2 for the rows of the matrix that one part of the reduction reads
SKINNY_L2_SHARE = 0.6
#: rows: fewest, most, and from which on the panel is copied
SKINNY_FEWEST_ROWS, SKINNY_MOST_ROWS, SKINNY_COPY_ROWS = 8, 128, 24
#: share of L1 for a copied panel, and its vectors
SKINNY_L1_SHARE, SKINNY_VECTORS = 0.7, 4
#: size of the matrix, in L2 sizes, from which on most of it is not there
SKINNY_L2_SIZES = 1.4
#: bytes of a row from which on it is prefetched
SKINNY_PREFETCH_BYTES = 256
#: steps of a part of the reduction: fewest, best, most; and shortest reduction
SKINNY_FEWEST_STEPS, SKINNY_STEPS, SKINNY_MOST_STEPS, SKINNY_REDUCTION = 32, 64, 128, 256

# Split-K. ---------------------------------------------------------------------------------------------------------

#: uses below which an operand need not stay in a cache
SPLIT_K_USES = 8
#: fewest steps of a part
SPLIT_K_STEPS = 256
#: share of L2 for the columns of a tile and the rows that pass over them, and how many rows count
SPLIT_K_L2_SHARE, SPLIT_K_ROWS_NEAR = 0.8, 64
#: rows that pay for partial results
SPLIT_K_ROWS = 64
#: steps from which on several accumulators per result pay
SEVERAL_ACCUMULATORS_STEPS = 256

# Dot-product instructions. ----------------------------------------------------------------------------------------

#: accumulators of one instruction
DOT_LANES = 16
#: vectors of columns that a tile is padded to, at most
DOT_VECTORS = 4
#: panels that are packed while their lines are near
DOT_PANELS = 4
#: bytes of a row that are padded at a time
DOT_PADDED_BYTES = 64
#: cycles per packed byte: contiguous columns, transposed; factor of the latter where the operand is also padded
DOT_PACK_CYCLES, DOT_TRANSPOSE_CYCLES, DOT_PADDING_FACTOR = 0.1, 0.15, 1.5
#: factor of a padded contraction, which is copied before and after
DOT_PADDED_FACTOR = 1.05
#: cost of a bfloat16 pair product in multiply-adds, on processors with AMX, whose pair product is slow
SLOW_PAIRS_FACTOR = 3.2
#: factor of vector accumulators of low-precision floats, each of which is converted
UPCAST_FACTOR = 1.5

# AMX tiles. -------------------------------------------------------------------------------------------------------

#: rows of a tile
AMX_ROWS = 16
#: tiles of accumulators, rows by columns, that leave room for those of operands
AMX_BLOCKS = ((2, 2), (2, 1), (1, 4), (1, 3), (1, 2), (1, 1))
#: cycles: latency of an instruction, configuration of the unit, a row of results that leaves through memory
AMX_LATENCY_CYCLES, AMX_SETUP_CYCLES, AMX_ROW_CYCLES = 52.0, 250.0, 3.0
#: cycles per element of a padded operand
AMX_PADDING_CYCLES = 0.1
#: ways that a search samples from
SAMPLED_AMX = 8

# Layouts of operands. ---------------------------------------------------------------------------------------------

#: cycles per element of a transposed copy, and per result whose lanes are added up
RELAYOUT_CYCLES, RELAYOUT_RESULT_CYCLES = 2.0, 12.0
#: uses from which on a strided operand is de-interleaved, and the largest stride
DEINTERLEAVE_USES, DEINTERLEAVE_STRIDE = 8, 4
#: uses from which on operands are upcast once
UPCAST_USES = 48

# Sliding windows. -------------------------------------------------------------------------------------------------

#: fewest unrolled steps of a window that slides along the vectors, whose shifted loads nothing shares
WINDOW_TERMS_ALONG = 16
#: share of the vector registers for accumulators; the others hold what windows share
WINDOW_ACCUMULATORS = 1 / 4

# Row blocking of chained products. --------------------------------------------------------------------------------

#: share of L2 for the largest intermediate buffer: of a row block, of one that is all rows, and unblocked
BLOCK_L2_SHARE, WHOLE_BLOCK_L2_SHARE, NEAR_L2_SHARE = 1 / 4, 3 / 4, 1 / 2
#: rows of a block: fewest, most, and preferred multiple, so that blocks contain whole tiles
BLOCK_FEWEST_ROWS, BLOCK_MOST_ROWS, BLOCK_ROWS_MULTIPLE = 16, 128, 8
#: longest reduction that may fetch what all rows share from behind L2 for each block
BLOCK_REDUCTION = 256

# Single blocks. ---------------------------------------------------------------------------------------------------

#: elements from which on a loop is parallel
PARALLEL_ELEMENTS = 1 << 15
#: chunks per core of a parallel loop
CHUNKS_PER_CORE = 16
#: steps of a reduction that take as long as an element that is computed and stored
STEPS_PER_ELEMENT = 8
#: rows that are added to accumulators at a time, and fewest columns of a thread
ACCUMULATED_ROWS, THREAD_COLUMNS = 4, 256
#: lanes that lowering transposes in registers, and the side of the squares of a transposed copy that stay in L1
TRANSPOSED_LANES, TRANSPOSED_SIDE = 16, 32
#: periods of a row up to which its loop is unrolled
UNROLLED_PERIODS = 4
#: steps of a reduction that are unrolled
UNROLLED_STEPS = 64

# Rows whose lengths are data. -------------------------------------------------------------------------------------

#: positions ahead in a buffer of indices whose elements are prefetched: that hides the latency of memory, and they
#: still are in L1 when they are read
PREFETCHED_POSITIONS = 16
#: bytes of these elements at most. In SpMM with rows of 1 KiB, 16 of them fill half of L1 and take up to 14 % longer
#: than 8 of them
PREFETCHED_AHEAD_BYTES = 8192
#: bytes that an index selects from which on they are prefetched. In SpMM over R-MAT and meshes, requests for 128 bytes
#: cost 0 to 10 %, and those for 512 bytes save 7 to 15 %
PREFETCHED_ROW_BYTES = 256

# Recurrences. -----------------------------------------------------------------------------------------------------

#: vectors of neighboring sequences that one thread runs through together: at least, so that it reads whole cache lines
#: of each step, and at most. A recurrence of 256 float32 columns takes 0.9, 0.6, 0.25 and 0.2 ms with 1, 2, 4 and 8
#: vectors of AVX-512, and 35 ms column by column
RECURRENCE_FEWEST_VECTORS, RECURRENCE_VECTORS = 2, 8

# Estimates of programs. -------------------------------------------------------------------------------------------

#: ratio of estimated times up to which a heuristic schedule is taken although the unscheduled program seems faster
ESTIMATE_TOLERANCE = 2.0
