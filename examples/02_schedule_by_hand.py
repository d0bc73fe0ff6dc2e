"""Lesson 2: schedule a program manually, print it, and run it.

python examples/02_schedule_by_hand.py
"""

import numpy as np

import tilewright as tw
from tilewright.script import tir as T


@T.prim_func
def scale_add(
    X: T.Buffer((1000, 256), "float32"),
    Y: T.Buffer((1000, 256), "float32"),
):
    for i, j in T.grid(1000, 256):
        with T.block("Y"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = X[vi, vj] * T.float32(2) + T.float32(1)


def main() -> None:
    sch = tw.Schedule(scale_add)
    i, j = sch.get_loops(sch.get_block("Y"))
    i_out, i_in = sch.split(i, factors=[None, 32])  # 1000 is not a multiple of 32: the last tile gets a predicate
    j_out, j_in = sch.split(j, factors=[None, 16])
    sch.reorder(i_out, j_out, i_in, j_in)
    sch.parallel(i_out)
    sch.vectorize(j_in)

    print(sch.mod.script())
    print(sch.trace)

    x = np.random.default_rng(0).random((1000, 256), dtype=np.float32)
    y = np.empty_like(x)
    kernel = tw.compile(sch)
    kernel(x, y)
    np.testing.assert_allclose(y, x * 2 + 1, rtol=1e-6)
    print(kernel.benchmark(x, y))


if __name__ == "__main__":
    main()
