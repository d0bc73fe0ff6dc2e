"""Lesson 5: use the dot-product instruction of VNNI for a product of bytes.

python examples/05_int8_vnni.py

VNNI adds four products of bytes to each of sixteen accumulators. In Tilewright this instruction is data: a
description of what it computes, and an implementation. `tensorize` inserts the implementation where a block matches
the description; the interpreter uses the description. The schedule packs W into the layout of the instruction, and
keeps the largest tile of C that fits into registers.
"""

import numpy as np

import tilewright as tw
from tilewright.script import tir as T
from tilewright.tables import Table
from tilewright.tensor_intrin.x86 import best_dot_16x4
from tilewright.timing import KernelCalls, format_seconds, limit_threads, time_interleaved

M, N, K = 384, 512, 512


@T.prim_func
def product(A: T.Buffer((M, K), "uint8"), W: T.Buffer((N, K), "int8"), C: T.Buffer((M, N), "int32")):
    for i, j, k in T.grid(M, N, K):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = 0
            C[vi, vj] += T.Cast("int32", A[vi, vk]) * T.Cast("int32", W[vj, vk])


def tile_of(target: tw.Target) -> tuple[int, int]:
    """Return the register tile of C, in rows and vectors of 16 columns: 24 of 32 registers are accumulators with
    AVX-512, 8 of 16 with AVX2."""
    return (6, 4) if target.vector_bits >= 512 else (4, 1)


def schedule(intrin: str, target: tw.Target) -> tw.Schedule:
    tile_rows, tile_vectors = tile_of(target)
    sch = tw.Schedule(product)
    block = sch.get_block("C")
    packed = sch.cache_read(block, 1, "global")
    sch.transform_layout(packed, ("write", 0), lambda j, k: (j // 16, k // 4, j % 16, k % 4))
    i, j, k = sch.get_loops(block)
    i_out, rows = sch.split(i, factors=[None, tile_rows])
    j_out, vectors, lanes = sch.split(j, factors=[None, tile_vectors, 16])
    k_out, group = sch.split(k, factors=[None, 4])
    sch.reorder(j_out, i_out, k_out, rows, vectors, lanes, group)
    tile = sch.cache_write(block, 0, "local")
    sch.reverse_compute_at(tile, i_out)
    sch.decompose_reduction(block, k_out)
    sch.tensorize(lanes, intrin)
    sch.parallel(j_out)
    for loop in (rows, vectors):
        sch.unroll(loop)
    return sch


def main() -> None:
    target = tw.Target("native")
    intrin = best_dot_16x4(target)
    if intrin is None:
        print("this processor has none of the instructions")
        return
    print(f"this processor has {intrin}")
    sch = schedule(intrin, target)
    kernel = tw.compile(sch)

    rng = np.random.default_rng(0)
    a = rng.integers(0, 256, (M, K), dtype=np.uint8)
    w = rng.integers(-128, 128, (N, K), dtype=np.int8)
    c = np.empty((M, N), np.int32)
    kernel(a, w, c)
    wide_a, wide_w = a.astype(np.int32), w.T.astype(np.int32)
    np.testing.assert_array_equal(c, wide_a @ wide_w)

    float_a, float_w = wide_a.astype(np.float32), wide_w.astype(np.float32)
    with limit_threads(1):
        samples = time_interleaved(
            {
                f"Tilewright, {intrin}": KernelCalls(kernel, (a, w, c)),
                "NumPy, float32": lambda: float_a @ float_w,
                "NumPy, int32": lambda: wide_a @ wide_w,
            },
            rounds=5,
        )
    rows = []
    for name, seconds in samples.items():
        middle = float(np.median(seconds))
        rows.append((name, format_seconds(middle), f"{2 * M * N * K / middle / 1e9:.1f}"))
    print(Table(f"{M} x {N} x {K}, 1 thread", ("", "time", "Gop/s"), tuple(rows)))


if __name__ == "__main__":
    main()
