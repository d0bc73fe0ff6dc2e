"""A reduction whose init may be skipped, or come after other steps, is refused by all who would run it.

Python's loops say what each program means: the init runs in the step in which all reduction axes are at the beginnings
of their domains. That has to be the first step of each element of which steps run.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from textwrap import dedent, indent

import numpy as np
import pytest
from tests.samples import seeds

import tilewright as tw
from tilewright import _core, ir
from tilewright.script import from_source
from tilewright.script import tir as T

CODE = "verify/init-skipped"
BODY = """
                with T.init():
                    C[vi] = 0
                C[vi] = C[vi] + A[vi, vr]
"""


def masked(
    condition: str, loop: str = "range(5)", axis: str = "T.axis.reduce(5, r)", around: str = "", read: str = "vr"
) -> ir.PrimFunc:
    where = f"                T.where({condition})" if condition else ""
    head = f"            if {around}:\n" if around else ""
    text = f"""
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                vr = {axis}
{where}{BODY.replace("vi, vr", f"vi, {read}")}"""
    text = text.replace("\n", "\n    ") if around else text
    return from_source(f"""
@T.prim_func
def main(A: T.Buffer((4, 5), "int32"), L: T.Buffer((4,), "int32"), C: T.Buffer((4,), "int32")):
    for i in range(4):
        for r in {loop}:
{head}{text}
""")


REFUSED = {
    "a triangle": masked("r >= i"),
    "all but the first": masked("r != 0"),
    "the last ones": masked("r > 2"),
    "one of two": masked("r == 2 or r < i"),
    "data": masked("A[i, r] > 3"),
    "an if around": masked("", around="r >= i"),
    "a loop that begins behind its domain": masked("", loop="range(i, 5)"),
    "a loop of data": masked("", loop="range(L[i], 5)"),
}
REFUSED |= {
    name: from_source(f"""
@T.prim_func
def main(A: T.Buffer((4,), "{dtype}"), C: T.Buffer((4,), "{dtype}"), F: T.Buffer((1,), "int32")):
    for r in range(4):
{indent(before, " " * 8)}
            with T.block("C"):
                vr = T.axis.reduce(4, r)
                T.reads(A[vr])
                T.writes(C[{element}])
                with T.init():
                    C[{element}] = T.{dtype}(0)
                C[{element}] = C[{element}] + A[vr]
""")
    for name, dtype, before, element in [
        ("a number with a name", "float32", "x: T.float32 = A[r]\nif x > T.float32(0):", "0"),
        ("a flag that steps set", "int32", "with T.block('F'):\n    F[0] = r\nif F[0] > 1:", "0"),
        ("what is added up", "int32", "if C[0] > 1:", "0"),
        ("an element of each step", "int32", "if F[0] > 1:", "r"),
    ]
}
ACCEPTED = {
    "causal": (masked("r <= i"), lambda i, r: r <= i),
    "of the element alone": (masked("i < 3"), lambda i, r: i < 3),
    "tiles": (masked("r * 4 + i < 18"), lambda i, r: r * 4 + i < 18),
    "by parity": (masked("r % 2 <= i % 2"), lambda i, r: r % 2 <= i % 2),
    "always the first": (masked("r == 0 or r > i"), lambda i, r: r == 0 or r > i),
    "an if around": (masked("", around="r <= i"), lambda i, r: r <= i),
    "lengths of rows": (masked("r < L[i]"), lambda i, r: r < (0, 2, 5, 1)[i]),
    "a loop over the triangle": (masked("", loop="range(i, 5)", axis="T.axis.reduce((i, 5), r)"), lambda i, r: r >= i),
    "what counts is chosen": (
        from_source("""
@T.prim_func
def main(A: T.Buffer((4, 5), "int32"), L: T.Buffer((4,), "int32"), C: T.Buffer((4,), "int32")):
    for i, r in T.grid(4, 5):
        with T.block("C"):
            vi, vr = T.axis.remap("SR", [i, r])
            with T.init():
                C[vi] = 0
            C[vi] = C[vi] + T.if_then_else(vr >= vi, A[vi, vr], 0)
"""),
        lambda i, r: r >= i,
    ),
}


OUT_OF_ORDER = {
    "descending": (masked("", axis="T.axis.reduce(5, 4 - r)"), "does not run first", "r = 4"),
    "rotated": (masked("", axis="T.axis.reduce(5, (r + 3) % 5)"), "does not run first", "r = 2"),
    "descending where it runs": (masked("r > 1", axis="T.axis.reduce(5, 4 - r)"), "does not run first", "r = 4"),
    "large and rotated": (
        masked("", loop="range(50000)", axis="T.axis.reduce(50000, (r + 3) % 50000)", read="vr % 5"),
        "may be skipped",
        "(r + 3) % 50000",
    ),
}


def arguments() -> list[np.ndarray]:
    given = np.arange(1, 21, dtype="int32").reshape(4, 5)
    return [given, np.array([0, 2, 5, 1], "int32"), np.full(4, 100, "int32")]


def runs(function: ir.PrimFunc) -> list[object]:
    module = tw.Schedule(function).mod
    return [partial(_core.interpret, module, "main"), lambda *all_: tw.compile(function, schedule="as written")(*all_)]


@pytest.mark.parametrize("name", REFUSED)
def test_what_may_not_begin_is_refused(name: str) -> None:
    for ask in asks(REFUSED[name]):
        with pytest.raises(tw.Error, match="the init of block 'C' may be skipped") as error:
            ask()
        assert error.value.code == CODE and "T.axis.reduce((i, n), r)" in str(error.value)


@pytest.mark.parametrize("name", OUT_OF_ORDER)
def test_what_begins_late_is_refused(name: str) -> None:
    function, what, where = OUT_OF_ORDER[name]
    for ask in asks(function):
        with pytest.raises(tw.Error, match=f"the init of block 'C' {what}") as error:
            ask()
        assert error.value.code == CODE
        assert where in str(error.value) and "T.axis.reduce(n, r)" in str(error.value)


def asks(function: ir.PrimFunc) -> list[Callable[[], object]]:
    """All that would run the program, or say that it is right."""

    def split() -> None:
        sch = tw.Schedule(function)
        sch.split(sch.get_loops("C")[0], [None, 2])
        sch.verify()

    return [
        lambda: _core.verify(tw.Schedule(function).mod, "scheduled"),
        lambda: tw.Schedule(function).verify(),
        split,
        lambda: tw.compile(function),
        lambda: tw.compile(function, "interpreter"),
        *(partial(run, *arguments()) for run in runs(function)),
    ]


@T.prim_func
def row_description(a: T.handle, c: T.handle):
    A = T.match_buffer(a, (5,), "int32", offset_factor=1)
    C = T.match_buffer(c, (1,), "int32", offset_factor=1)
    with T.block("root"):
        T.reads(C[0], A[0:5])
        T.writes(C[0])
        for r in range(5):
            with T.block("C"):
                vr = T.axis.reduce(5, r)
                C[0] = C[0] + A[vr]


@T.prim_func
def row_sum(a: T.handle, c: T.handle):
    A = T.match_buffer(a, (5,), "int32", offset_factor=1)
    C = T.match_buffer(c, (1,), "int32", offset_factor=1)
    with T.block("root"):
        T.reads(C[0], A[0:5])
        T.writes(C[0])
        C[0] = C[0] + A[0] + A[1] + A[2] + A[3] + A[4]


tw.TensorIntrin.register("test_skipped_init_row", row_description, row_sum)
STEPS = {
    "decompose_reduction": ("P4", lambda sch, loops: sch.decompose_reduction("C", loops[-1])),
    "rfactor": ("P8", lambda sch, loops: sch.rfactor(loops[-1], 0)),
    "blockize": ("P4", lambda sch, loops: sch.blockize(loops[-1])),
    "blockize of blocks": ("P4", lambda sch, _: sch.blockize([sch.get_block("C")])),
    "tensorize": ("blockize/P4", lambda sch, loops: sch.tensorize(loops[-1], "test_skipped_init_row")),
    "tensorize of a block": ("P2", lambda sch, _: sch.tensorize("C", "test_skipped_init_row")),
}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("name", ["a triangle", "all but the first", "data", "a loop of data", "descending", "rotated"])
def test_no_step_is_taken_with_an_init_that_would_not_run(name: str, step: str) -> None:
    sch = tw.Schedule(REFUSED[name] if name in REFUSED else OUT_OF_ORDER[name][0])
    code, take = STEPS[step]
    with pytest.raises(tw.ScheduleError, match=r"the init of block 'C' (may be skipped|does not run first)") as error:
        take(sch, sch.get_loops("C"))
    assert error.value.code == (code if "/" in code else f"{step.split()[0]}/{code}")
    assert "T.axis.reduce(" in error.value.hint


def test_no_intrinsic_takes_the_place_of_a_block_with_such_an_init_inside() -> None:
    function = from_source("""
@T.prim_func
def main(A: T.Buffer((4, 5), "int32"), C: T.Buffer((4,), "int32")):
    for i in range(4):
        with T.block("row"):
            vi = T.axis.spatial(4, i)
            T.reads(A[vi, 0:5])
            T.writes(C[vi])
            for r in range(5):
                with T.block("C"):
                    vr = T.axis.reduce(5, r)
                    T.where(r != 0)
                    with T.init():
                        C[vi] = 0
                    C[vi] = C[vi] + A[vi, vr]
""")
    with pytest.raises(tw.ScheduleError, match="the init of block 'C' may be skipped") as error:
        tw.Schedule(function).tensorize("row", "test_skipped_init_row")
    assert error.value.code == "tensorize/P2"


@pytest.mark.parametrize("name", ACCEPTED)
def test_what_begins_is_accepted(name: str) -> None:
    function, asked = ACCEPTED[name]
    for run in runs(function):
        given, _, out = all_ = arguments()
        run(*all_)
        for i in range(4):
            steps = [int(given[i, r]) for r in range(5) if asked(i, r)]
            assert out[i] == (sum(steps) if steps else 100)


def test_sizes_that_are_open() -> None:
    for condition, axis, loop, good in [
        ("r0 * 8 + r1 < m", "T.axis.reduce(m, r0 * 8 + r1)", "T.grid((m + 7) // 8, 8)", True),
        ("r0 * 8 + r1 < m and r0 * 8 + r1 <= i", "T.axis.reduce(m, r0 * 8 + r1)", "T.grid((m + 7) // 8, 8)", True),
        ("r0 * 8 + r1 < m and r0 * 8 + r1 >= i", "T.axis.reduce(m, r0 * 8 + r1)", "T.grid((m + 7) // 8, 8)", False),
        ("r0 + r1 > 0", "T.axis.reduce(m, r0 + r1)", "T.grid(m, 1)", False),
    ]:
        function = from_source(f"""
@T.prim_func
def main(a: T.handle, c: T.handle):
    n, m = T.int32(), T.int32()
    A = T.match_buffer(a, (n, m), "int32")
    C = T.match_buffer(c, (n,), "int32")
    for i in range(n):
        for r0, r1 in {loop}:
            with T.block("C"):
                vi = T.axis.spatial(n, i)
                vr = {axis}
                T.where({condition})
{BODY}
""")
        given, out = np.arange(143, dtype="int32").reshape(11, 13), np.full(11, 100, "int32")
        if not good:
            with pytest.raises(tw.Error) as error:
                tw.compile(function)
            assert error.value.code == CODE
            continue
        tw.compile(function)(given, out)
        np.testing.assert_array_equal(out, [given[i, : i + 1 if "<= i" in condition else 13].sum() for i in range(11)])


TERMS = (
    *("{k} <= {i}", "{k} >= {i}", "{k} != {i}", "{k} < {c}", "{k} >= {c}", "{i} + {k} < {c}", "{k} % 2 == {c} % 2"),
    *("{k} * {i} < {c}", "{i} != {c}", "{k} == 0 or {k} > {c}", "{k} // 2 <= {i} // 2", "{k} != 0", "{i} - {k} < {c}"),
)


def program(
    rng: random.Random, orders: random.Random
) -> tuple[ir.PrimFunc, list[tuple[int, int, int]], tuple[int, int]]:
    """A masked sum over C[i] += A[i, k], and the steps that run: element, step, whether it is the first. The reduction
    at times runs against its loops, from their middle, or comes to each step again."""
    rows, columns, tile = rng.randint(1, 5), rng.randint(1, 7), rng.randint(1, 4)
    begin = rng.choice([0, 0, 0, 1])
    outer = -(-columns // tile)
    fused = rng.random() < 0.25
    i, k = ("f // {n}", "f % {n}") if fused else ("i", "(k0 * {t} + k1)")
    i, k = (part.format(n=columns, t=tile) for part in (i, k))
    k = orders.choice(
        [k] * 6
        + [f"({columns - 1} - {k})", f"(({k} + 1) % {columns})", f"({k} // 2)", f"(({k}) * {columns - 1} % {columns})"]
    )
    terms = [] if fused else [f"k0 * {tile} + k1 < {columns}"]
    for _ in range(rng.choice([0, 1, 1, 2])):
        terms.append("(" + rng.choice(TERMS).format(i=f"({i})", k=f"({k})", c=rng.randint(0, 4)) + ")")
    loops = [("f", rows * columns)] if fused else [("i", rows), ("k0", outer), ("k1", tile)]
    if not fused and rng.random() < 0.5:
        rng.shuffle(loops)
    condition = " and ".join(terms) or "True"
    before = rng.random() < 0.3 and bool(terms)
    names, extents = (", ".join(str(loop[part]) for loop in loops) for part in (0, 1))
    grid = f"T.grid({extents})" if len(loops) > 1 else f"range({extents})"
    indent = "    " if before else ""
    text = f"""
@T.prim_func
def main(A: T.Buffer(({rows}, {columns + begin}), "int32"), C: T.Buffer(({rows},), "int32")):
    for {names} in {grid}:
{f"        if {condition}:" if before else ""}
{indent}        with T.block("C"):
{indent}            vi = T.axis.spatial({rows}, {i})
{indent}            vk = T.axis.reduce(({begin}, {columns + begin}), {k} + {begin})
{indent}            {f"T.where({condition})" if terms and not before else ""}
{indent}            with T.init():
{indent}                C[vi] = 0
{indent}            C[vi] = C[vi] * 3 + A[vi, vk]
"""
    steps: list[tuple[int, int, int]] = []

    def walk(depth: int, at: dict[str, int]) -> None:
        if depth < len(loops):
            name, extent = loops[depth]
            for value in range(extent):
                walk(depth + 1, at | {name: value})
        elif eval(condition, {}, at):
            step = eval(k, {}, at) + begin
            steps.append((eval(i, {}, at), step, int(step == begin)))

    walk(0, {})
    return from_source(text), steps, (rows, columns + begin)


@pytest.mark.parametrize("part", range(4))
def test_random_masks(part: int) -> None:
    kept = refused = taken = 0
    for seed in seeds(part, 90):
        function, steps, shape = program(random.Random(seed), random.Random(f"order {seed}"))
        firsts: dict[int, list[int]] = {}
        for element, _, first in steps:
            firsts.setdefault(element, []).append(first)
        is_skipped = any(not order[0] for order in firsts.values())
        for run in runs(function):
            given, out = (
                np.arange(1, 1 + shape[0] * shape[1], dtype="int32").reshape(shape),
                np.full(shape[0], 7, "int32"),
            )
            if is_skipped:
                with pytest.raises(tw.Error) as error:
                    run(given, out)
                assert error.value.code == CODE, (seed, function.script())
                continue
            run(given, out)
            expected = [7] * shape[0]
            for element, step, first in steps:
                expected[element] = (0 if first else expected[element]) * 3 + int(given[element, step])
            np.testing.assert_array_equal(out, expected, err_msg=f"{seed}\n{function.script()}")
        refused += is_skipped
        kept += not is_skipped
        taken += steps_agree(function, is_skipped, shape)
    assert kept > 40 and refused > 10 and taken > 60


def steps_agree(function: ir.PrimFunc, is_skipped: bool, shape: tuple[int, int]) -> int:
    """How many steps with the reduction were taken; each of them means the same."""

    def result(module: ir.Module | ir.PrimFunc) -> np.ndarray:
        given = np.arange(1, 1 + shape[0] * shape[1], dtype="int32").reshape(shape)
        out = np.full(shape[0], 7, "int32")
        tw.compile(module, "interpreter")(given, out)
        return out

    taken = 0
    for name in ("decompose_reduction", "rfactor", "blockize", "blockize of blocks"):
        for number in range(len(tw.Schedule(function).get_loops("C"))):
            sch = tw.Schedule(function)
            try:
                STEPS[name][1](sch, sch.get_loops("C")[: number + 1])
            except tw.ScheduleError:
                continue
            assert not is_skipped, (name, number, function.script())
            np.testing.assert_array_equal(result(sch.mod), result(function), err_msg=sch.mod.script())
            taken += 1
    return taken


@pytest.mark.parametrize(
    ("extents", "row", "step", "condition", "good"),
    [
        ("300 * 400", "f // 400", "f % 400", "True", True),  # fused, and too many to be tried
        ("300 * 400", "f // 400", "f % 400", "f % 400 >= f // 400", False),
        ("120064", "f // 400", "f % 400", "f < 120000", True),  # as split(fuse(i, r), [None, 64]) leaves it
        ("400", "f % 300", "f", "True", False),  # of all elements but one the first step does not run
    ],
)
def test_loops_that_drive_both_kinds_of_axes(extents: str, row: str, step: str, condition: str, good: bool) -> None:
    function = from_source(f"""
@T.prim_func
def main(A: T.Buffer((300, 400), "int32"), C: T.Buffer((300,), "int32")):
    for f in range({extents}):
        with T.block("C"):
            vi = T.axis.spatial(300, {row})
            vr = T.axis.reduce(400, {step})
            T.where({condition})
            with T.init():
                C[vi] = 0
            C[vi] = C[vi] + A[vi, vr]
""")
    if good:
        given, out = np.arange(300 * 400, dtype="int32").reshape(300, 400) % 7, np.full(300, 100, "int32")
        tw.compile(function)(given, out)
        np.testing.assert_array_equal(out, given.sum(axis=1))
        return
    with pytest.raises(tw.Error) as error:
        tw.compile(function)
    assert error.value.code == CODE


def open_sums(row: str, condition: str) -> ir.PrimFunc:
    where = f"            T.where({condition})\n" if condition else ""
    return from_source(f"""
@T.prim_func
def main(a: T.handle, c: T.handle):
    n, m = T.int32(), T.int32()
    A = T.match_buffer(a, (n, m), "int32")
    C = T.match_buffer(c, (n,), "int32")
    for i, k in T.grid(n, m):
        with T.block("C"):
            vi = T.axis.spatial(n, {row})
            vk = T.axis.reduce(m, k)
{where}            with T.init():
                C[vi] = 0
            C[vi] = C[vi] + A[vi, vk]
""")


@pytest.mark.parametrize(
    "tile",
    [
        lambda sch, i, k: sch.split(sch.fuse(i, k), [None, 64]),
        lambda sch, i, k: sch.split(sch.fuse(i, k), [None, 4, 16]),
        lambda sch, i, k: sch.split(sch.fuse(i, sch.split(k, [None, 64])[0]), [None, 8]),
    ],
    ids=["fuse and split", "three loops", "tiles of columns"],
)
@pytest.mark.parametrize("row", ["i", "n - 1 - i"])
@pytest.mark.parametrize("condition", ["", "k <= i", "k % 2 <= i % 2 and i < 5"])
def test_fused_loops_of_open_sizes_that_are_split(tile: Callable[..., object], row: str, condition: str) -> None:
    sch = tw.Schedule(open_sums(row, condition))
    tile(sch, *sch.get_loops("C"))
    kernel = tw.compile(sch)
    for n, m in ((7, 131), (1, 1), (64, 3), (3, 64)):
        given, out = np.arange(n * m, dtype="int32").reshape(n, m), np.full(n, 100, "int32")
        kernel(given, out)
        expected = np.full(n, 100)
        for i in range(n):
            steps = [k for k in range(m) if not condition or eval(condition, {"i": i, "k": k})]
            at = eval(row, {"i": i, "n": n})
            expected[at] = given[at, steps].sum() if steps else 100
        np.testing.assert_array_equal(out, expected)


def test_a_sum_of_loops_in_the_wrong_order_does_not_grow() -> None:
    """Row 1 of 100 columns begins at f0 = 1, f1 = 36, after f0 = 2, f1 = 0."""
    function = from_source("""
@T.prim_func
def main(a: T.handle, c: T.handle):
    n, m = T.int32(), T.int32()
    A = T.match_buffer(a, (n, m), "int32")
    C = T.match_buffer(c, (n,), "int32")
    for f1, f0 in T.grid(64, (n * m + 63) // 64):
        with T.block("C"):
            vi = T.axis.spatial(n, (f0 * 64 + f1) // m)
            vk = T.axis.reduce(m, (f0 * 64 + f1) % m)
            T.where(f0 * 64 + f1 < n * m)
            with T.init():
                C[vi] = 0
            C[vi] = C[vi] + A[vi, vk]
""")
    with pytest.raises(tw.Error) as error:
        tw.compile(function)
    assert error.value.code == CODE


@pytest.mark.parametrize(
    ("step", "condition"),
    [
        ("{f} % m", "{f} < n * m and {f} >= 2"),  # element 0 has no first step
        ("{f} % m", "{f} < n * m and {f} % m != 0"),
        ("{f} % m", "{f} < n * m and {f} % m >= f1"),
        ("({f} + 1) % m", "{f} < n * m"),
        ("m - 1 - {f} % m", "{f} < n * m - 1"),  # the last element has no first step
    ],
)
def test_fused_loops_of_open_sizes_that_skip_a_first_step(step: str, condition: str) -> None:
    fused = "(f0 * 64 + f1)"
    function = from_source(f"""
@T.prim_func
def main(a: T.handle, c: T.handle):
    n, m = T.int32(), T.int32()
    A = T.match_buffer(a, (n, m), "int32")
    C = T.match_buffer(c, (n,), "int32")
    for f0, f1 in T.grid((n * m + 63) // 64, 64):
        with T.block("C"):
            vi = T.axis.spatial(n, {fused} // m)
            vr = T.axis.reduce(m, {step.format(f=fused)})
            T.where({condition.format(f=fused)})
{indent(dedent(BODY), " " * 12)}
""")
    with pytest.raises(tw.Error) as error:
        tw.compile(function, schedule="as written")
    assert error.value.code == CODE


SIGNED = """
@T.prim_func
def main({head}):
{sizes}    for f in range({extent}):
        with T.block("C"):
            vr = T.axis.reduce({extent}, f)
            T.where(f >= 1 - m)
            T.reads(A[vr])
            T.writes(C[0])
            with T.init():
                C[0] = 0
            C[0] = C[0] + A[vr]
"""


@pytest.mark.parametrize(
    ("head", "sizes", "extent", "good"),
    [
        # -3 * -2 steps, of which those before 1 - m = 4 are skipped
        ('A: T.Buffer((64,), "int32"), C: T.Buffer((1,), "int32"), n: T.int32, m: T.int32', "", "n * m", False),
        ('A: T.Buffer((64,), "int32"), C: T.Buffer((1,), "int32"), n: T.int32, m: T.int32', "", "(n - 1) * m", False),
        ('A: T.Buffer((64,), "int32"), C: T.Buffer((1,), "int32"), m: T.int32', "", "m * 4", True),
        ('a: T.handle, C: T.Buffer((1,), "int32"), m: T.int32', "A = T.match_buffer(a, (n,), 'int32')", "n * m", True),
    ],
)
def test_factors_of_an_extent_may_both_be_negative(head: str, sizes: str, extent: str, good: bool) -> None:
    sizes = f"    n = T.int32()\n    {sizes}\n" if sizes else ""
    program = from_source(SIGNED.format(head=head, sizes=sizes, extent=extent).replace("A[vr]", "A[0]"))
    if good:
        return _core.verify(program)
    with pytest.raises(tw.Error) as caught:
        tw.compile(program)
    assert caught.value.code == CODE


def test_a_condition_that_excludes_all_steps():
    """What was a loop over range(0), and is split now, has neither an init nor a sum."""
    sch = tw.Schedule(
        from_source("""@T.prim_func
def main(b: T.handle):
    n = T.int32()
    B = T.match_buffer(b, (n, n))
    for i, j in T.grid(n, n):
        for k in range(0):
            with T.block("B"):
                v, w = T.axis.remap("SS", [i, j])
                r = T.axis.reduce(2, k)
                with T.init():
                    B[v, w] = T.float32(1)
                B[v, w] = B[v, w] + T.float32(2)
""")
    )
    sch.split(sch.get_loops("B")[2], [4, 8])
    ir.verify(sch.mod)
    for target in ("interpreter", "native"):
        result = np.full((3, 3), 7, "float32")
        tw.compile(sch, target=target)(result)
        np.testing.assert_array_equal(result, np.full((3, 3), 7, "float32"))


def test_a_reduction_of_one_step_begins_in_each_run():
    """Its condition may read what the loops around it change: whatever runs, runs the init."""
    sch = tw.Schedule(
        from_source("""@T.prim_func
def main(A: T.Buffer((2, 2), "int32"), C: T.Buffer((2,), "int32")):
    B = T.alloc_buffer((2, 2), "int32")
    for i, j in T.grid(2, 2):
        with T.block("B"):
            v, w = T.axis.remap("SS", [i, j])
            B[v, w] = A[v, w]
    for i, r, j in T.grid(2, 1, 2):
        with T.block("C"):
            v = T.axis.spatial(2, i)
            k = T.axis.reduce(1, r)
            T.where(B[i, j] > 0)
            with T.init():
                C[v] = 5
            C[v] = C[v] + B[v, 0]
""")
    )
    sch.compute_at("B", sch.get_loops("C")[2])
    ir.verify(sch.mod)
    a = np.array([[0, 3], [-4, 0]], "int32")
    for target in ("interpreter", "native"):
        result = np.full(2, 7, "int32")
        tw.compile(sch, target=target)(a, result)
        np.testing.assert_array_equal(result, [5, 7])
