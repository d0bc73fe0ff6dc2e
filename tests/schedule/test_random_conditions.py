"""Random programs of a few small blocks on linear conditions of their loops, of which the axes say only some.

Loops may have no iteration, axes may run over less than their domains, or with strides, and what is read may be written
by blocks that never run: whatever is accepted computes the same.
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

Step = Callable[[Any], Any]

HEAD = """\
@T.prim_func
def main(A: T.Buffer((4, 4), "int32"), I: T.Buffer((4,), "int32"), C: T.Buffer((4, 4), "int32")):
    D = T.alloc_buffer((4, 4), "int32")
    E = T.alloc_buffer((4,), "int32")
"""
STATEMENTS = [
    *("A[vi, vj] = 1", "D[vi, vj] = 3", "D[vi, vj] = C[vi, vj]", "D[vi, 0] = I[vi]", "D[vi, vj] = A[vi, vj] + 1"),
    *("C[vi, vj] = D[vi, vj]", "C[vi, vj] = D[vj, vi]", "I[vi] = D[vi, vj]", "A[vi, vj] = A[vi, vj] + 1"),
    *("E[vi] = I[vi]", "A[vi, vj] = E[vi]", "C[vi, 0] = E[vi] + I[vi]"),
]
SUMS = ["I[vi] = I[vi] + C[vi, vj]", "I[vi] = T.max(I[vi], D[vi, vj])", "E[vi] = E[vi] + C[vi, vj]"]
VALUES = [
    "i",
    "j",
    "i",
    "j",
    "i // 2",
    "j // 2",
    "i + j",
    "0",
    "i * 2 + j",
    "3 - i",
    "i % 2",
    "i * 2",
    "i * 2 + j // 2",
]


def term(rng: random.Random) -> str:
    a, b = rng.choice([(1, 1), (2, 1), (1, 2), (1, -1), (1, 0), (0, 1), (3, 1)])
    return f"i * {a} + j * {b} {rng.choice(['<', '<', '<', '>=', '<=', '!='])} {rng.randint(0, 4)}"


def block(rng: random.Random, name: str, statement: str = "") -> str:
    """A block of any of the statements; of one that is given, with loops that reach most of what it names."""
    is_plain = bool(statement)
    statement = statement or rng.choice(SUMS if rng.random() < 0.2 else STATEMENTS)
    is_sum = statement in SUMS
    extents = [rng.choice([1, 3, 4, 4, 4, 4] if is_plain else [1, 1, 2, 2, 3, 4, 0]) for _ in "ij"]
    domains = extents if is_plain else [rng.choice([1, 2, 3, 4, 4]) for _ in "ij"]
    values = [rng.choice(VALUES) if rng.random() < (0.1 if is_plain else 1) else loop for loop in "ij"]
    text = f"    for i, j in T.grid({extents[0]}, {extents[1]}):\n"
    text += f'        with T.block("{name}"):\n'
    text += f"            vi = T.axis.spatial({domains[0]}, {values[0]})\n"
    text += f"            vj = T.axis.{'reduce' if is_sum else 'spatial'}({domains[1]}, {values[1]})\n"
    if terms := [term(rng) for _ in range(rng.choice([0, 0, 0, 0, 1] if is_plain else [0, 0, 1, 1, 2]))]:
        text += f"            T.where({' and '.join(terms)})\n"
    if is_sum and (is_plain or rng.random() < 0.6):
        text += f"            with T.init():\n                {statement.partition(' = ')[0]} = 0\n"
    return text + f"            {statement}\n"


def nested(rng: random.Random, name: str, statement: str = "") -> str:
    """Such a block in another one, over its second loop."""
    is_plain = bool(statement)
    statement = statement or rng.choice(SUMS if rng.random() < 0.2 else STATEMENTS)
    is_sum = statement in SUMS

    def alone(loop: str) -> str:
        number = rng.randint(0, 4)
        return rng.choice([f"{loop} < {number}", f"{loop} >= {number}", f"{loop} != {number}", f"I[{loop}] > {number}"])

    value = "i" if is_plain or rng.random() < 0.6 else rng.choice(["3 - i", "i // 2", "i % 2", "0"])
    text = f"    for i in range({rng.choice([4, 4, 4, 3] if is_plain else [4, 4, 3, 2, 1, 0])}):\n"
    text += f'        with T.block("O{name}"):\n            vo = T.axis.spatial(4, {value})\n'
    if rng.random() < 0.35:
        text += f"            T.where({alone('i')})\n"
    extent = rng.choice(["4", "4", "4", "3", "vo + 1", "T.max(vo - 1, 0)", "4 - vo", "1", "0"])
    text += f'            for j in range({extent}):\n                with T.block("{name}"):\n'
    rows = rng.choice(["vo", "vo", "vo", "vo", "3 - vo", "vo // 2", "0"])
    columns = rng.choice(["j", "j", "j", "j", "3 - j", "j // 2", "(j + vo) % 4", "0"])
    text += f"                    vi = T.axis.spatial(4, {rows})\n"
    text += f"                    vj = T.axis.{'reduce' if is_sum else 'spatial'}({rng.choice([4, 4, 3])}, {columns})\n"
    if rng.random() < 0.35:
        text += f"                    T.where({rng.choice([alone('j'), 'vo + j < 4', 'j <= vo', 'vo * 2 + j != 3'])})\n"
    if is_sum and (is_plain or rng.random() < 0.6):
        text += f"                    with T.init():\n                        {statement.partition(' = ')[0]} = 0\n"
    return text + f"                    {statement}\n"


def chain(rng: random.Random) -> list[str]:
    """Statements of which one computes what the next one reads."""
    middle = [
        "D[vi, vj] = A[vi, vj] + 1",
        rng.choice(["C[vi, vj] = D[vi, vj]", "C[vi, vj] = D[vj, vi]", "I[vi] = T.max(I[vi], D[vi, vj])"]),
    ]
    ends = [["E[vi] = E[vi] + C[vi, vj]", "A[vi, 0] = E[vi] + I[vi]"], middle, middle]
    return rng.choice(ends)


def steps(first: str, second: str) -> dict[str, Step]:
    """What may be tried on two blocks."""

    def at(name: str, number: int, sch: Any) -> Any:
        return sch.get_loops(name)[number]

    def split(sch: Any) -> Any:
        return sch.split(at(first, 0, sch), [2, None], preserve_unit_iters=False)

    def layout(sch: Any) -> None:
        if sch.get(sch.get_block(first)).writes[0].buffer.name in "DE":  # those of parameters are seen from outside
            sch.transform_layout(first, ("write", 0), lambda *axes: [*axes][::-1])

    return {
        "add_unit_loop": lambda sch: sch.add_unit_loop(first),
        "blockize": lambda sch: sch.blockize(at(first, 0, sch)),
        "blockize_inner": lambda sch: sch.blockize(at(first, 1, sch)),
        "blockize_both": lambda sch: sch.blockize([sch.get_block(first), sch.get_block(second)]),
        "cache_index": lambda sch: sch.cache_index(first, "local", 0),
        "cache_inplace": lambda sch: sch.cache_inplace(first, 0, "local"),
        "cache_read": lambda sch: sch.cache_read(first, 0, "local"),
        "cache_write": lambda sch: sch.cache_write(first, 0, "local"),
        "compute_at": lambda sch: sch.compute_at(first, at(second, 0, sch)),
        "compute_at_inner": lambda sch: sch.compute_at(first, at(second, 1, sch)),
        "compute_inline": lambda sch: sch.compute_inline(first),
        "decompose_reduction": lambda sch: sch.decompose_reduction(first, at(first, 1, sch)),
        "fuse": lambda sch: sch.fuse(*sch.get_loops(first)),
        "fuse_reduction_epilogue": lambda sch: sch.fuse_reduction_epilogue(first, second),
        "loop_partition": lambda sch: sch.loop_partition(at(first, 0, sch), [None, 2]),
        "merge": lambda sch: sch.merge(at(first, 0, sch), at(second, 0, sch)),
        "parallel": lambda sch: sch.parallel(at(first, 0, sch)),
        "read_at": lambda sch: sch.read_at(at(first, 0, sch), first, 0, "local"),
        "reindex": lambda sch: sch.reindex(first, ("read", 0)),
        "reindex_cache_read": lambda sch: sch.reindex_cache_read(first, 0, "local", lambda i, j: (i, j)),
        "reindex_cache_write": lambda sch: sch.reindex_cache_write(first, 0, "local", lambda i, j: (i, j)),
        "reindex_write": lambda sch: sch.reindex(first, ("write", 0)),
        "reorder": lambda sch: sch.reorder(at(first, 1, sch), at(first, 0, sch)),
        "reverse_compute_at": lambda sch: sch.reverse_compute_at(second, at(first, 0, sch)),
        "reverse_compute_inline": lambda sch: sch.reverse_compute_inline(second),
        "rfactor": lambda sch: sch.rfactor(at(first, 1, sch), 0),
        "split": split,
        "split_inner": lambda sch: sch.split(at(first, 1, sch), [None, 3]),
        "transform_block_layout": lambda sch: sch.transform_block_layout(first, lambda i, j: (i * 5 + j,)),
        "transform_layout": layout,
        "vectorize": lambda sch: sch.vectorize(at(first, 1, sch)),
        "write_at": lambda sch: sch.write_at(at(first, 0, sch), first, 0, "local"),
    }


def run(program: Any, target: str) -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    arrays = [rng.integers(0, 9, shape).astype("int32") for shape in ((4, 4), 4, (4, 4))]
    tw.compile(program, target, schedule="as written")(*arrays)
    return arrays


def examine(seed: int, accepted: Counter[str]) -> None:
    rng = random.Random(seed)
    names = "STU"[: rng.choice([1, 2, 2, 3])]
    statements = chain(rng) if rng.random() < 0.6 else []
    form = rng.choice([block, block, nested])
    blocks = [form(rng, name, *statements[i : i + 1]) for i, name in enumerate(names)]
    text = HEAD + "".join(blocks)
    try:
        program = from_source(text)
        expected = run(program, "interpreter")
    except tw.Error:
        return  # out of bounds, or reads what nothing has written
    places = [name for each in names for name in ([each, each, f"O{each}"] if form is nested else [each])]
    for _ in range(12):
        sch = tw.Schedule(program)
        done = []
        for _ in range(rng.randint(1, 4)):
            name, step = rng.choice([*steps(rng.choice(places), rng.choice(places)).items()])
            try:
                step(sch)
            except (tw.ScheduleError, IndexError):  # a loop that another step has taken away
                continue
            done.append(name)
        accepted.update(done)
        what = f"seed {seed}, {done}\n{text}\n{sch.trace}\n{sch.mod.script()}"
        try:
            results = [run(sch, "interpreter"), run(sch, "native")]
        except tw.Error as error:
            raise AssertionError(f"{error}\n{what}") from error
        for found in results if done else []:
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_array_equal(one, other, err_msg=what)


@pytest.mark.parametrize("part", range(2))
def test_what_is_accepted_computes_the_same(part: int) -> None:
    accepted: Counter[str] = Counter()
    for seed in seeds(part, 40):
        examine(seed, accepted)
    assert len(accepted) > 16 and accepted.total() > 100
