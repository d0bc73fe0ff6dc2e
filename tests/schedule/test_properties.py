"""Random steps on several programs: whatever a schedule accepts computes the same as the original, interpreted and
compiled.

TILEWRIGHT_PROPERTY_CASES sets the number of cases per program (the default keeps the run short).
"""

import os
import random

import numpy as np
import pytest

import tilewright as tw
from tilewright import _core
from tilewright.script import tir as T
from tilewright.testing import check_schedule, workloads
from tilewright.testing.check import random_arguments

CASES = int(os.environ.get("TILEWRIGHT_PROPERTY_CASES", "24"))


@T.prim_func
def two_dimensional_halo(A: T.Buffer((6, 6)), C: T.Buffer((4, 4))):
    B = T.alloc_buffer((6, 6))
    for i, j in T.grid(6, 6):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j, p, q in T.grid(4, 4, 3, 3):
        with T.block("C"):
            vi, vj, vp, vq = T.axis.remap("SSRR", [i, j, p, q])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + B[vi + vp, vj + vq]


@T.prim_func
def reshaped(A: T.Buffer((24,)), C: T.Buffer((4, 6))):
    B = T.alloc_buffer((6, 4))
    for i in range(24):
        with T.block("B"):
            vi = T.axis.spatial(24, i)
            B[vi // 4, vi % 4] = A[vi] + T.float32(1)
    for i, j in T.grid(4, 6):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vj, vi]


@T.prim_func
def suspicious(A: T.Buffer((8,)), X: T.Buffer((8,)), C: T.Buffer((8,))):
    """Cells that are reused, overwritten and updated in place: most steps must be refused."""
    B = T.alloc_buffer((8,))
    cell = T.alloc_buffer((1,))
    for i in range(8):
        with T.block("cell"):
            vi = T.axis.spatial(8, i)
            cell[0] = A[vi]
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = cell[0] + T.float32(1)
    for i in range(8):
        with T.block("X"):
            vi = T.axis.spatial(8, i)
            X[vi] = X[vi] + B[7 - vi]
    for i in range(7):
        with T.block("running"):
            vi = T.axis.spatial(7, i)
            X[vi + 1] = X[vi] + A[vi]
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = X[vi] * B[vi]


@T.prim_func
def symbolic_matmul(a: T.handle, b: T.handle, c: T.handle):
    n = T.int32()
    m = T.int32()
    k = T.int32()
    A = T.match_buffer(a, (n, k))
    B = T.match_buffer(b, (k, m))
    C = T.match_buffer(c, (n, m))
    for i, j, p in T.grid(n, m, k):
        with T.block("C"):
            vi, vj, vp = T.axis.remap("SSR", [i, j, p])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vp] * B[vp, vj]


@T.prim_func
def symbolic_chain(a: T.handle, d: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, 6))
    D = T.match_buffer(d, (n, 6))
    B = T.alloc_buffer((n, 6))
    C = T.alloc_buffer((n, 6))
    for i, j in T.grid(n, 6):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.float32(1)
    for i, j in T.grid(n, 6):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] * T.float32(2)
    for i, j in T.grid(n, 6):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = C[vi, vj] - A[vi, vj]


@T.prim_func
def symbolic_softmax(a: T.handle, b: T.handle):
    n = T.int32()
    m = T.int32()
    A = T.match_buffer(a, (n, m))
    B = T.match_buffer(b, (n, m))
    top = T.alloc_buffer((n,))
    total = T.alloc_buffer((n,))
    for i, j in T.grid(n, m):
        with T.block("top"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                top[vi] = T.float32(-100)
            top[vi] = T.max(top[vi], A[vi, vj])
    for i, j in T.grid(n, m):
        with T.block("total"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                total[vi] = T.float32(0)
            total[vi] = total[vi] + (A[vi, vj] - top[vi])
    for i, j in T.grid(n, m):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = (A[vi, vj] - top[vi]) * total[vi]


@T.prim_func
def symbolic_halo(a: T.handle, c: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,))
    C = T.match_buffer(c, (n,))
    Q = T.alloc_buffer((n + 2,))
    for i in range(n + 2):
        with T.block("Q"):
            vi = T.axis.spatial(n + 2, i)
            Q[vi] = T.if_then_else(vi >= 1 and vi < n + 1, A[vi - 1], T.float32(0))
    for i, k in T.grid(n, 3):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + Q[vi + vk]


PROGRAMS = {
    "matmul": workloads.matmul(6, 8, 10),
    "matmul_relu": workloads.matmul_relu(4, 6, 5),
    "softmax": workloads.softmax_like(4, 6),
    "conv": workloads.conv1d(8, 3, 2),
    "transpose": workloads.transpose(6, 8),
    "chain": workloads.elementwise_chain(4, 6),
    "pool": workloads.pool(6),
    "halo": two_dimensional_halo,
    "reshaped": reshaped,
    "suspicious": suspicious,
    "symbolic_matmul": symbolic_matmul,
    "symbolic_chain": symbolic_chain,
    "symbolic_softmax": symbolic_softmax,
    "symbolic_halo": symbolic_halo,
}
#: Values of symbolic sizes: neither multiples of the factors drawn, nor larger than them.
SIZES = [{"n": 7, "m": 5, "k": 9}, {"n": 1, "m": 1, "k": 1}, {"n": 16, "m": 17, "k": 3}]


def blocks_below(sch, block):
    found = []
    for child in sch.get_child_blocks(block):
        found += [child, *blocks_below(sch, child)]
    return found


class Dice:
    """Draws handles of a schedule as it is now."""

    def __init__(self, sch, rng):
        self.sch, self.rng = sch, rng

    def block(self):
        return self.rng.choice(blocks_below(self.sch, self.sch.get_block("root")))

    def loop(self, block=None):
        return self.rng.choice(self.sch.get_loops(block or self.block()))

    def factor(self):
        return self.rng.choice([1, 2, 2, 3, 4, 5])


def split(d):
    loop = d.loop()
    d.sch.split(loop, d.rng.choice([[None, d.factor()], [d.factor(), None], [None, d.factor(), d.factor()]]))


def split_sampled(d):
    loop = d.loop()
    d.sch.split(loop, d.sch.sample_perfect_tile(loop, n=d.rng.choice([2, 3]), max_innermost_factor=4))


def fuse(d):
    loops = d.sch.get_loops(d.block())
    start = d.rng.randrange(len(loops))
    d.sch.fuse(*loops[start : start + d.rng.choice([2, 2, 3])])


def reorder(d):
    loops = d.sch.get_loops(d.block())
    d.sch.reorder(*d.rng.sample(loops, d.rng.randrange(2, len(loops) + 1)))


def execution(d):
    getattr(d.sch, d.rng.choice(["parallel", "vectorize", "unroll"]))(d.loop())


def bind(d):
    d.sch.bind(d.loop(), d.rng.choice(["blockIdx.x", "threadIdx.x", "threadIdx.y"]))


def cache_read(d):
    block = d.block()
    count = len(d.sch.get(block).reads)
    if count:
        d.sch.cache_read(block, d.rng.randrange(count), d.rng.choice(["global", "local"]))


def cache_write(d):
    d.sch.cache_write(d.block(), 0, d.rng.choice(["global", "local"]))


def compute_at(d):
    producer = d.block()
    consumers = d.sch.get_consumers(producer)
    loop = d.loop(d.rng.choice(consumers)) if consumers else d.loop()
    d.sch.compute_at(producer, loop, preserve_unit_loops=d.rng.random() < 0.3, index=d.rng.choice([-1, -1, -2, 0, 1]))


def reverse_compute_at(d):
    consumer = d.block()
    producers = d.sch.get_producers(consumer)
    loop = d.loop(d.rng.choice(producers)) if producers else d.loop()
    d.sch.reverse_compute_at(consumer, loop, preserve_unit_loops=d.rng.random() < 0.3)


def decompose_reduction(d):
    block = d.block()
    d.sch.decompose_reduction(block, d.loop(block))


def compute_inline(d):
    d.sch.compute_inline(d.block())


def reverse_compute_inline(d):
    d.sch.reverse_compute_inline(d.block())


STEPS = [
    split,
    split,
    split_sampled,
    fuse,
    reorder,
    reorder,
    execution,
    cache_read,
    cache_write,
    compute_at,
    compute_at,
]
STEPS += [reverse_compute_at, reverse_compute_at, decompose_reduction, bind, compute_inline, reverse_compute_inline]


def annotate(d):
    d.sch.annotate(d.block(), "note", d.rng.choice([1, "text", [1, 2]]))


STEPS += [annotate]


def random_schedule(program, seed, steps):
    """A schedule after as many attempts at random steps, and the codes of those that were refused."""
    rng = random.Random(seed)
    sch = tw.Schedule(program, seed=seed)
    dice = Dice(sch, rng)
    refusals = []
    for _ in range(steps):
        try:
            rng.choice(STEPS)(dice)
        except tw.ScheduleError as error:
            refusals.append(error.code)
        except (ValueError, IndexError) as error:
            # No loops, or too few of them, to choose from.
            assert not isinstance(error, tw.Error), error
    return sch, refusals


def sizes_of(name):
    return SIZES if name.startswith("symbolic") else SIZES[:1]


def interpreted(module, seed, sizes):
    arrays = random_arguments(module.functions["main"], seed, sizes)
    _core.interpret(module, "main", *arrays, timeout=60.0)
    return arrays


def called(kernel, module, seed, sizes):
    arrays = random_arguments(module.functions["main"], seed, sizes)
    kernel(*arrays)
    return arrays


@pytest.mark.parametrize("name", PROGRAMS)
def test_accepted_schedules_compute_the_same(name):
    program = PROGRAMS[name]
    want = [interpreted(tw.Schedule(program).mod, 0, sizes) for sizes in sizes_of(name)]
    accepted = 0
    for case in range(CASES):
        sch, refusals = random_schedule(program, seed=case, steps=12)
        accepted += 12 - len(refusals)
        try:
            for sizes, expected in zip(sizes_of(name), want, strict=True):
                np.testing.assert_equal(interpreted(sch.mod, 0, sizes), expected)
            if case % 4 == 0:
                check_schedule(sch, program)
            # There are no threads of a GPU on a CPU.
            if case % 4 < 2 and "thread_binding" not in sch.mod.script():
                kernel = tw.compile(sch)
                for sizes, expected in zip(sizes_of(name), want, strict=True):
                    np.testing.assert_equal(called(kernel, sch.mod, 0, sizes), expected)
        except Exception as error:
            raise AssertionError(
                f"{name}, case {case}: {error}\n{sch.trace.simplified()}\n{sch.mod.script()}"
            ) from error
    assert accepted >= CASES, "hardly any step was accepted: the test shows nothing"
