"""Conditions and bounds of loops that read what threads exchange: all threads go by the value at their evaluation."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.script import from_source

THREADS = 64


def kernel_of(body: str) -> tw.Kernel:
    """Threads that put A into S, run `body`, and put S into G; S is shared, or G itself."""
    indented = body.replace("\n", "\n            ")
    return tw.compile(
        from_source(f"""
@T.prim_func
def main(A: T.Buffer(({THREADS},), "int32"), G: T.Buffer(({THREADS},), "int32"), O: T.Buffer(({THREADS},), "int32")):
    for bx in T.thread_binding(1, thread="blockIdx.x"):
        with T.block("b"):
            vb = T.axis.spatial(1, bx)
            S = T.alloc_buffer(({THREADS},), "int32", scope="shared")
            for tx in T.thread_binding({THREADS}, thread="threadIdx.x"):
                S[tx] = A[tx]
                G[tx] = A[tx]
            {indented}
            for tx in T.thread_binding({THREADS}, thread="threadIdx.x"):
                O[tx] = S[{THREADS - 1} - tx] + G[{THREADS - 1} - tx]
"""),
        target="opencl",
    )


def statements(kind: str, memory: str, element: int, shift: int, limit: int) -> str:
    """A statement that depends on an element of the memory, which its body overwrites from another thread."""
    head = {
        "if": f"if {memory}[{element}] > {limit}:",
        "else": f"if {memory}[{element}] < {limit}:",
        "for": f"for k in range({memory}[{element}]):",
        "from": f"for k in range({memory}[{element}], {memory}[{element}] + 3):",
        "while": f"while {memory}[{element}] > {limit}:",
        "value": f"c: T.int32 = {memory}[{element}]",
    }[kind]
    new = {"for": "k", "from": "k", "value": "c + tx", "while": "tx - 100"}.get(kind, "tx")
    store = f"""for tx in T.thread_binding({THREADS}, thread="threadIdx.x"):
    {memory}[(tx + {shift}) % {THREADS}] = {new}"""
    if kind == "value":
        return f"{head}\n{store}"
    inside = "\n".join("    " + line for line in store.splitlines())
    if kind == "else":
        other = "    " + store.replace("\n", "\n    ").replace(" = tx", " = -tx")
        return f"{head}\n{other}\nelse:\n{inside}"
    return f"{head}\n{inside}"


def expected(kind: str, a: np.ndarray, element: int, shift: int, limit: int) -> np.ndarray:
    s, places = a.copy(), (np.arange(THREADS) + shift) % THREADS
    value, tx = int(s[element]), np.arange(THREADS, dtype="int32")
    if kind == "if" and value > limit:
        s[places] = tx
    if kind == "else":
        s[places] = -tx if value < limit else tx
    if kind == "for" and value > 0:
        s[:] = value - 1
    if kind == "from":
        s[:] = value + 2
    if kind == "while":
        while s[element] > limit:
            s[places] = tx - 100
    if kind == "value":
        s[places] = value + tx
    return s


KINDS = ["if", "else", "for", "from", "while", "value"]


@pytest.mark.parametrize("memory", ["S", "G"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_body_overwrites_what_its_condition_read(kind, memory):
    a = np.full(THREADS, 5, "int32")
    kernel = kernel_of(statements(kind, memory, 16, 43, 2))
    changed = expected(kind, a, 16, 43, 2)
    for _ in range(3):
        g, o = np.zeros(THREADS, "int32"), np.zeros(THREADS, "int32")
        kernel(a, g, o)
        np.testing.assert_array_equal(o, (changed + a)[::-1], err_msg=kernel.inspect("opencl"))


@pytest.mark.parametrize("seed", range(8))
def test_random_sequences_of_exchanges(seed):
    rng = np.random.default_rng(seed)
    a = rng.integers(1, 6, THREADS).astype("int32")
    now, text = {"S": a.copy(), "G": a.copy()}, []
    for _ in range(3):
        kind, memory = str(rng.choice(KINDS)), str(rng.choice(["S", "G"]))
        element, shift, limit = int(rng.integers(THREADS)), int(rng.integers(1, THREADS)), int(rng.integers(-3, 5))
        text.append(statements(kind, memory, element, shift, limit))
        now[memory] = expected(kind, now[memory], element, shift, limit)
    source = "\n".join(text)
    kernel = kernel_of(source)
    g, o = np.zeros(THREADS, "int32"), np.zeros(THREADS, "int32")
    kernel(a, g, o)
    np.testing.assert_array_equal(g, now["G"], err_msg=source)
    np.testing.assert_array_equal(o, (now["S"] + now["G"])[::-1], err_msg=source)
