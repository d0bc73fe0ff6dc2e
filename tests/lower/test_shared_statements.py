"""Plain statements that exchange data in shared memory: threads wait where the order of statements matters.

The interpreter, each pass and the kernel on OpenCL agree; barriers of the program are kept or refused.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw
from lower.test_gpu import numbers
from tilewright import _core
from tilewright.script import from_source

HEAD = """
@T.prim_func
def main(A: T.Buffer((4, 32)), B: T.Buffer((4, 32))):
"""
IN_ORDER = """
    S = T.alloc_buffer((32,), scope="shared")
    for bx in T.thread_binding(4, thread="blockIdx.x"):
        for tx in T.thread_binding(32, thread="threadIdx.x"):
            S[tx] = A[bx, tx]
            B[bx, tx] = S[31 - tx]
            S[tx] = A[bx, tx] * T.float32(2)
            B[bx, tx] = B[bx, tx] + S[(tx + 1) % 32]
"""
IN_A_LOOP = """
    S = T.alloc_buffer((32,), scope="shared")
    for bx in T.thread_binding(4, thread="blockIdx.x"):
        for tx in T.thread_binding(32, thread="threadIdx.x"):
            B[bx, tx] = T.float32(0)
            for k in range(3):
                S[tx] = A[(bx + k) % 4, tx]
                B[bx, tx] = B[bx, tx] + S[31 - tx]
"""
A_TREE = """
    S = T.alloc_buffer((32,), scope="shared")
    for bx in T.thread_binding(4, thread="blockIdx.x"):
        for tx in T.thread_binding(32, thread="threadIdx.x"):
            S[tx] = A[bx, tx]
            for s in range(5):
                if tx < T.shift_right(16, s):
                    S[tx] = S[tx] + S[tx + T.shift_right(16, s)]
            B[bx, tx] = S[0]
"""
IF_OF_SHARED_MEMORY = """
    S = T.alloc_buffer((32,), scope="shared")
    for bx in T.thread_binding(4, thread="blockIdx.x"):
        for tx in T.thread_binding(32, thread="threadIdx.x"):
            S[tx] = A[bx, 0]
            if S[5] > T.float32(0):
                S[tx] = A[bx, tx]
                B[bx, tx] = S[31 - tx]
            else:
                B[bx, tx] = T.float32(7)
"""
WITHOUT_BLOCKS = """
    for bx in T.thread_binding(4, thread="blockIdx.x"):
        S = T.decl_buffer((32,), scope="shared")
        for tx in T.thread_binding(32, thread="threadIdx.x"):
            S[tx] = A[bx, tx]
            B[bx, tx] = S[31 - tx]
"""
IF_OF_A_BLOCK = """
    S = T.alloc_buffer((32,), scope="shared")
    for bx in T.thread_binding(4, thread="blockIdx.x"):
        for tx in T.thread_binding(32, thread="threadIdx.x"):
            if bx < 3:
                S[tx] = A[bx, tx]
                T.tvm_storage_sync("shared")
                B[bx, tx] = S[31 - tx]
            else:
                B[bx, tx] = T.float32(1)
"""
GLOBAL_MEMORY = """
    for bx in T.thread_binding(4, thread="blockIdx.x"):
        for tx in T.thread_binding(32, thread="threadIdx.x"):
            B[bx, tx] = A[bx, tx]
            if bx < 4:
                T.tvm_storage_sync("shared")
            if tx < 16:
                B[bx, tx] = B[bx, tx] + B[bx, 31 - tx]
"""


def in_order(a: np.ndarray) -> np.ndarray:
    return a[:, ::-1] + 2 * np.roll(a, -1, 1)


def if_of_shared_memory(a: np.ndarray) -> np.ndarray:
    return np.where(a[:, :1] > 0, a[:, ::-1], np.float32(7))


def if_of_a_block(a: np.ndarray) -> np.ndarray:
    return np.concatenate([a[:3, ::-1], np.ones((1, 32), "float32")])


def global_memory(a: np.ndarray) -> np.ndarray:
    return np.concatenate([a[:, :16] + a[:, :15:-1], a[:, 16:]], 1)


CASES: dict[str, tuple[str, Any]] = {
    "one after another": (IN_ORDER, in_order),
    "in a loop": (IN_A_LOOP, lambda a: sum(np.roll(a, -k, 0)[:, ::-1] for k in range(3))),
    "a tree": (A_TREE, lambda a: np.repeat(a.sum(1, keepdims=True), 32, 1)),
    "a condition of shared memory": (IF_OF_SHARED_MEMORY, if_of_shared_memory),
    "without blocks": (WITHOUT_BLOCKS, lambda a: a[:, ::-1]),
    "a barrier under a condition of the block": (IF_OF_A_BLOCK, if_of_a_block),
    "a barrier for global memory": (GLOBAL_MEMORY, global_memory),
}


@pytest.mark.parametrize("name", CASES)
def test_the_interpreter_and_devices_agree(name: str) -> None:
    text, by_numpy = CASES[name]
    program, a = from_source(HEAD + text), numbers(4, 32)
    a[1, 0], a[2, 0] = 1, -1
    expected = by_numpy(a)

    def check(what: str, run: Any) -> None:
        b = np.full((4, 32), np.nan, "float32")
        run(a.copy(), b)
        np.testing.assert_array_equal(b, expected, err_msg=what)

    check("interpreter", tw.compile(program, target="interpreter"))
    for stage, module in _core.lower_stages(_core.as_module(program), "opencl"):
        check(stage, lambda a, b, module=module: _core.interpret(module, "main", a, b))
    check("kernel", tw.compile(program, target="opencl"))


def test_a_barrier_that_not_all_threads_reach_is_refused() -> None:
    text = IF_OF_A_BLOCK.replace("if bx < 3:", "if tx < 16:")
    program = from_source(HEAD + text)
    with pytest.raises(tw.Error) as raised:
        tw.compile(program, target="opencl")
    assert raised.value.code == "lower/divergent-barrier" and "T.tvm_storage_sync" in str(raised.value)
    with pytest.raises(tw.Error) as raised:
        _core.interpret(_core.as_module(program), "main", numbers(4, 32), numbers(4, 32))
    assert raised.value.code == "interpret/barrier"


def test_threads_that_exchange_data_within_one_statement_race() -> None:
    program = from_source(
        HEAD
        + """
    S = T.alloc_buffer((32,), scope="shared")
    for bx in T.thread_binding(4, thread="blockIdx.x"):
        for tx in T.thread_binding(32, thread="threadIdx.x"):
            S[tx] = A[bx, tx]
            S[tx] = S[31 - tx]
            B[bx, tx] = S[tx]
"""
    )
    with pytest.raises(tw.Error) as raised:
        _core.interpret(_core.as_module(program), "main", numbers(4, 32), numbers(4, 32))
    assert raised.value.code == "interpret/race"


@pytest.mark.parametrize("rows", [1, 8])
def test_threads_reduce_without_blocks_of_threads(rows: int) -> None:
    """Their loop is a kernel of one block."""
    sch = tw.Schedule(
        from_source(f"""
@T.prim_func
def main(A: T.Buffer(({rows}, 64)), B: T.Buffer(({rows},))):
    for i in range({rows}):
        for j in range(64):
            with T.block("B"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + A[vi, vj]
""")
    )
    sch.bind(sch.get_loops("B")[1], "threadIdx.x")
    a, b = numbers(rows, 64), np.zeros(rows, "float32")
    tw.compile(sch, target="opencl")(a, b)
    np.testing.assert_array_equal(b, a.sum(1))
    for stage, module in _core.lower_stages(sch.mod, "opencl"):
        b = np.zeros(rows, "float32")
        _core.interpret(module, "main", a.copy(), b)
        np.testing.assert_array_equal(b, a.sum(1), err_msg=stage)


def test_memory_that_a_pointer_shows_is_in_use_while_the_pointer_is() -> None:
    """The second buffer may not have the bytes of the first one."""
    program = from_source("""
@T.prim_func
def main(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
    for tx in T.thread_binding(32, thread="threadIdx.x"):
        s = T.allocate([32], "int32", "shared")
        S = T.Buffer((32,), "int32", data=s, scope="shared")
        S[tx] = A[tx]
        p: T.handle("int32", "shared") = T.address_of(S[4])
        P = T.Buffer((28,), "int32", data=p, scope="shared")
        q: T.handle("int32", "shared") = T.address_of(P[4])
        Q = T.Buffer((24,), "int32", data=q, scope="shared")
        u = T.allocate([32], "int32", "shared")
        U = T.Buffer((32,), "int32", data=u, scope="shared")
        U[tx] = 100
        B[tx] = Q[(31 - tx) % 24] + U[31 - tx]
""")
    a, b = np.arange(32, dtype="int32"), np.zeros(32, "int32")
    expected = a[8 + (31 - np.arange(32)) % 24] + 100
    for target in ("interpreter", "opencl"):
        b[:] = 0
        tw.compile(program, target=target)(a, b)
        np.testing.assert_array_equal(b, expected)
