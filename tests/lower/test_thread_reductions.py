"""Reductions across threads: every element of the result is that of NumPy, and nothing beside it is written."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright import _core
from tilewright.script import from_source

UNTOUCHED = -77


def row_sums(rows: int, length: int, room: int) -> Any:
    """Sums of the rows of A, in the first elements of a C that has room for more."""
    return from_source(f"""
@T.prim_func
def main(A: T.Buffer(({rows}, {length}), "int32"), C: T.Buffer(({room},), "int32")):
    for i, k in T.grid({rows}, {length}):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = 0
            C[vi] = C[vi] + A[vi, vk]
""")


def check_sums(sch: tw.Schedule, rows: int, length: int, room: int) -> None:
    a = np.random.default_rng(rows * length).integers(-9, 9, (rows, length)).astype("int32")
    expected = np.full(room, UNTOUCHED, "int32")
    expected[:rows] = a.sum(axis=1)
    for target in ("opencl", "interpreter"):
        c = np.full(room, UNTOUCHED, "int32")
        tw.compile(sch, target=target)(a, c)
        np.testing.assert_array_equal(c, expected, err_msg=f"{target}\n{sch.mod.script()}")


@pytest.mark.parametrize("axis", [None, "threadIdx.y"])
@pytest.mark.parametrize(("factor", "length"), [(3, 4), (4, 7), (2, 1)])
def test_rows_beyond_the_result_are_not_written(factor, length, axis):
    sch = tw.Schedule(row_sums(5, length, 8))
    i, k = sch.get_loops("C")
    outer, inner = sch.split(i, [None, factor])
    sch.bind(outer, "blockIdx.x")
    sch.bind(k, "threadIdx.x")
    if axis:
        sch.bind(inner, axis)
    check_sums(sch, 5, length, 8)


@pytest.mark.parametrize("scope", ["local", "shared"])
@pytest.mark.parametrize(("length", "threads"), [(32, 8), (30, 8), (8, 8)])
def test_blocks_beside_a_reduction(scope, length, threads):
    """The operand is fetched in a loop of the reduction around the threads; in that over threads, it is refused."""
    sch = tw.Schedule(row_sums(4, length, 4))
    fetch = sch.cache_read("C", 0, scope)
    i, k = sch.get_loops("C")
    loops = sch.split(k, [None, threads])
    sch.bind(i, "blockIdx.x")
    sch.bind(loops[1], "threadIdx.x")
    inside = sch.copy()
    inside.compute_at(inside.get_block("A_" + scope), inside.get_loops("C")[-1])
    sch.compute_at(fetch, loops[0])
    check_sums(sch, 4, length, 4)
    with pytest.raises(tw.ScriptError) as raised:
        tw.compile(inside, target="opencl")
    assert raised.value.code == "lower/thread-reduction"


def refused(source: str) -> None:
    with pytest.raises(tw.ScriptError) as raised:
        tw.compile(from_source(source), target="opencl")
    assert raised.value.code == "lower/thread-reduction"


def test_what_has_no_tree_is_refused():
    program = """
@T.prim_func
def main(A: T.Buffer((4, 8), "int32"), C: T.Buffer((4,), "int32"), D: T.Buffer((4, 8), "int32")):
    for i in T.thread_binding(4, thread="blockIdx.x"):
        for k in T.thread_binding(8, thread="threadIdx.x"):
            {body}
"""
    add = """with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                {init}
                C[vi] = C[vi] + A[vi, vk]
            """
    init = """with T.init():
                    C[vi] = 0"""
    other = """with T.block("D"):
                vi, vk = T.axis.remap("SS", [i, k])
                D[vi, vk] = {value}
            """
    refused(program.format(body=add.format(init=init) + other.format(value="A[vi, vk]")))
    refused(program.format(body=other.format(value="A[vi, vk]") + add.format(init=init)))
    updates = """with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                C[vi] = C[vi] + A[vi, vk]
                C[vi] = C[vi] + D[vi, vk]
            """
    refused(program.format(body=updates))  # without an init, several stores


@pytest.mark.parametrize(
    ("step", "combine"),
    [
        ("C[vi] + A[vi, vk]", np.add),
        ("C[vi] - A[vi, vk]", np.subtract),
        ("A[vi, vk] * C[vi]", np.multiply),
        ("T.max(C[vi], A[vi, vk])", np.maximum),
        ("T.min(A[vi, vk], C[vi])", np.minimum),
    ],
)
@pytest.mark.parametrize(("length", "threads"), [(8, 8), (30, 8), (3, 8), (9, 1)])
def test_without_an_init_threads_add_to_what_there_is(step: str, combine: Any, length: int, threads: int) -> None:
    sch = tw.Schedule(
        from_source(f"""
@T.prim_func
def main(A: T.Buffer((4, {length}), "int32"), C: T.Buffer((4,), "int32")):
    for i, k in T.grid(4, {length}):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            C[vi] = {step}
""")
    )
    i, k = sch.get_loops("C")
    _, lane = sch.split(k, [None, threads])
    sch.bind(i, "blockIdx.x")
    sch.bind(lane, "threadIdx.x")
    a = np.random.default_rng(length).integers(-3, 4, (4, length)).astype("int32")
    for target in ("opencl", "interpreter"):
        c = np.array([-2, 0, 1, 5], "int32")
        want = combine(c, (np.add if combine is np.subtract else combine).reduce(a, axis=1))
        tw.compile(sch, target=target)(a, c)
        np.testing.assert_array_equal(c, want)


def test_a_result_driven_by_the_loops_of_the_reduction_is_refused():
    refused("""
@T.prim_func
def main(A: T.Buffer((4, 8), "int32"), C: T.Buffer((4,), "int32")):
    for x in T.thread_binding(32, thread="threadIdx.x"):
        with T.block("C"):
            vi = T.axis.spatial(4, x // 8)
            vk = T.axis.reduce(8, x % 8)
            with T.init():
                C[vi] = 0
            C[vi] = C[vi] + A[vi, vk]
""")


@pytest.mark.parametrize("seed", range(12))
def test_random_splits(seed):
    """Sizes that factors do not divide, with and without a fetch of the operand, over several axes of threads."""
    rng = np.random.default_rng(seed)
    rows, length = int(rng.integers(1, 9)), int(rng.integers(1, 40))
    sch = tw.Schedule(row_sums(rows, length, 24))
    fetch = sch.cache_read("C", 0, "shared") if rng.integers(2) else None
    i, k = sch.get_loops("C")
    block, row = sch.split(i, [None, int(rng.integers(1, 5))])
    serial, thread = sch.split(k, [None, int(rng.integers(1, 9))])
    sch.bind(block, "blockIdx.x")
    sch.bind(thread, "threadIdx.x")
    if fetch is None and rng.integers(2):  # a fetch inside of this loop would be made by several threads
        sch.bind(row, "threadIdx.y")
    if fetch is not None:
        sch.compute_at(fetch, [row, serial][int(rng.integers(2))])
    check_sums(sch, rows, length, 24)


def test_every_operation_of_a_reduction_is_continued():
    """A loop of the reduction around the threads: the first iteration begins, others go on with what is there."""
    neutral = {"C[vi] + {}": [0], "C[vi] * {}": [1], "T.max(C[vi], {})": [0, 1, -5]}
    for operation, start in itertools.product(neutral, [0, 1, -5]):
        program = from_source(f"""
@T.prim_func
def main(A: T.Buffer((2, 12), "int32"), C: T.Buffer((2,), "int32")):
    for i, k in T.grid(2, 12):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = {start}
            C[vi] = {operation.format("A[vi, vk]")}
""")
        sch = tw.Schedule(program)
        fetch = sch.cache_read("C", 0, "shared")
        i, k = sch.get_loops("C")
        serial, thread = sch.split(k, [None, 4])
        sch.bind(i, "blockIdx.x")
        sch.bind(thread, "threadIdx.x")
        sch.compute_at(fetch, serial)
        a = np.random.default_rng(3).integers(1, 4, (2, 12)).astype("int32")
        expected = []
        for row in a:
            value = start
            for x in row:
                value = eval(operation.replace("T.max", "max").format("x"), {"C": [value], "vi": 0, "x": int(x)})
            expected.append(value)
        if start not in neutral[operation]:
            with pytest.raises(tw.ScriptError) as raised:
                tw.compile(sch, target="opencl")
            assert raised.value.code == "lower/thread-reduction"
            continue
        kernel = tw.compile(sch, target="opencl")
        c = np.zeros(2, "int32")
        kernel(a, c)
        np.testing.assert_array_equal(c, expected, err_msg=f"{operation} from {start}")


@pytest.mark.parametrize("target", ["opencl", "cuda"])
def test_the_place_of_a_maximum_beside_loops_over_more_axes(target: str) -> None:
    """Threads along y that have no part in the reduction do not read the tree that the others write."""
    program = from_source("""
@T.prim_func
def main(A: T.Buffer((3, 40), "int32"), B: T.Buffer((3, 2, 8), "int32")):
    for b in T.thread_binding(3, thread="blockIdx.x"):
        V = T.decl_buffer((1,), "int32", scope="shared")
        P = T.decl_buffer((1,), "int32", scope="shared")
        for t in T.thread_binding(8, thread="threadIdx.x"):
            for k in range(5):
                with T.block("V"):
                    vi, vk = T.axis.spatial(1, 0), T.axis.reduce(40, k * 8 + t)
                    with T.init():
                        V[vi] = T.min_value("int32")
                        P[vi] = 99
                    stays: T.bool = T.Or(V[vi] > A[b, vk], T.And(V[vi] == A[b, vk], P[vi] < vk))
                    v: T.int32 = T.Select(stays, V[vi], A[b, vk])
                    p: T.int32 = T.Select(stays, P[vi], vk)
                    V[vi] = v
                    P[vi] = p
        for y in T.thread_binding(2, thread="threadIdx.y"):
            for t in T.thread_binding(8, thread="threadIdx.x"):
                B[b, y, t] = P[0] * 100 + y * 10 + t
""")
    a = np.random.default_rng(1).integers(0, 9, (3, 40)).astype("int32")
    expected = (a.argmax(1) * 100)[:, None, None] + np.arange(2)[:, None] * 10 + np.arange(8)
    for name, module in _core.lower_stages(tw.Schedule(program).mod, target):
        found = np.zeros((3, 2, 8), "int32")
        _core.interpret(module, "main", a.copy(), found)
        np.testing.assert_array_equal(found, expected, err_msg=f"{name}\n{module.script()}")
    if target == "opencl":
        found = np.zeros((3, 2, 8), "int32")
        tw.compile(program, target=target, schedule="as written")(a, found)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("n", [0, 5])
@pytest.mark.parametrize("form", ["serial", "condition", "outside"])
def test_a_result_without_steps_keeps_its_value(form: str, n: int) -> None:
    loops = {
        "serial": "for k, j in T.grid(32, n):",
        "condition": "for k in range(32):",
        "outside": "for j, k in T.grid(n, 32):",
    }[form]
    axes = "vk = T.axis.reduce(T.min(n, 32), k)" if form == "condition" else "vj, vk = T.axis.remap('RR', [j, k])"
    where = "T.where(k < n)" if form == "condition" else ""
    index = "vk, 0" if form == "condition" else "vj, vk"
    program = from_source(f"""
@T.prim_func
def main(a: T.handle, C: T.Buffer((4,), "int32")):
    n = T.int32()
    A = T.match_buffer(a, (n, 32), "int32")
    for i in T.thread_binding(4, thread="blockIdx.x"):
        {loops}
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                {axes}
                {where}
                with T.init():
                    C[vi] = 0
                C[vi] = C[vi] + A[{index}]
""")
    sch = tw.Schedule(program)
    sch.bind(next(each for each in sch.get_loops("C") if sch.get(each).loop_var.name == "k"), "threadIdx.x")
    a, c = np.ones((n, 32), "int32"), np.full(4, 9, "int32")
    tw.compile(sch, target="opencl")(a, c)
    np.testing.assert_array_equal(c, np.full(4, 9 if n == 0 else n if form == "condition" else 32 * n))
    assert tw.compile(sch, target="cuda").report["kernels"]


@pytest.mark.parametrize("target", ["opencl", "cuda"])
def test_a_reduction_over_no_threads_does_nothing(target: str) -> None:
    program = from_source("""
@T.prim_func
def main(A: T.Buffer((4, 0), "int32"), C: T.Buffer((4,), "int32")):
    for i in T.thread_binding(4, thread="blockIdx.x"):
        for k in T.thread_binding(0, thread="threadIdx.x"):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = 0
                C[vi] = C[vi] + A[vi, vk]
""")
    kernel, c = tw.compile(program, target=target), np.full(4, 9, "int32")
    if target == "opencl":
        kernel(np.zeros((4, 0), "int32"), c)
    np.testing.assert_array_equal(c, 9)


@pytest.mark.parametrize("target", ["opencl", "interpreter"])
def test_a_size_that_bounds_both_rows_and_steps_differs_from_no_row_to_the_next(target: str) -> None:
    """The rows are digits of one loop, by the size; the last threads of a row have no step, by the same size."""
    sch = tw.Schedule(
        from_source("""
@T.prim_func
def main(a: T.handle, c: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, n, n), "int32")
    C = T.match_buffer(c, (n, n), "int32")
    for i, j, k in T.grid(n, n, n):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = 0
            C[vi, vj] = C[vi, vj] + A[vi, vj, vk]
""")
    )
    i, j, k = sch.get_loops("C")
    sch.bind(sch.fuse(i, j), "blockIdx.x")
    sch.bind(sch.split(k, [None, 8])[1], "threadIdx.x")
    kernel = tw.compile(sch, target=target)
    for n in (1, 5, 8, 11):
        a = np.random.default_rng(n).integers(-9, 9, (n, n, n)).astype("int32")
        np.testing.assert_array_equal(kernel(a), a.sum(axis=2))
