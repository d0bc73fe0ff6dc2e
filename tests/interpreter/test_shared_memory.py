"""Memory that threads share, where other loops stand between theirs."""

import numpy as np
import pytest

import tilewright as tw
from tilewright import script


@pytest.mark.parametrize("inner", ["threadIdx.x", "vthread.x", "threadIdx.y"])
@pytest.mark.parametrize("outer", ["T.parallel(2)", "range(2)"])
def test_iterations_between_loops_of_threads_own_what_they_share(inner: str, outer: str) -> None:
    """Each iteration of the loop between has a buffer of its own, which all threads around and inside share."""
    around = "threadIdx.x" if inner == "threadIdx.y" else "threadIdx.y"
    program = script.from_source(
        f"""from tilewright.script import tir as T
@T.prim_func
def main(A: T.Buffer((2,), "int32"), B: T.Buffer((4, 2, 3), "int32")):
    S = T.alloc_buffer((1,), "int32", scope="shared")
    for i in T.thread_binding(4, thread="{around}"):
        for j in {outer}:
            with T.block("S"):
                v = T.axis.spatial(2, j)
                S[0] = A[v]
            for k in T.thread_binding(3, thread="{inner}"):
                with T.block("B"):
                    vi, vj, vk = T.axis.remap("SSS", [i, j, k])
                    B[vi, vj, vk] = S[0]
"""
    )
    a, b = np.array([3, 5], "int32"), np.zeros((4, 2, 3), "int32")
    tw.ir.interpret(tw.Schedule(program).mod, "main", a, b)
    np.testing.assert_array_equal(b, np.broadcast_to(a[None, :, None], b.shape))


@pytest.mark.parametrize("in_a_block", [False, True])
@pytest.mark.parametrize("around", ["", "range(2)"])
@pytest.mark.parametrize("scope", ["local", "shared", "global"])
@pytest.mark.parametrize("axis", ["threadIdx.x", "vthread.x", "blockIdx.x"])
def test_threads_own_the_same_with_blocks_and_without(axis: str, scope: str, around: str, in_a_block: bool) -> None:
    """The scope of a buffer says whose it is, be its users blocks or statements that stand in none."""
    lines = [f"for r in {around}:"] * bool(around)
    lines += [f'for t in T.thread_binding(8, thread="{axis}"):'] + ['with T.block("B"):'] * in_a_block
    for depth in range(len(lines)):
        lines[depth] = "    " * (depth + 1) + lines[depth]
    inside = "    " * (len(lines) + 1)
    values = [inside + "v = T.axis.spatial(8, t)"] if in_a_block else []
    index = "v" if in_a_block else "t"
    program = script.from_source(
        "\n".join(
            [
                "@T.prim_func",
                'def main(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):',
                f'    L = T.alloc_buffer((1,), "int32", scope="{scope}")',
                *lines,
                *values,
                f"{inside}L[0] = A[{index}] + 1",
                f"{inside}B[{index}] = L[0]",
            ]
        )
    )
    a, b = np.arange(8, dtype="int32"), np.zeros(8, "int32")
    if scope == "global" or (scope == "shared" and axis != "blockIdx.x"):
        with pytest.raises(tw.ScriptError, match="interpret/race"):
            tw.ir.interpret(tw.Schedule(program).mod, "main", a, b)
    else:
        tw.ir.interpret(tw.Schedule(program).mod, "main", a, b)
        np.testing.assert_array_equal(b, a + 1)


@pytest.mark.parametrize(
    ("serial", "step", "divided"),
    [("range(4)", "k", False), ("range(1)", "t + k", True), ("range(t, t + 1)", "k", True)],
)
def test_threads_combine_only_the_steps_that_they_divide(serial: str, step: str, divided: bool) -> None:
    """Threads that each do the whole sum of one element in shared memory race."""
    program = script.from_source(
        f"""from tilewright.script import tir as T
@T.prim_func
def main(A: T.Buffer((4,), "int32"), B: T.Buffer((1,), "int32")):
    S = T.alloc_buffer((1,), "int32", scope="shared")
    for t in T.thread_binding(4, thread="threadIdx.x"):
        for k in {serial}:
            with T.block("S"):
                vk = T.axis.reduce(4, {step})
                with T.init():
                    S[0] = 0
                S[0] = S[0] + A[vk]
    with T.block("B"):
        B[0] = S[0]
"""
    )
    a, b = np.arange(4, dtype="int32"), np.zeros(1, "int32")
    if divided:
        tw.ir.interpret(tw.Schedule(program).mod, "main", a, b)
        assert b[0] == a.sum()
    else:
        with pytest.raises(tw.ScriptError, match="interpret/race"):
            tw.ir.interpret(tw.Schedule(program).mod, "main", a, b)


@pytest.mark.parametrize("names", [("V", "S"), ("S", "V"), ("V", "W")])
def test_threads_wait_for_what_is_written_under_another_name(names: tuple[str, str]) -> None:
    """A block around the threads makes the views: what is stored by one of them is read by another one."""
    written, read = names
    program = script.from_source(f"""
@T.prim_func
def main(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
    S = T.alloc_buffer((32,), "int32", scope="shared")
    for _ in T.thread_binding(1, thread="blockIdx.x"):
        with T.block("views"):
            T.reads(A[0:32])
            T.writes(B[0:32], S[0:32])
            V = T.match_buffer(S[0:32], (32,), "int32", scope="shared")
            W = T.match_buffer(S[0:32], (32,), "int32", scope="shared")
            for t in T.thread_binding(32, thread="threadIdx.x"):
                with T.block("S"):
                    v = T.axis.spatial(32, t)
                    {written}[v] = A[v]
                with T.block("B"):
                    v = T.axis.spatial(32, t)
                    B[v] = {read}[31 - v]
""")
    a, b = np.arange(32, dtype="int32"), np.zeros(32, "int32")
    tw.ir.interpret(tw.Schedule(program).mod, "main", a, b)
    np.testing.assert_array_equal(b, a[::-1])
