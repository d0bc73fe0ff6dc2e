"""Random blocks whose conditions compare axes, `k <= i` as in causal attention: they move like others and keep them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.samples import seeds

import tilewright as tw
from tilewright.script import from_source

CONDITIONS = (
    *("{k} <= {i}", "{k} < {i} + 3", "{i} - {k} >= 0", "{k} * 2 <= {i} + 1", "{k} <= {i} + {j}", "{k} + {i} < 9"),
    *("{k} % 2 <= {i} % 2", "{k} // 2 <= {i} // 3", "{k} >= {i}", "{k} != {j}", "{k} == 0 or {k} < {j}", "{j} <= {i}"),
    *("{k} <= {i} and {k} <= {j}", "{k} <= {i} and {i} < 5", "T.max({k}, {j}) <= {i} + 4", "{k} * {j} <= {i}"),
)
#: What loops bind the axes i, j and k of the sum to, with the loops' extents.
BINDINGS = (
    ("i, j, k", "i", "j", "k"),
    ("i, k, j", "i", "j", "k"),
    ("j, k, i", "i", "j", "k"),
    ("i, j, k", "i", "{J} - 1 - j", "k"),
    ("i, j, k, o", "i", "j", "k"),
)


def program(rng: random.Random) -> str:
    I, J, K = (rng.choice([1, 2, 3, 4, 6, 7, 8, 9]) for _ in "ijk")
    loops, i, j, k = (part.format(I=I, J=J, K=K) for part in rng.choice(BINDINGS))
    extents = ", ".join(str({"i": I, "j": J, "k": K, "o": rng.choice([1, 2])}[name]) for name in loops.split(", "))
    loop_condition = rng.choice(CONDITIONS).format(i="i", j=j, k="k")
    reader = rng.choice(["t[vi, vj] + 1", "t[vi, vj] * B[vj]", "t[vi, {J} - 1 - vj]", "t[vi, vj] - t[vi, 0]"])
    step = rng.choice(["t[vi, vj] + P[vi, vk]", "T.max(t[vi, vj], P[vi, vk] - B[vk % {J}])"])
    start = rng.choice(["0", "-5", "vi"])
    return f"""\
@T.prim_func
def main(A: T.Buffer(({I}, {K}), "int32"), B: T.Buffer(({J},), "int32"), C: T.Buffer(({I}, {J}), "int32")):
    P = T.alloc_buffer(({I}, {K}), "int32")
    t = T.alloc_buffer(({I}, {J}), "int32")
    for i, k in T.grid({I}, {K}):
        with T.block("P"):
            vi, vk = T.axis.remap("SS", [i, k])
            P[vi, vk] = A[vi, vk] * 2
    for {loops} in T.grid({extents}):
        with T.block("S"):
            vi = T.axis.spatial({I}, {i})
            vj = T.axis.spatial({J}, {j})
            vk = T.axis.reduce({K}, {k})
            T.where({loop_condition})
            with T.init():
                t[vi, vj] = {start}
            t[vi, vj] = {step.format(J=J)}
    for i, j in T.grid({I}, {J}):
        with T.block("R"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = {reader.format(J=J)}
"""


def ranges(rng: random.Random) -> str:
    """Sums over ranges that begin or end where the loops around say, also of no steps."""
    n, m = rng.choice([2, 3, 5, 8]), rng.choice([2, 4, 5, 9])
    begin = rng.choice(["0", "i", "j", "i // 2", "T.min(i, j)", "i + 1"])
    end = rng.choice([str(m), "i + 1", "T.min(j + 2, 4)"] if begin == "0" else [str(m + n)])
    length = max(n, m) + m + n
    return f"""\
@T.prim_func
def main(A: T.Buffer(({n}, {length}), "int32"), B: T.Buffer(({m},), "int32"), C: T.Buffer(({n}, {m}), "int32")):
    t = T.alloc_buffer(({n}, {m}), "int32")
    for i, j in T.grid({n}, {m}):
        for k in range({begin}, {end}):
            with T.block("S"):
                vi, vj = T.axis.remap("SS", [i, j])
                vk = T.axis.reduce(({begin}, {end}), k)
                with T.init():
                    t[vi, vj] = B[vj]
                t[vi, vj] = t[vi, vj] + A[vi, vk]
    for i, j in T.grid({n}, {m}):
        with T.block("R"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = t[vi, vj] * 2
"""


CHOICES = (
    *("{j} <= {i}", "{j} < {i} + 3", "{i} + {j} < 9", "{j} % 2 == {i} % 2", "{i} <= {j} * 2", "{j} < 3 or {j} <= {i}"),
    *("{j} // 2 <= {i} // 2", "{j} <= {i} and {i} < 6"),
)


def chain(rng: random.Random) -> str:
    """Elements that a condition chooses, and sums of them."""
    n, m, d = (rng.choice([2, 3, 4, 6, 8, 9]) for _ in "ijd")
    first = rng.choice(CHOICES)

    def where(i: str, j: str) -> str:
        """Now and then another one: then the interpreter may refuse the program."""
        return (first if rng.random() < 0.9 else rng.choice(CHOICES)).format(i=i, j=j)

    def last() -> tuple[str, str]:
        if rng.random() < 0.5:
            return f"            T.where({where('i', 'j')})\n", "P[vi, vj]"
        return "", f"T.if_then_else({where('vi', 'vj')}, P[vi, vj], 0)"

    (asked, value), loops = last(), rng.choice(["i, j", "j, i"])
    extents = ", ".join(str({"i": n, "j": m}[loop]) for loop in loops.split(", "))
    return f"""\
@T.prim_func
def main(A: T.Buffer(({n}, {d}), "int32"), B: T.Buffer(({m}, {d}), "int32"), C: T.Buffer(({n},), "int32")):
    t = T.alloc_buffer(({n}, {m}), "int32")
    M = T.alloc_buffer(({n},), "int32")
    P = T.alloc_buffer(({n}, {m}), "int32")
    for i, j, k in T.grid({n}, {m}, {d}):
        with T.block("S"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            T.where({where("i", "j")})
            with T.init():
                t[vi, vj] = 0
            t[vi, vj] = t[vi, vj] + A[vi, vk] * B[vj, vk]
    for i, j in T.grid({n}, {m}):
        with T.block("M"):
            vi, vj = T.axis.remap("SR", [i, j])
            T.where({where("i", "j")})
            with T.init():
                M[vi] = T.min_value("int32")
            M[vi] = T.max(M[vi], t[vi, vj])
    for {loops} in T.grid({extents}):
        with T.block("P"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.where({where("i", "j")})
            P[vi, vj] = t[vi, vj] - M[vi]
    for i, j in T.grid({n}, {m}):
        with T.block("R"):
            vi, vj = T.axis.remap("SR", [i, j])
{asked}            with T.init():
                C[vi] = 0
            C[vi] = C[vi] + {value}
"""


def step(rng: random.Random, sch: Any) -> tuple[str, Callable[[], Any]]:
    names = [name for name in ("P", "S", "R", "M", "t_local", "P_local", "S_rf", "S_init") if has(sch, name)]
    name, other = rng.choice(names), rng.choice(names)
    loops, others = sch.get_loops(name), sch.get_loops(other)
    loop = rng.choice(loops) if loops else None
    to = rng.choice(others) if others else None
    factors = rng.choice([[None, 2], [None, 3], [2, None], [None, 4]])
    steps: dict[str, Callable[[], Any]] = {
        "blockize": lambda: sch.blockize(loop),
        "cache_read": lambda: sch.cache_read(name, 0, "local"),
        "cache_write": lambda: sch.cache_write(name, 0, "local"),
        "compute_at": lambda: sch.compute_at(name, to),
        "compute_inline": lambda: sch.compute_inline(name),
        "decompose_reduction": lambda: sch.decompose_reduction(name, loop),
        "fuse": lambda: sch.fuse(*loops[:2]),
        "parallel": lambda: sch.parallel(loop),
        "reorder": lambda: sch.reorder(*rng.sample(loops, len(loops))),
        "reverse_compute_at": lambda: sch.reverse_compute_at(name, to),
        "rfactor": lambda: sch.rfactor(loop, 0),
        "split": lambda: sch.split(loop, factors),
        "unroll": lambda: sch.unroll(loop),
        "vectorize": lambda: sch.vectorize(loop),
    }
    weights = {
        "decompose_reduction": 3,
        "rfactor": 4,
        "split": 4,
        "compute_at": 6,
        "reverse_compute_at": 6,
        "reorder": 2,
    }
    return rng.choices([*steps.items()], [weights.get(each, 1) for each in steps])[0]


def has(sch: Any, name: str) -> bool:
    try:
        sch.get_block(name)
    except tw.ScheduleError:
        return False
    return True


def run(module: Any, target: str, shapes: list[tuple[int, ...]]) -> np.ndarray:
    rng = np.random.default_rng(1)
    arrays = [rng.integers(0, 9, shape).astype("int32") for shape in shapes]
    tw.compile(module, target, schedule="as written")(*arrays)
    return arrays[-1]


def examine(seed: int, accepted: Counter[str]) -> None:
    rng = random.Random(seed)
    text = [program, chain, ranges, program, chain][seed % 5](rng)
    try:
        original = from_source(text)
        shapes = [tuple(int(n) for n in buffer.shape) for buffer in original.buffer_map.values()]
        expected = run(original, "interpreter", shapes)
    except tw.Error:
        return  # some sum has no step, so that nothing was written
    for _ in range(6):
        sch = tw.Schedule(original)
        done = []
        for _ in range(rng.randint(1, 7)):
            try:
                name, take = step(rng, sch)
                take()
            except (tw.ScheduleError, tw.ArgumentError):
                continue
            done.append(name)
        accepted.update(done)
        what = f"seed {seed}, {done}\n{text}\n{sch.trace}\n{sch.mod.script()}"
        try:
            results = [run(sch, target, shapes) for target in ("interpreter", "native")]
        except tw.Error as error:
            raise AssertionError(f"{error}\n{what}") from error
        for found in results if done else []:
            np.testing.assert_array_equal(found, expected, err_msg=what)


@pytest.mark.parametrize("part", range(2))
def test_what_is_accepted_computes_the_same(part: int) -> None:
    accepted: Counter[str] = Counter()
    for seed in seeds(part, 15):
        examine(seed, accepted)
    assert accepted["compute_at"] > 1 and accepted["reverse_compute_at"] > 0 and accepted["decompose_reduction"] > 2
