"""The pass plan_workspaces: temporary memory is allocated once a call, and shared."""

from __future__ import annotations

import numpy as np
from tests.lower.passes import agrees, check_unchanged, script_after

import tilewright as tw
from tilewright.script import tir as T
from tilewright.testing import check_equivalent


def test_workspaces_are_allocated_once_and_shared() -> None:
    @T.prim_func
    def before(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        for i in range(4):
            t = T.decl_buffer((100,), "float32")
            for j in range(64):
                t[j] = T.sin(A[j])
            u = T.decl_buffer((50,), "float32")
            for j in range(50):
                u[j] = T.sin(t[j])
            B[i] = u[i]
        for i in range(4):
            v = T.decl_buffer((200,), "float32")
            for j in range(64):
                v[j] = T.sin(A[j])
            B[i + 4] = v[i]

    text = tw.lower(before).script()
    assert text.count("T.allocate(") == 2
    assert 'T.allocate([T.int64(200)], "float32", "global")' in text
    assert text.index("T.allocate(") < text.index("for i in range(4)")


def test_parallel_loops_in_one_another_share_no_workspace() -> None:
    """The thread that meets the inner loop runs it, so it is serial where memory is planned."""

    @T.prim_func
    def before(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
        for i in T.parallel(4):
            for j in T.parallel(8):
                t = T.decl_buffer((100,), "float32")
                for k in T.parallel(100):
                    t[k] = A[i, j] + T.Cast("float32", k)
                B[i, j] = t[j] + t[99]

    after = tw.lower(before)
    text = after.script()
    assert text.count("T.parallel(") == 1 and text.count("T.allocate(") == 1
    assert text.index("T.parallel(4)") < text.index("T.allocate(") < text.index("for j in range(8)")
    check_equivalent(before, after)
    a, b = np.arange(32, dtype="float32").reshape(4, 8), np.zeros((4, 8), "float32")
    tw.compile(before, schedule="as written")(a, b)
    assert (b == 2 * a + np.arange(8, dtype="float32") + 99).all()


def test_memory_of_open_sizes_is_shared_with_the_same_size() -> None:
    program = tw.script.from_source("""
@T.prim_func
def func(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,))
    B = T.match_buffer(b, (n,))
    for i in range(2):
        with T.block("first"):
            x = T.alloc_buffer((n,))
            for j in range(n):
                x[j] = A[j] * T.float32(2)
            for j in range(n):
                B[j] = x[n - 1 - j]
    for i in range(2):
        with T.block("second"):
            y = T.alloc_buffer((n,))
            z = T.alloc_buffer((n + 1,))
            for j in range(n):
                y[j] = B[j] + T.float32(1)
                z[j + 1] = y[j]
            for j in range(n):
                B[j] = y[n - 1 - j] + z[j + 1]
""")
    text = tw.lower(program, after="plan_workspaces").script()
    assert text.count("T.allocate") == 2  # x and y, and z
    a = np.arange(7, dtype="float32")
    once = 2 * a[::-1] + 1
    again = (once[::-1] + once) + 1
    b = np.zeros(7, "float32")
    tw.compile(program, schedule="as written")(a, b)
    np.testing.assert_array_equal(b, again[::-1] + again)


def test_memory_that_is_shared_holds_one_buffer_at_a_time() -> None:
    @T.prim_func
    def stages(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
        for i in range(2):
            t = T.decl_buffer((8,), "int32")
            for j in range(8):
                t[j] = A[i * 8 + j] * 2
            u = T.decl_buffer((8,), "int32")
            for j in range(8):
                u[j] = t[7 - j] + 1
            for j in range(8):
                B[i * 8 + j] = u[j] + t[j]
        for i in range(16):
            v = T.decl_buffer((1,), "int32")
            v[0] = B[i]
            B[i] = v[0] * 3

    assert script_after(stages, "plan_workspaces").count("T.allocate(") == 2
    a = np.arange(16, dtype="int32")
    rows = a.reshape(2, 8)
    wanted = 3 * (rows[:, ::-1] * 2 + 1 + rows * 2).ravel()
    agrees(stages, "plan_workspaces", [a, np.zeros_like(a)], [a, wanted])


def test_a_size_that_the_loop_decides_stays_in_it() -> None:
    @T.prim_func
    def triangle(A: T.Buffer((8,), "int32")):
        for i in range(8):
            t = T.decl_buffer((i + 1,), "int32")
            for j in range(i + 1):
                t[j] = j
            A[i] = t[i // 2]

    text = script_after(triangle, "plan_workspaces")
    assert text.index("for i in range(8)") < text.index("t = T.decl_buffer((i + 1,)")
    agrees(triangle, "plan_workspaces", [np.zeros(8, "int32")], [np.arange(8, dtype="int32") // 2])


def test_programs_without_memory_of_their_own_stay() -> None:
    @T.prim_func
    def nested(A: T.Buffer((4, 8), "int32")):
        for i in T.parallel(4):
            for j in T.parallel(8):
                A[i, j] = i

    check_unchanged(nested, "plan_workspaces")
