"""Random kernels whose threads exchange data in shared memory under conditions: what barriers leave computes the same.

Code in Python runs the statements one after the other, each for all threads. No two threads of one statement meet.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest
from tests.samples import seeds

import tilewright as tw
from tilewright import _core
from tilewright.script import from_source

THREADS, BLOCKS, SIZE = 6, 2, 12
#: indices and conditions, of thread t, block b, loops k and m, and what a table holds for t, in Python and in scripts
INDICES = (
    "t",
    "t",
    "0",
    "5 - t",
    "t // 2",
    "(t + k) % 8",
    "k",
    "t + m",
    "(b + t) % 6",
    "t // 2 * 2 + 1",
    "(t * 3 + b) % 7",
    "x",
    "x + 1",
)
CONDITIONS = (
    "t < 1", "t == k", "t * 2 + k < 3", "b * 6 + t < 1", "t == (k + b) % 6", "3 <= t", "t % 2 == 0", "t + m == 3",
    "t == k and m < 1", "t // 2 == 1", "k < 2", "b == 0", "m == 1 and t < 2",
)  # fmt: skip


class Kernel:
    """The text of a kernel, and of the same in Python."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.script, self.python = rng, "", ""
        self.table = rng.sample(range(THREADS), THREADS)
        for text in ("S[t] = A[b, t]", "S[t + 6] = A[b, t + 6]", "Q[t] = t", "Q[t + 6] = 3 - t"):
            self.line(1, text, "")
        self.script += "            x: T.int32 = P[t]\n"
        self.statements(1, 0, rng.randint(2, 4))
        self.line(1, "R[b, t] = S[t]", "")
        self.line(1, "R[b, t + 6] = S[t + 6] - Q[t + 6] * Q[t]", "")
        head = f"A: T.Buffer(({BLOCKS}, {SIZE}), 'int32'), P: T.Buffer(({THREADS},), 'int32'), "
        head += f"R: T.Buffer(({BLOCKS}, {SIZE}), 'int32')"
        self.script = (
            f"@T.prim_func\ndef main({head}):\n"
            f"    for b in T.thread_binding({BLOCKS}, thread='blockIdx.x'):\n"
            f"        for t in T.thread_binding({THREADS}, thread='threadIdx.x'):\n"
            f"            S = T.decl_buffer(({SIZE},), 'int32', scope='shared')\n"
            f"            Q = T.decl_buffer(({SIZE},), 'int32', scope='shared')\n{self.script}"
        )
        self.python = (
            f"def main(A, P, R):\n    for b in range({BLOCKS}):\n"
            f"        S, Q = [0] * {SIZE}, [0] * {SIZE}\n{self.python}"
        )

    def line(self, depth: int, text: str, condition: str) -> None:
        """A statement of each thread; in Python, one that all threads evaluate before they store."""
        inside = "    " * (depth + 2)
        self.script += f"{inside}if {condition}:\n    {inside}{text}\n" if condition else f"{inside}{text}\n"
        to, value = text.replace("x", "P[t]").split(" = ")
        buffer, index = to.removesuffix("]").split("[", 1)
        place = f"({index},)" if "," not in index else f"({index})"
        before = "    " * (depth + 1)
        self.python += (
            f"{before}new = [({place}, {value}) for t in range({THREADS}){f' if {condition}' if condition else ''}]\n"
            f"{before}for at, value in new:\n"
            f"{before}    {buffer}[at if len(at) > 1 else at[0]] = value\n"
        )

    def statements(self, depth: int, loops: int, count: int) -> None:
        for _ in range(count):
            if loops < 2 and self.rng.random() < 0.4:
                name, extent = "km"[loops], self.rng.randint(1, 4)
                self.script += "    " * (depth + 2) + f"for {name} in range({extent}):\n"
                self.python += "    " * (depth + 1) + f"for {name} in range({extent}):\n"
                self.statements(depth + 1, loops + 1, self.rng.randint(1, 2))
                continue
            unknown = "km"[loops:]
            while True:
                target, source = self.rng.choice("SSQ"), self.rng.choice("SQ")
                to, read, condition = self.pick(INDICES, unknown), self.pick(INDICES, unknown), ""
                if self.rng.random() < 0.7:
                    condition = self.pick(CONDITIONS, unknown)
                adds = self.rng.random() < 0.4
                if not meets(to, [to] * adds + [read] * (source == target), condition, self.table):
                    break
            before = f"{target}[{to}] * 2 + " if adds else ""
            self.line(depth, f"{target}[{to}] = {before}{source}[{read}] + {self.rng.randint(1, 9)}", condition)

    def pick(self, texts: tuple[str, ...], unknown: str) -> str:
        return self.rng.choice([text for text in texts if not any(name in text for name in unknown)])


def meets(to: str, read: list[str], condition: str, table: list[int]) -> bool:
    """Whether a thread of one statement stores to what another one uses in it."""
    for b, k, m in np.ndindex(BLOCKS, 4, 4):
        stored, used = Counter[int](), set()
        for t in range(THREADS):
            known = {"b": b, "k": k, "m": m, "t": t, "x": table[t]}
            if condition and not eval(condition, known):
                continue
            own = eval(to, known)
            stored[own] += 1
            used |= {(at, t) for at in (eval(each, known) for each in read) if at != own}
        if any(count > 1 for count in stored.values()) or any(at in stored for at, _ in used):
            return True
    return False


def examine(seed: int, counts: Counter[str]) -> None:
    rng = random.Random(seed)
    kernel = Kernel(rng)
    table = np.array(kernel.table, "int32")
    given = np.array(rng.choices(range(-50, 50), k=BLOCKS * SIZE), "int32").reshape(BLOCKS, SIZE)
    scope: dict[str, Any] = {}
    exec(kernel.python, scope)
    wanted = np.zeros_like(given)
    scope["main"](given, kernel.table, wanted)
    program = from_source(kernel.script)
    stages = [("source", tw.Schedule(program).mod)]
    try:
        _core.interpret(stages[0][1], "main", given.copy(), table, np.zeros_like(given))
        stages += list(_core.lower_stages(stages[0][1], "opencl"))
    except tw.Error as error:
        counts[error.code] += 1
        assert error.code in ("interpret/race", "lower/divergent-barrier", "interpret/uninitialized"), str(error)
        return
    for name, module in stages:
        found = np.zeros_like(given)
        about = f"seed {seed}, {name}\n{kernel.script}\n{module.script()}"
        try:
            _core.interpret(module, "main", given.copy(), table, found)
        except tw.Error as error:
            raise AssertionError(f"{error}\n{about}") from error
        np.testing.assert_array_equal(found, wanted, err_msg=about)
    counts["kernels"] += 1
    counts["barriers"] += stages[-1][1].script().count("tvm_storage_sync")
    if seed % 4 == 0:
        found = np.zeros_like(given)
        tw.compile(program, target="opencl")(given.copy(), table, found)
        np.testing.assert_array_equal(found, wanted, err_msg=f"seed {seed}, device\n{kernel.script}")


@pytest.mark.parametrize("part", range(2))
def test_threads_that_meet_under_conditions(part: int) -> None:
    counts: Counter[str] = Counter()
    for seed in seeds(part, 60):
        examine(seed, counts)
    assert counts["kernels"] > 10 and counts["barriers"] > 10, counts


def test_elements_that_a_name_selects_are_exchanged() -> None:
    """Each thread loads what another one has stored: the name holds another number for each of them."""
    program = from_source("""
@T.prim_func
def main(P: T.Buffer((32,), "int32"), A: T.Buffer((32,)), B: T.Buffer((32,))):
    for b in T.thread_binding(1, thread="blockIdx.x"):
        for t in T.thread_binding(32, thread="threadIdx.x"):
            S = T.decl_buffer((33,), scope="shared")
            S[t + 1] = T.float32(1)
            x: T.int32 = P[t]
            S[x] = A[x]
            B[t] = S[x + 1]
""")
    order = np.random.default_rng(0).permutation(32).astype("int32")
    a, b = np.arange(32, dtype="float32"), np.zeros(32, "float32")
    assert tw.lower(program, target="opencl").script().count("tvm_storage_sync") == 2
    tw.compile(program, target="opencl")(order, a, b)
    np.testing.assert_array_equal(b, np.append(a, np.float32(1))[order + 1])
