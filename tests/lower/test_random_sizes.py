"""Symbolic sizes: random schedules with tiles that do not divide them, copies under their loops, small values of n."""

from __future__ import annotations

import random
import re
from typing import Any

import numpy as np
import pytest
from tests.samples import seeds

import tilewright as tw
from tilewright import _core
from tilewright.script import from_source
from tilewright.script import tir as T


def source(rng: random.Random) -> str:
    """A and B of n (and m) elements, a temporary X, a reduction or a map over it."""
    shift = rng.choice([0, 0, 1, 2])
    extent = rng.choice(["n", "n", "n + 3", "(n + 3) // 4 * 4", "n * 2"])
    out = "@T.prim_func\ndef f(a: T.handle, c: T.handle):\n    n = T.int32()\n    m = T.int32()\n"
    out += "    A = T.match_buffer(a, (n, m), 'int32')\n    C = T.match_buffer(c, (n, m), 'int32')\n"
    out += f"    X = T.alloc_buffer(({extent} + {shift}, m), 'int32')\n"
    out += f"    for i, j in T.grid({extent} + {shift}, m):\n        with T.block('X'):\n"
    out += "            vi, vj = T.axis.remap('SS', [i, j])\n"
    out += "            X[vi, vj] = T.if_then_else(vi < n, A[T.min(vi, n - 1), vj], 3) * 2\n"
    if rng.random() < 0.5:
        out += "    for i, j, k in T.grid(n, m, n):\n        with T.block('C'):\n"
        out += "            vi, vj, vk = T.axis.remap('SSR', [i, j, k])\n            with T.init():\n"
        out += "                C[vi, vj] = 0\n            C[vi, vj] = C[vi, vj] + X[vk, vj] * (vi + 1)\n"
    else:
        at = f"vi + {shift}" if rng.random() < 0.5 else "n - 1 - vi"
        out += "    for i, j in T.grid(n, m):\n        with T.block('C'):\n"
        out += f"            vi, vj = T.axis.remap('SS', [i, j])\n            C[vi, vj] = X[{at}, vj] + 1\n"
    return out


def schedule(module: Any, rng: random.Random) -> Any:
    sch = tw.Schedule(module)
    for _ in range(rng.choice([1, 2, 3, 4, 5])):
        block = rng.choice([sch.get(b).name_hint for b in sch.get_child_blocks("root")])
        loops = sch.get_loops(block)
        loop = rng.choice(loops)
        try:
            match rng.choice(
                ["split", "split", "split", "reorder", "read", "write", "at", "at", "back", "kind", "decompose"]
            ):
                case "split":
                    sch.split(loop, [None, rng.choice([1, 2, 3, 4, 7])])
                case "reorder":
                    sch.reorder(*rng.sample(loops, min(2, len(loops))))
                case "read":
                    sch.cache_read(block, rng.choice([0, 1]), rng.choice(["global", "local"]))
                case "write":
                    sch.cache_write(block, 0, rng.choice(["global", "local"]))
                case "at":
                    sch.compute_at(block, rng.choice(sch.get_loops(rng.choice(["X", "C"]))))
                case "back":
                    sch.reverse_compute_at(block, rng.choice(sch.get_loops(rng.choice(["X", "C"]))))
                case "kind":
                    rng.choice([sch.parallel, sch.vectorize, sch.unroll])(loop)
                case "decompose":
                    sch.decompose_reduction(block, loop)
        except (tw.ScheduleError, tw.ArgumentError):
            continue
    return sch


def run(module: Any, n: int, m: int, interpreted: bool) -> np.ndarray:
    a = np.arange(n * m, dtype="int32").reshape(n, m)
    c = np.full((n, m), 99, "int32")
    if interpreted:
        _core.interpret(module, "main", a, c)
    else:
        tw.compile(module, schedule="as written")(a, c)
    return c


@pytest.mark.parametrize("part", range(4))
def test_schedules_of_symbolic_sizes(part: int) -> None:
    for seed in seeds(part, 6):
        rng = random.Random(seed)
        module = tw.Schedule(from_source(source(rng))).mod
        sch = schedule(module, rng)
        compacted = tw.lower(sch.mod, after="compact_buffers").script()
        text = f"seed {seed}\n{sch.trace}\n{compacted}"
        # No memory for sizes that only the type of n allows.
        extents = re.findall(r"alloc_buffer\(\((.*?)\)", compacted)
        assert all(int(number) < 1000 for extent in extents for number in re.findall(r"\d+", extent)), text
        kernel = tw.compile(sch.mod)
        for n, m in [(1, 1), (2, 3), (5, 4), (7, 9), (rng.randrange(1, 10), rng.randrange(1, 10))]:
            expected = run(module, n, m, interpreted=True)
            np.testing.assert_array_equal(run(sch.mod, n, m, interpreted=True), expected, err_msg=text)
            a, c = np.arange(n * m, dtype="int32").reshape(n, m), np.full((n, m), 99, "int32")
            kernel(a, c)
            np.testing.assert_array_equal(c, expected, err_msg=text)


def test_a_tile_counts_as_many_elements_as_the_program_needs() -> None:
    @T.prim_func
    def chunks(a: T.handle, c: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,))
        C = T.match_buffer(c, (n,))
        X = T.alloc_buffer(((n + 3) // 4,))
        for i in range((n + 3) // 4):
            with T.block("X"):
                vi = T.axis.spatial((n + 3) // 4, i)
                X[vi] = A[vi] + T.float32(1)
        for i in range((n + 3) // 4):
            with T.block("C"):
                vi = T.axis.spatial((n + 3) // 4, i)
                C[vi] = X[vi]

    sch = tw.Schedule(chunks)
    sch.cache_read("C", 0, "global")
    text = tw.lower(sch.mod, after="compact_buffers").script()
    assert "536870912" not in text
    a, c = np.arange(10, dtype="float32"), np.zeros(10, "float32")
    tw.compile(sch.mod)(a, c)
    np.testing.assert_array_equal(c[:3], a[:3] + 1)


def test_more_bytes_than_addresses() -> None:
    @T.prim_func
    def cube(a: T.handle, c: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,), "int8")
        C = T.match_buffer(c, (n,), "int8")
        X = T.alloc_buffer((n * 1000000, n * 1000000, n * 1000000), "int8")
        for i in range(n):
            with T.block("X"):
                vi = T.axis.spatial(n, i)
                X[vi * 1000000, vi * 1000000, vi * 1000000] = A[vi]
        for i in range(n):
            with T.block("C"):
                vi = T.axis.opaque(n, i)
                C[vi] = X[vi * 1000000, vi * 1000000, vi * 1000000]

    a, c = np.ones(1000, "int8"), np.zeros(1000, "int8")
    with pytest.raises(tw.ResourceError, match=r"larger than the address space|out of memory"):
        tw.compile(cube, schedule="as written")(a, c)

    with pytest.raises(tw.ScriptError, match="verify/size"):

        @T.prim_func
        def constant(C: T.Buffer((1,), "int8")):
            X = T.alloc_buffer((1 << 30, 1 << 30, 1 << 30), "int8")
            with T.block("X"):
                X[0, 0, 0] = T.int8(1)
            with T.block("C"):
                C[0] = X[0, 0, 0]
