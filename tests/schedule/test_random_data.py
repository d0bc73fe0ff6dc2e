"""Random programs whose conditions and values compute with data that leave their type: they wrap, whatever is done."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest
from tests.samples import seeds

import tilewright as tw
from tilewright.script import from_source

HEAD = """\
@T.prim_func
def main(
    A: T.Buffer((16,), "uint8"), D: T.Buffer((16,), "int32"), E: T.Buffer((16,), "int8"), F: T.Buffer((16,)),
    B: T.Buffer((16,), "int32"), C: T.Buffer((16,), "int64"),
):
    G = T.alloc_buffer((16,), "int32")
"""
LOADS = ["T.Cast('int32', A[v])", "D[v]", "T.Cast('int32', A[15 - v])", "D[(v * 3 + 1) % 16]", "T.Cast('int32', F[v])"]
NUMBERS = [*range(1, 4), -1, 7, 100, 255, 46341, 65536, 2**30, -(2**30), 2**31 - 1, -(2**31), 2**31 - 256, 255 - 2**31]


def number(rng: random.Random, depth: int = 2) -> str:
    if depth == 0 or rng.random() < 0.2:
        return rng.choice(LOADS)
    a, b = number(rng, depth - 1), f"T.int32({rng.choice(NUMBERS)})"
    forms = [f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"({a} // 3)", f"({a} % 255)", f"T.max({a}, {b})"]
    return rng.choice([*forms[:3], *forms, f"T.shift_left({a}, 24)", f"({a} {rng.choice('+-*')} {number(rng, 0)})"])


def condition(rng: random.Random) -> str:
    other = number(rng) if rng.random() < 0.5 else str(rng.choice([0, -9, 9, 255, 2**31 - 1]))
    return f"{number(rng)} {rng.choice(['<', '<=', '>', '>=', '==', '!='])} {other}"


def block(rng: random.Random, name: str, to: str, more: str) -> str:
    value = f"{number(rng)}{more}"
    if rng.random() < 0.4:
        value = f"{rng.choice(['T.Select', 'T.if_then_else'])}({condition(rng)}, {value}, {number(rng, 1)})"
    store = f"{to}[v] = {value}" if to != "C" else f"{to}[v] = T.Cast('int64', {value})"
    lines = [f"    for i in range(16):\n        with T.block({name!r}):\n            v = T.axis.spatial(16, i)"]
    form = rng.random() if to != "G" else 1.0
    if form < 0.5:
        lines.append(f"            T.where({condition(rng).replace('[v]', '[i]').replace('v', 'i')})")
    lines.append(
        f"            if {condition(rng)}:\n                {store}" if 0.5 < form < 0.7 else f"            {store}"
    )
    return "\n".join(lines) + "\n"


STEPS: dict[str, Any] = {
    "blockize": lambda sch, one, other: sch.blockize(sch.get_loops(one)[-1]),
    "cache_index": lambda sch, one, other: sch.cache_index(one, "global", 0),
    "cache_read": lambda sch, one, other: sch.cache_read(one, 0, "global"),
    "cache_write": lambda sch, one, other: sch.cache_write(one, 0, "global"),
    "compute_at": lambda sch, one, other: sch.compute_at(one, sch.get_loops(other)[0]),
    "compute_inline": lambda sch, one, other: sch.compute_inline(one),
    "loop_partition": lambda sch, one, other: sch.loop_partition(sch.get_loops(one)[0], [3, None]),
    "merge": lambda sch, one, other: sch.merge(sch.get_loops(one)[0], sch.get_loops(other)[0]),
    "read_at": lambda sch, one, other: sch.read_at(sch.get_loops(one)[0], one, 0, "global"),
    "reverse_compute_at": lambda sch, one, other: sch.reverse_compute_at(one, sch.get_loops(other)[0]),
    "reverse_compute_inline": lambda sch, one, other: sch.reverse_compute_inline(one),
    "split": lambda sch, one, other: sch.split(sch.get_loops(one)[0], [None, 3]),
    "split_even": lambda sch, one, other: sch.split(sch.get_loops(one)[-1], [2, None]),
    "unroll": lambda sch, one, other: sch.unroll(sch.get_loops(one)[-1]),
    "vectorize": lambda sch, one, other: sch.vectorize(sch.get_loops(one)[-1]),
    "write_at": lambda sch, one, other: sch.write_at(sch.get_loops(one)[0], one, 0, "global"),
}


def run(program: Any, target: str, schedule: str, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    extremes = [0, 1, -1, 2**31 - 1, -(2**31), 46341, 65536, 7, -9, 255]
    floats = rng.choice(np.array([0, 1, -1, 3e9, -3e9, 2.5], "float32"), 16)
    arrays = [rng.integers(0, 256, 16).astype("uint8"), rng.choice(extremes, 16).astype("int32")]
    arrays += [rng.integers(-128, 128, 16).astype("int8"), floats, np.zeros(16, "int32"), np.zeros(16, "int64")]
    tw.compile(program, target, schedule=schedule)(*arrays)
    return arrays


def examine(seed: int, accepted: Counter[str]) -> None:
    rng = random.Random(seed)
    first = rng.choice("GB")
    # As an index it would not wrap: what takes its place there has to be refused.
    as_index = random.Random(f"index {seed}").random() < 0.3
    more = f" + T.Cast('int32', A[T.max(T.min({first}[v], 15), 0)])" if as_index else f" + {first}[v]"
    text = HEAD + block(rng, "S", first, "") + block(rng, "T", "C", more)
    program = from_source(text)
    expected = run(program, "interpreter", "as written", seed)
    schedules = [(program, "native", way, "") for way in ("as written", "by rules")]
    for _ in range(6):
        sch = tw.Schedule(program)
        for _ in range(rng.randint(1, 5)):
            name = rng.choice([*STEPS, *["blockize", "cache_index"] * 3])
            try:
                STEPS[name](sch, *rng.sample(["S", "T"], 2))
            except (tw.ScheduleError, IndexError):  # a loop that another step has taken away
                continue
            accepted[name] += 1
        targets = ["interpreter", "native"] if rng.random() < 0.3 else ["interpreter"]
        schedules += [(sch, target, "as written", str(sch.trace)) for target in targets]
    for scheduled, target, way, steps in schedules:
        for one, other in zip(run(scheduled, target, way, seed), expected, strict=True):
            np.testing.assert_array_equal(one, other, err_msg=f"seed {seed}, {target}, {way}\n{text}\n{steps}")


@pytest.mark.parametrize("part", range(2))
def test_data_wrap_in_whatever_is_accepted(part: int) -> None:
    accepted: Counter[str] = Counter()
    for seed in seeds(part, 16):
        examine(seed, accepted)
    assert len(accepted) > 13 and accepted.total() > 100
