"""Random programs that look elements up in tables where a condition lets them: copies look up nothing else.

Where the condition does not hold, positions are out of bounds of the tables. The expected values are Python's.
"""

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

ROWS, COLUMNS, LENGTH = 6, 4, 5
#: how a program asks whether row v is there
GUARDS = ("P[{v}] >= 0", "P[{v}] >= 0 and P[{v}] < 5", "0 <= P[{v}]")


class Program:
    """The text of a program, and what it computes of P (positions), J (rows), A and N (lengths)."""

    def __init__(self, rng: random.Random) -> None:
        self.form = rng.choice(["value", "branch", "loop", "where", "none"])
        self.is_open = rng.random() < 0.4
        columns = "n" if self.is_open else str(COLUMNS)
        guard = rng.choice(GUARDS).format(v="vi")
        row = rng.choice(["J[P[vi]]", "J[P[vi]]", "J[P[vi]] + 1", "T.min(J[P[vi]], 3)", "J[J[P[vi]]]"])
        read = f"B[{row}, vj]"
        assign = {
            "value": [f"C[vi, vj] = T.if_then_else({guard}, {read}, 7)"],
            "branch": [f"if {guard}:", f"    C[vi, vj] = {read}", "else:", "    C[vi, vj] = 7"],
            "loop": ["C[vi, vj] = 7", "for k in range(N[vi]):", f"    C[vi, vj] = {read} + k * 0"],
            "where": [f"C[vi, vj] = {read}"],
            "none": [f"C[vi, vj] = {read}"],
        }[self.form]
        where = [f"T.where({guard.replace('vi', 'i')})"] if self.form == "where" else []
        self.row: Callable[[int, Any], int] = {
            "J[P[vi]]": lambda p, j: j[p],
            "J[P[vi]] + 1": lambda p, j: j[p] + 1,
            "T.min(J[P[vi]], 3)": lambda p, j: min(j[p], 3),
            "J[J[P[vi]]]": lambda p, j: j[j[p]],
        }[row]
        lines = [
            "@T.prim_func",
            "def main(P: T.Buffer((6,), 'int32'), J: T.Buffer((5,), 'int32'), N: T.Buffer((6,), 'int32'),"
            " a: T.handle, c: T.handle):",
            *(["    n = T.int32(is_size_var=True)"] if self.is_open else []),
            f"    A = T.match_buffer(a, (6, {columns}), 'int32')",
            f"    C = T.match_buffer(c, (6, {columns}), 'int32')",
            *(["    T.assume_buffer_domain(J, [0, 5])"] if rng.random() < 0.3 else []),
            f"    B = T.alloc_buffer((6, {columns}), 'int32')",
            f"    for i, j in T.grid(6, {columns}):",
            "        with T.block('B'):",
            "            vi, vj = T.axis.remap('SS', [i, j])",
            "            B[vi, vj] = A[vi, vj] * 2",
            f"    for i, j in T.grid(6, {columns}):",
            "        with T.block('C'):",
            "            vi, vj = T.axis.remap('SS', [i, j])",
            *(f"            {line}" for line in [*where, *assign]),
        ]
        self.script = "\n".join(lines) + "\n"

    def arguments(self, rng: random.Random) -> list[np.ndarray]:
        absent = {"where": [-1, 0, 2], "none": [0, 2]}.get(self.form, [-1, -1, 0, 2, 4, -(2**31)])
        positions = np.array(rng.choices(absent, k=ROWS), "int32")
        lengths = np.where(positions < 0, 0, 2).astype("int32")
        rows = np.array(rng.choices(range(5), k=LENGTH), "int32")
        columns = rng.choice([0, 1, 5]) if self.is_open else COLUMNS
        if columns == 0:  # nothing is looked up
            positions[:] = rng.choice([-1, 99])
        values = np.array(rng.choices(range(100), k=ROWS * columns), "int32").reshape(ROWS, columns)
        return [positions, rows, lengths, values, np.full((ROWS, columns), -5, "int32")]

    def expected(self, positions: Any, rows: Any, _: Any, values: Any, before: Any) -> np.ndarray:
        result = before.copy()
        for i, position in enumerate(positions):
            if 0 <= position < LENGTH:
                result[i] = values[self.row(position, rows)] * 2
            elif self.form != "where":
                result[i] = 7
        return result


def steps_of(rng: random.Random, sch: Any) -> dict[str, Callable[[], Any]]:
    names = [block for block in ("B", "C", "B_local", "J_local") if f'T.block("{block}")' in sch.mod.script()]
    name = rng.choice(names)
    loops, to = sch.get_loops(name), rng.choice(sch.get_loops("C"))
    reads = rng.randrange(4)
    return {
        "blockize": lambda: sch.blockize(rng.choice(loops)),
        "cache_index": lambda: sch.cache_index("C", "local"),
        "cache_read": lambda: sch.cache_read("C", reads, "local"),
        "compute_at": lambda: sch.compute_at(name, to, preserve_unit_loops=rng.random() < 0.5),
        "compute_inline": lambda: sch.compute_inline("B"),
        "prefetch_at": lambda: sch.prefetch_at(to, "C", reads, rng.choice([1, 2])),
        "read_at": lambda: sch.read_at(to, "C", reads, "global"),
        "reindex": lambda: sch.reindex("C", ("read", reads)),
        "reorder": lambda: sch.reorder(*reversed(loops)),
        "reverse_compute_at": lambda: sch.reverse_compute_at("C", rng.choice(sch.get_loops("B"))),
        "split": lambda: sch.split(rng.choice(loops), [None, 2]),
        "fuse": lambda: sch.fuse(*loops[:2]),
    }


def examine(seed: int, accepted: Counter[str]) -> None:
    rng = random.Random(seed)
    program = Program(rng)
    original = from_source(program.script)
    schedules: list[tuple[Any, str]] = [(original, "")]
    for _ in range(5):
        sch = tw.Schedule(original)
        for _ in range(rng.randint(1, 6)):
            try:
                steps = steps_of(rng, sch)
                name = rng.choice(["compute_at", "compute_at", *steps])
                steps[name]()
            except (tw.ScheduleError, ValueError, IndexError):  # a loop that another step has taken away
                continue
            accepted[name] += 1
        schedules.append((sch, str(sch.trace)))
    arguments = program.arguments(rng)
    wanted = program.expected(*arguments)
    for number, (scheduled, trace) in enumerate(schedules):
        target = "native" if number == 1 else "interpreter"
        about = f"seed {seed}, {target}\n{program.script}\n{arguments}\n{trace}"
        arrays = [array.copy() for array in arguments]
        try:
            tw.compile(scheduled, target, schedule="as written")(*arrays)
        except tw.Error as error:
            raise AssertionError(f"{error}\n{about}") from error
        np.testing.assert_array_equal(arrays[-1], wanted, err_msg=about)


@pytest.mark.parametrize("part", range(2))
@pytest.mark.filterwarnings("ignore::tilewright.PerformanceWarning")
def test_copies_look_up_what_the_program_does(part: int) -> None:
    accepted: Counter[str] = Counter()
    for seed in seeds(part, 40):
        examine(seed, accepted)
    assert {"compute_at", "cache_read", "read_at"} <= set(accepted), accepted


@pytest.mark.parametrize("columns", ["4", "n"])
@pytest.mark.parametrize(
    ("value", "rows"), [("A[J[P[vi]], vj]", 1), ("T.if_then_else(P[vi] >= 0, A[J[P[vi]], vj], T.float32(0))", 9)]
)
def test_only_what_is_surely_looked_up_selects_what_is_copied(value: str, rows: int, columns: str) -> None:
    """The row is looked up ahead of the block where the block looks it up in any case, if it looks up anything."""
    func = from_source(
        f"""
@T.prim_func
def main(P: T.Buffer((6,), "int32"), J: T.Buffer((5,), "int32"), a: T.handle, c: T.handle, n: T.int32):
    A = T.match_buffer(a, (9, {columns}))
    C = T.match_buffer(c, (6, {columns}))
    T.assume_buffer_domain(J, [0, 9])
    for i, j in T.grid(6, {columns}):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = {value}
"""
    )
    sch = tw.Schedule(func)
    position = [read.buffer.name for read in sch.get(sch.get_block("C")).reads].index("A")
    copy = sch.cache_read("C", position, "local")
    sch.compute_at(copy, sch.get_loops("C")[0], preserve_unit_loops=True)
    assert [str(sch.get(loop).extent) for loop in sch.get_loops(copy)] == ["6", str(rows), columns]
    for width in (0, 4) if columns == "n" else (4,):
        a = np.arange(9 * width, dtype="float32").reshape(9, width)
        rng = np.random.default_rng(width)
        positions = rng.integers(0, 5, 6, "int32") if rows == 1 else rng.integers(-1, 5, 6, "int32")
        if width == 0:
            positions[:] = 99  # never looked at
        table, c = rng.integers(0, 9, 5, "int32"), np.empty((6, width), "float32")
        tw.compile(sch, "interpreter")(positions, table, a, c, width)
        for got, at in zip(c, positions, strict=True):
            np.testing.assert_array_equal(got, a[table[at]] if 0 <= at < 5 else np.zeros(width))
