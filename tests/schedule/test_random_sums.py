"""Random programs whose indices are sums of axes, some of open size, and random schedules of them.

What a block reads is `t[v0 * 2 + v1]`, mirrored, in remainders, clamped or under a guard; sizes are open or constant.
Splits that leave remainders, moves and copies of copies put several guards over one another. The values come from the
same text run by Python; the interpreter checks that every axis stays in its domain.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.script import from_source

SIZES = (1, 2, 3, 6)
EXTENTS = ("n", "n", "n", "n + 1", "n * 2", "1", "2", "3", "4", "7")
NUMBERS = ("3", "5", "7", "10", "13")


class Program:
    """Blocks P, Q and R: t from A, u from sums of axes of t, and C from u."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        #: One from another, element by element: most of what moves keeps several guards.
        self.is_chain = self.rng.random() < 0.4
        extents = NUMBERS if self.rng.random() < (0.6 if self.is_chain else 0.1) else EXTENTS
        self.axes = [self.rng.choice(extents) for _ in range(self.rng.choice([1, 2, 2, 2, 3]))]
        if self.is_chain:
            self.axes = self.axes[:2]
        elif self.rng.random() < 0.5 and "n" not in "".join(self.axes):
            self.axes[0] = "n"
        self.reduces = not self.is_chain and len(self.axes) > 1 and self.rng.random() < 0.3
        self.names = [f"v{k}" for k in range(len(self.axes))]
        self.index, self.size = self.sum()
        value = f"t[{self.index}]"
        if self.rng.random() < 0.3:
            other, size = self.sum()
            self.size = self.size if self.is_chain else f"T.max({self.size}, {size})"
            value += f" - t[{other}]"
        guard = self.rng.random()
        if guard < 0.2 and not self.is_chain:
            last = self.rng.choice(["n", "n + 1", "2", "5"])
            value = f"T.if_then_else({self.index} < {last}, t[{self.index}], 7)"
            self.size = last
        self.value = value + self.rng.choice(["", " + v0", " * 2"])
        self.outer = self.names[:-1] if self.reduces else self.names
        self.shape = self.axes[: len(self.outer)]

    def sum(self) -> tuple[str, str]:
        """An index and the least extent that holds it."""
        rng = self.rng
        if self.is_chain:
            return ", ".join(self.names), ", ".join(self.axes)
        terms, reach, low = [], [], []
        for name, extent in zip(self.names, self.axes, strict=True):
            scale = rng.choice([1, 1, 1, 1, 2, 3])
            if rng.random() < 0.15 and len(self.names) > 1:
                terms.append(f"- {name} * {scale}")
                low.append(f"({extent} - 1) * {scale}")
            else:
                terms.append(f"+ {name} * {scale}" if scale > 1 else f"+ {name}")
            reach.append(f"({extent} - 1) * {scale}")
        rng.shuffle(terms)
        index = " ".join(["0", *terms, *(f"+ {text}" for text in low)]).removeprefix("0 + ")
        size = " + ".join([*reach, "1"])
        form = rng.random()
        if form < 0.08:
            return f"({index}) // 2", f"({size} + 1) // 2"
        if form < 0.14:
            modulus = rng.choice(["4", "3", "n"])
            return f"({index}) % {modulus}", modulus
        if form < 0.2:
            last = rng.choice(["n", "3", "n + 2"])
            return f"T.max(T.min({index} - 1, {last} - 1), 0)", last
        return (f"{index} + 1", f"{size} + 1") if form < 0.3 else (index, size)

    def text(self) -> str:
        lines = ["@T.prim_func", "def main(a: T.handle, c: T.handle, z: T.handle):", "    n = T.int32()"]
        shape = f"({', '.join(self.shape)},)"
        lines += [
            f'    A = T.match_buffer(a, ({self.size},), "int32")',
            f'    C = T.match_buffer(c, {shape}, "int32")',
            '    Z = T.match_buffer(z, (n,), "int32")',
            f'    t = T.alloc_buffer(({self.size},), "int32")',
            f'    u = T.alloc_buffer({shape}, "int32")',
        ]
        sizes = self.axes if self.is_chain else [self.size]
        axes = [f"w{k}" for k in range(len(sizes))]
        lines += [f"    for {', '.join(f'j{k}' for k in range(len(sizes)))} in T.grid({', '.join(sizes)}):"]
        lines += ['        with T.block("P"):']
        for k, size in enumerate(sizes):
            lines.append(f"            {axes[k]} = T.axis.spatial({size}, j{k})")
        lines.append(f"            t[{', '.join(axes)}] = A[{', '.join(axes)}] * 3 + 1")
        loops = [f"i{k}" for k in range(len(self.axes))]
        comma = ", ".join(loops)
        kinds = "S" * len(self.outer) + "R" * (len(self.axes) - len(self.outer))
        grid = f"T.grid({', '.join(self.axes)})"
        at = ", ".join(self.outer)
        lines += [f"    for {comma} in {grid}:", '        with T.block("Q"):']
        for name, loop, extent, kind in zip(self.names, loops, self.axes, kinds, strict=True):
            lines.append(f"            {name} = T.axis.{'spatial' if kind == 'S' else 'reduce'}({extent}, {loop})")
        if self.reduces:
            lines += ["            with T.init():", f"                u[{at}] = 0"]
            lines.append(f"            u[{at}] = u[{at}] + {self.value}")
        else:
            lines.append(f"            u[{at}] = {self.value}")
        lines += [f"    for {', '.join(loops[: len(self.outer)])} in T.grid({', '.join(self.shape)}):"]
        lines.append('        with T.block("R"):')
        for name, loop, extent in zip(self.outer, loops, self.shape, strict=False):
            lines.append(f"            {name} = T.axis.spatial({extent}, {loop})")
        lines.append(f"            C[{at}] = u[{at}] + 1")
        return "\n".join(lines) + "\n"

    def expected(self, n: int, a: np.ndarray) -> np.ndarray:
        """The same by Python."""
        shape = tuple(eval(extent, {"n": n}) for extent in self.shape)
        out = np.ones(shape, "int32")
        t = a * 3 + 1
        tools = {"max": max, "min": min, "if_then_else": lambda condition, one, other: one if condition else other}
        value = self.value
        if "if_then_else" in value:  # lazily
            index = self.index
            last = value.split(" < ")[1].split(",")[0]
            value = value.replace(
                f"T.if_then_else({index} < {last}, t[{index}], 7)", f"(t[{index}] if {index} < {last} else 7)"
            )
        code = compile(value.replace("T.", ""), "value", "eval")
        extents = [range(eval(extent, {"n": n})) for extent in self.axes]
        for point in itertools.product(*extents):
            known = {**tools, "t": t, "n": n, **dict(zip(self.names, point, strict=True))}
            out[point[: len(shape)]] += eval(code, known)
        return out


def steps(rng: random.Random, sch: Any) -> dict[str, Callable[[], Any]]:
    blocks = sch.get_child_blocks(sch.get_block("root"))
    name, other = rng.choice(blocks), rng.choice(blocks)
    loops, others = sch.get_loops(name), sch.get_loops(other)
    loop, to = (rng.choice(each) if each else None for each in (loops, others))
    scope = rng.choice(["global", "local"])
    factors = rng.choice([[None, 2], [None, 3], [2, None], [3, None], [None, 4], [None, 2, 2]])
    number = rng.randrange(max(len(sch.get(name).reads), 1))
    return {
        "blockize": lambda: sch.blockize(loop, inner_init=rng.random() < 0.5),
        "cache_read": lambda: sch.cache_read(name, number, scope),
        "cache_write": lambda: sch.cache_write(name, 0, scope),
        "compute_at": lambda: sch.compute_at(name, to, preserve_unit_loops=rng.random() < 0.5),
        "compute_inline": lambda: sch.compute_inline(name),
        "decompose_reduction": lambda: sch.decompose_reduction(name, loop),
        "follow": lambda: follow(rng, sch),
        "fuse": lambda: sch.fuse(*loops[:2], preserve_unit_iters=rng.random() < 0.5),
        "read_at": lambda: sch.read_at(loop, name, number, scope),
        "reindex": lambda: sch.reindex(name, (rng.choice(["read", "write"]), 0)),
        "reindex_cache_read": lambda: sch.reindex_cache_read(name, number, scope, lambda *axes: axes),
        "reindex_cache_write": lambda: sch.reindex_cache_write(name, 0, scope, lambda *axes: axes),
        "reorder": lambda: sch.reorder(*rng.sample(loops, len(loops))),
        "reverse_compute_at": lambda: sch.reverse_compute_at(name, to, preserve_unit_loops=rng.random() < 0.5),
        "reverse_compute_inline": lambda: sch.reverse_compute_inline(name),
        "rfactor": lambda: sch.rfactor(loop, 0),
        "rolling_buffer": lambda: sch.rolling_buffer(name, 0),
        "split": lambda: sch.split(loop, factors, preserve_unit_iters=rng.random() < 0.5),
        "write_at": lambda: sch.write_at(loop, name, 0, scope),
    }


def follow(rng: random.Random, sch: Any) -> None:
    """Splits a loop of a block and moves a consumer into it, splits that, and copies what it reads or what is read of
    it: guards of one split stand over those of another."""
    blocks = [block for block in sch.get_child_blocks(sch.get_block("root")) if sch.get_consumers(block)]
    block = rng.choice(blocks)
    consumer = rng.choice(sch.get_consumers(block))
    factors: list[int | None] = [None, rng.choice([2, 3, 4, 5])]
    sch.split(rng.choice(sch.get_loops(block)), factors if rng.random() < 0.7 else factors[::-1])
    move, what, at = rng.choice([("reverse_compute_at", consumer, block)] * 3 + [("compute_at", block, consumer)])
    getattr(sch, move)(what, rng.choice(sch.get_loops(at)), preserve_unit_loops=rng.random() < 0.5)
    for _ in range(rng.choice([0, 1, 1, 2])):
        sch.split(rng.choice(sch.get_loops(what)), [None, rng.choice([2, 3, 4])])
    copied = rng.choice([block, consumer, *sch.get_consumers(consumer)])
    rng.choice([sch.cache_read, sch.cache_read, sch.cache_write])(copied, 0, rng.choice(["global", "local"]))


WEIGHTS = {
    "follow": 6,
    "split": 8,
    "reverse_compute_at": 8,
    "compute_at": 6,
    "cache_read": 4,
    "cache_write": 2,
    "fuse": 2,
}


def check(sch: Any, cases: list[tuple[int, np.ndarray, np.ndarray]], target: str, what: str) -> None:
    kernel = tw.compile(sch, target, schedule="as written")
    for n, a, expected in cases:
        found = np.full(expected.shape, -77, "int32")
        try:
            kernel(a, found, np.zeros(n, "int32"))
        except tw.Error as error:
            raise AssertionError(f"n = {n}, {target}: {error}\n{what}") from error
        np.testing.assert_array_equal(found, expected, err_msg=f"n = {n}, {target}, {what}")


def examine(seed: int, accepted: Counter[str], sequences: int = 4) -> None:
    program = Program(seed)
    rng = random.Random(seed)
    text = program.text()
    original = from_source(text)
    cases = []
    for n in SIZES:
        size = eval(program.size.replace("T.", ""), {"n": n, "max": max})
        a = np.random.default_rng(n).integers(-9, 9, size).astype("int32")
        try:
            cases.append((n, a, program.expected(n, a)))
        except IndexError:
            continue
    for _ in range(sequences):
        sch = tw.Schedule(original)
        done = []
        for _ in range(rng.randint(1, 10)):
            options = steps(rng, sch)
            name = rng.choices([*options], [WEIGHTS.get(each, 1) for each in options])[0]
            try:
                options[name]()
            except (tw.ScheduleError, tw.ArgumentError, IndexError):  # of a block without loops
                if name != "follow":
                    continue
            done.append(name)
        accepted.update(done)
        what = f"seed {seed}, {done}\n{text}\n{sch.trace}\n{sch.mod.script()}"
        for target in ["interpreter"] * bool(done) + ["native"] * (bool(done) and rng.random() < 0.05):
            check(sch, cases, target, what)


@pytest.mark.parametrize("part", range(2))
def test_what_is_accepted_computes_the_same(part: int) -> None:
    accepted: Counter[str] = Counter()
    for seed in range(part * 40, part * 40 + 40):
        examine(seed, accepted)
    assert accepted["compute_at"] > 5 and accepted["reverse_compute_at"] > 5 and accepted["cache_read"] > 5
