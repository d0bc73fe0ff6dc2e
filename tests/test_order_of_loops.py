"""By rules, it is no matter in which order the loops of a program were written."""

import itertools

import numpy as np
import pytest

import tilewright as tw
from test_cpu_space import TARGETS, scheduled
from tilewright import cpu_space
from tilewright.script import tir as T


def product_in_order(order, sizes):
    """As people write it, in whatever order of loops."""
    dims = dict(zip("ijk", sizes, strict=True))
    opened = [size for size in sizes if isinstance(size, str)]
    return tw.script.from_source(
        f"""from tilewright.script import tir as T
@T.prim_func
def main(a: T.handle, b: T.handle, c: T.handle):
    {"; ".join(f"{name} = T.int32()" for name in dict.fromkeys(opened)) or "pass"}
    A = T.match_buffer(a, ({dims["i"]}, {dims["k"]}))
    B = T.match_buffer(b, ({dims["k"]}, {dims["j"]}))
    C = T.match_buffer(c, ({dims["i"]}, {dims["j"]}))
    for {", ".join(order)} in T.grid({", ".join(str(dims[axis]) for axis in order)}):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""
    )


@pytest.mark.parametrize("sizes", [(48, 48, 48), (20, 36, 28), ("n", "n", "n"), ("n", 40, "m")])
def test_the_order_of_loops_is_no_matter(sizes):
    target = tw.Target(TARGETS[0])
    scripts = set()
    for order in itertools.permutations("ijk"):
        sch = tw.Schedule(product_in_order(order, sizes))
        cpu_space.schedule_for_cpu(sch, target, best=True, sizes={"n": 50, "m": 30})
        sch.verify()
        tw.compile(sch, target)
        scripts.add(sch.mod.script())
    assert len(scripts) == 1


def test_an_order_of_loops_that_has_to_stay():
    """Two blocks in one nest: nothing is known of their loops, or only of those that they have alone."""

    @T.prim_func
    def main(A: T.Buffer((6, 6)), B: T.Buffer((6, 6)), C: T.Buffer((6, 6))):
        for i, j in T.grid(6, 6):
            with T.block("B"):
                vj, vi = T.axis.remap("SS", [j, i])
                B[vi, vj] = A[vi, vj] + T.float32(1)
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj] * T.float32(2)

    scheduled(main).verify()
    kernel = tw.compile(main)
    a, b, c = np.ones((6, 6), "float32"), np.zeros((6, 6), "float32"), np.zeros((6, 6), "float32")
    kernel(a, b, c)
    assert (b == 2).all() and (c == 2).all()
