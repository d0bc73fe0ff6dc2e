"""Lesson 1: tune a matrix product over your own search space.

    tilewright tune examples/01_matmul.py --trials 64

The search space covers the sizes of the register tile, how many panels of B are packed at a time, and which loops are
unrolled. The search measures points of it and keeps the fastest correct one.
"""

import tilewright as tw
from tilewright.script import tir as T

N = 1024


@T.prim_func
def matmul(
    A: T.Buffer((N, N), "float32"),
    B: T.Buffer((N, N), "float32"),
    C: T.Buffer((N, N), "float32"),
):
    for i, j, k in T.grid(N, N, N):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = 0.0
            C[vi, vj] += A[vi, vk] * B[vk, vj]


@tw.space(matmul, reference=lambda a, b: a @ b)
def tiles(sch: tw.Schedule) -> None:
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    rows = sch.sample_categorical([2, 3, 4, 5, 6, 8, 10, 12, 14], [1 / 9] * 9)
    columns = int(sch.sample_categorical([8, 16, 24, 32, 48, 64], [1 / 6] * 6))
    panels = sch.sample_categorical([1, 2, 4, 8], [0.25] * 4)
    reuse = sch.sample_categorical([1, 2, 4, 8], [0.25] * 4)
    unroll = sch.sample_categorical([1, 2, 4], [1 / 3] * 3)
    j_out, j_panel, j_tile = sch.split(j, factors=[None, panels, columns])
    i_out, i_group, i_tile = sch.split(i, factors=[None, reuse, rows])
    k_out, k_in = sch.split(k, factors=[None, unroll])
    sch.reorder(j_out, i_out, j_panel, i_group, k_out, k_in, i_tile, j_tile)
    # Pack several panels of B, each of them contiguous.
    packed = sch.cache_read(block, 1, "global")
    sch.compute_at(packed, j_out)
    _, lanes = sch.split(sch.get_loops(packed)[-1], factors=[None, columns])
    # The tile of C stays in registers while k runs.
    tile = sch.cache_write(block, 0, "local")
    sch.reverse_compute_at(tile, i_group)
    sch.decompose_reduction(block, k_out)
    sch.parallel(j_out)
    sch.transform_layout(
        packed, ("write", 0), lambda k, j: (j // columns, k, j % columns), assume_injective_transform=True
    )
    *_, tile_rows, tile_columns = sch.get_loops(tile)
    for loop in (j_tile, lanes, tile_columns):
        sch.vectorize(loop)
    for loop in (i_tile, k_in, tile_rows):
        sch.unroll(loop)
