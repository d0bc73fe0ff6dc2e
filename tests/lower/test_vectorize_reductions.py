"""Vectorized loops that reduce: lanes with partial results, put together once."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.lower.passes import agrees, check_unchanged, script_after
from tests.samples import samples

import tilewright as tw
from tilewright import _core
from tilewright.script import from_source
from tilewright.script import tir as T

TARGETS = ["native", "llvm -mcpu=x86-64-v3", "llvm -mcpu=x86-64-v2"]
COMMON: Any = {"deadline": None, "suppress_health_check": list(HealthCheck), "derandomize": False}
DTYPES = ["float32", "float64", "float16", "bfloat16", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64"]
DTYPES += ["uint64", "bool"]
OPS = {
    "sum": ("0", "{c} + {v}"),
    "minus": ("0", "{c} - {v}"),
    "prod": ("1", "{v} * {c}"),
    "min": ("100", "T.min({c}, {v})"),
    "max": ("-100", "T.max({v}, {c})"),
    "and": ("127", "T.bitwise_and({c}, {v})"),
    "or": ("0", "T.bitwise_or({c}, {v})"),
    "xor": ("0", "T.bitwise_xor({v}, {c})"),
    "all": ("1", "T.And({c}, {v})"),
    "any": ("0", "T.Or({v}, {c})"),
}


def numpy_type(dtype: str) -> Any:
    return ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype


def array(rng: np.random.Generator, shape: Any, dtype: str, op: str) -> np.ndarray:
    """Numbers whose sums and products any order gives exactly."""
    if dtype == "bool":
        return rng.random(shape) < (0.99 if op == "all" else 0.01)
    low = 0 if dtype.startswith("uint") else -1
    high = 2 if op in ("sum", "minus", "prod") else 5
    return rng.integers(low, high, shape).astype(numpy_type(dtype))


def lowered(func: Any, **options: Any) -> str:
    return str(tw.lower(func, after="vectorize_reductions", **options).script())


def run_both(
    program: Any, args: list[np.ndarray], target: str, scheduled: Any = None, scalars: Any = ()
) -> list[np.ndarray]:
    """The arguments after the compiled kernel, which are those after the interpreter of the program as written."""
    expected = [a.copy() for a in args]
    tw.compile(program, "interpreter", schedule="as written")(*expected, *scalars)
    tw.compile(scheduled or program, target)(*args, *scalars)
    for got, want in zip(args, expected, strict=True):
        if got.dtype == ml_dtypes.bfloat16:  # NumPy knows no NaN in it
            np.testing.assert_array_equal(got.astype("float32"), want.astype("float32"))
            continue
        np.testing.assert_array_equal(got, want, err_msg=str(tw.lower(scheduled or program, target=target).script()))
    return args


@st.composite
def reductions(draw: Any) -> tuple[str, int, int, str, str]:
    """Rows of a matrix reduced to one number each: source, rows, columns, type of the matrix, operation."""
    dtype = draw(st.sampled_from(DTYPES))
    ops = ["all", "any"] if dtype == "bool" else ["sum", "minus", "prod", "min", "max"]
    if "int" in dtype:
        ops += ["and", "or", "xor"]
    op = draw(st.sampled_from(ops))
    rows, columns = draw(st.integers(1, 9)), draw(st.sampled_from([1, 2, 5, 8, 16, 17, 31, 64, 100, 130, 1000]))
    start, step = OPS[op]
    if dtype.startswith("uint") and op == "max":
        start = "0"
    out = dtype
    if dtype in ("int8", "float16", "bfloat16") and op in ("sum", "minus") and draw(st.booleans()):
        out = "int32" if dtype == "int8" else "float32"
    if out == "bfloat16" and op in ("sum", "minus"):
        columns = min(columns, 130)  # sums above 256 depend on the order
    value = f"T.Cast('{out}', A[vi, vk])"
    if dtype != "bool" and draw(st.booleans()):
        value = draw(st.sampled_from([f"T.Cast('{out}', A[vi, {columns - 1} - vk])", f"{value} * {value}"]))
    step = step.format(c="C[vi]", v=value)
    condition = draw(st.sampled_from(["", "", "", "vk % 3 != 1", "vk < vi * 7", "A[vi, vk] != A[vi, 0]"]))
    indent = "    " if condition else ""
    return (
        f"""@T.prim_func
def main(A: T.Buffer(({rows}, {columns}), '{dtype}'), C: T.Buffer(({rows},), '{out}')):
    for i, k in T.grid({rows}, {columns}):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.Cast('{out}', {start})
            {f"if {condition}:" if condition else "pass"}
            {indent}C[vi] = {step}
""".replace("            pass\n", ""),
        rows,
        columns,
        dtype,
        op,
    )


def schedule(sch: tw.Schedule, way: str, factor: int, rows: int) -> None:
    """Some way to the vectorized loop of block C."""
    block = sch.get_block("C")
    if way == "written":
        copy = sch.cache_write(block, 0, "local")
        sch.reverse_compute_at(copy, sch.get_loops(block)[0])
    i, k = sch.get_loops(block)
    if way in ("whole", "written"):
        sch.vectorize(k)
        return
    if way == "rows":
        i, i_in = sch.split(i, [None, rows])
        outer, inner = sch.split(k, [None, factor])
        sch.reorder(outer, i_in, inner)
    else:
        outer, inner = sch.split(k, [None, factor])
    if way == "apart":
        sch.decompose_reduction(block, outer)
    if way == "inside":
        sch.reorder(inner, outer)
    sch.vectorize(inner)


@settings(max_examples=samples(50), **COMMON)
@given(
    reductions(),
    st.sampled_from(["whole", "split", "rows", "apart", "inside", "written"]),
    st.sampled_from([2, 4, 7, 8, 16, 40]),
    st.integers(1, 5),
    st.sampled_from(TARGETS),
    st.integers(0, 2**31),
)
def test_as_the_program_is_written(
    program: tuple[str, int, int, str, str], way: str, factor: int, tile: int, target: str, seed: int
) -> None:
    text, rows, columns, dtype, op = program
    func = from_source(text)
    sch = tw.Schedule(func)
    try:
        schedule(sch, way, factor, tile)
    except tw.ScheduleError as error:
        assert not error.code.startswith("vectorize"), (text, error)
        return
    rng = np.random.default_rng(seed)
    out = func.buffer_map[func.params[1]].dtype
    args = [array(rng, (rows, columns), dtype, op), array(rng, (rows,), out, op)]
    run_both(func, args, target, sch)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("op", ["min", "max"])
def test_nan_and_infinity(op: str, dtype: str, target: str) -> None:
    """As docs/meaning.md says, a NaN stays wherever it stands; without anything greater, minus infinity does."""
    low = "-" if op == "max" else ""
    text = f"""@T.prim_func
def main(A: T.Buffer((64, 100), '{dtype}'), C: T.Buffer((64,), '{dtype}')):
    for i in range(64):
        C[i] = T.Cast('{dtype}', T.float32("{low}inf"))
        for k in range(100):
            C[i] = T.{op}(C[i], A[i, k])
"""
    rng = np.random.default_rng(0)
    a = rng.standard_normal((64, 100)).astype(numpy_type(dtype))
    a[np.arange(1, 64), np.arange(1, 64)] = np.nan
    a[0] = np.inf * (-1 if op == "max" else 1)
    a[63] = np.arange(100) - 3
    func = from_source(text)
    assert "C_lanes" in lowered(func, target=target), "the order of minima does not matter"
    c = run_both(func, [a, np.zeros(64, numpy_type(dtype))], target)[1]
    assert np.isnan(c[1:63].astype("float32")).all()
    assert np.isinf(c[0].astype("float32"))


def test_extremes_of_integers() -> None:
    """Sums wrap; the start of a minimum is the greatest number there is."""
    for dtype in ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]:
        info = np.iinfo(dtype)
        a = np.full((6, 37), info.max, dtype)
        a[1] = info.min
        a[2, ::2] = info.min
        for op in ["sum", "minus", "prod", "min", "max", "and", "or", "xor"]:
            start = {"min": info.max, "and": info.max, "max": info.min}.get(op, 1)
            text = f"""@T.prim_func
def main(A: T.Buffer((6, 37), '{dtype}'), S: T.Buffer((6,), '{dtype}'), C: T.Buffer((6,), '{dtype}')):
    for i in range(6):
        C[i] = S[i]
        for k in T.vectorized(37):
            C[i] = {OPS[op][1].format(c="C[i]", v="A[i, k]")}
"""
            run_both(from_source(text), [a, np.full(6, start, dtype), np.zeros(6, dtype)], "native")


@pytest.mark.parametrize("n", [0, 1, 5, 16, 64, 65, 1000])
def test_sizes_of_the_call(n: int) -> None:
    @T.prim_func
    def sums(a: T.handle, c: T.handle, m: T.int32):
        n = T.int32()
        A = T.match_buffer(a, (n,), "int32")
        C = T.match_buffer(c, (2,), "int32")
        for k in T.vectorized(n):
            if k < m:
                C[1] = C[1] + A[k]

    assert "if n > 0:" in lowered(sums) or "if 0 < n:" in lowered(sums)
    a = np.arange(n, dtype="int32") + 1
    for m in (0, 3, 64, 2000):
        c = run_both(sums, [a, np.array([7, 5], "int32")], "native", scalars=(m,))[1]
        np.testing.assert_array_equal(c, [7, 5 + a[:m].sum()])


def test_a_result_that_may_not_exist_is_not_touched() -> None:
    """Whether anything is added is known inside of the loop only; the place may lie outside of the buffer."""

    @T.prim_func
    def count(A: T.Buffer((64,), "int32"), C: T.Buffer((4,), "int32"), place: T.int32):
        for k in T.vectorized(64):
            if A[k] > 0:
                C[place] = C[place] + 1

    a = np.zeros(64, "int32")
    with pytest.warns(tw.PerformanceWarning, match="not vectorized"):
        tw.compile(count, schedule="as written")(a, np.zeros(4, "int32"), 1 << 30)


def test_floats_are_reordered_only_where_asked() -> None:
    @T.prim_func
    def asked(A: T.Buffer((8, 200), "float32"), C: T.Buffer((8,), "float32")):
        for i in range(8):
            for k in T.vectorized(200):
                C[i] = C[i] + A[i, k]

    @T.prim_func
    def plain(A: T.Buffer((8, 200), "float32"), C: T.Buffer((8,), "float32")):
        for i in range(8):
            for k in range(200):
                C[i] = C[i] + A[i, k]

    assert "C_lanes" in lowered(asked)
    assert not tw.compile(asked, schedule="as written").notes
    assert "C_lanes" not in lowered(plain)
    a = np.random.default_rng(1).standard_normal((8, 200)).astype("float32")
    got, exact = np.zeros(8, "float32"), np.zeros(8, "float32")
    tw.compile(plain, schedule="as written")(a, exact)
    np.testing.assert_array_equal(exact, np.cumsum(a, axis=1, dtype="float32")[:, -1])
    tw.compile(asked, schedule="as written")(a, got)
    np.testing.assert_allclose(got, a.astype("float64").sum(1), rtol=0, atol=200 * 2.0**-24 * np.abs(a).sum(1).max())


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "int64"])
def test_integers_are_summed_in_vectors_unasked(dtype: str) -> None:
    text = f"""@T.prim_func
def rows(A: T.Buffer((50, 200), '{dtype}'), C: T.Buffer((50,), '{dtype}')):
    for i, k in T.grid(50, 200):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.Cast('{dtype}', 0)
            C[vi] = C[vi] + A[vi, vk]
"""
    rows = from_source(text)
    assert "C_lanes" in lowered(rows)
    info = np.iinfo(dtype)
    a = np.random.default_rng(0).integers(info.min, info.max, (50, 200), dtype)
    c = run_both(rows, [a, np.zeros(50, dtype)], "native")[1]
    np.testing.assert_array_equal(c, a.sum(1, dtype=dtype))


def test_results_of_a_tile_have_lanes_each() -> None:
    """Both operands row by row: 2 x 3 results of which each has a vector that lives through all steps."""

    @T.prim_func
    def product(A: T.Buffer((8, 100), "float32"), B: T.Buffer((9, 100), "float32"), C: T.Buffer((8, 9), "float32")):
        for i, j, k in T.grid(8, 9, 100):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj, vk]

    sch = tw.Schedule(product)
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    i0, i1 = sch.split(i, [None, 2])
    j0, j1 = sch.split(j, [None, 3])
    k0, k1 = sch.split(k, [None, 8])
    sch.reorder(i0, j0, k0, i1, j1, k1)
    sch.vectorize(k1)
    kernel = tw.compile(sch, target="llvm -mcpu=x86-64-v3")
    (lanes,) = kernel.report["promotions"]
    assert (lanes["promoted"], lanes["registers"]) == (True, 6)
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, (rows, 100)).astype("float32") for rows in (8, 9))
    run_both(product, [a, b, np.zeros((8, 9), "float32")], "llvm -mcpu=x86-64-v3", sch)


def test_short_vectors_take_several_steps_at_a_time() -> None:
    """One register of lanes would wait for each addition: four steps of the loop around have partial results each."""

    @T.prim_func
    def dot(A: T.Buffer((1000,), "float32"), B: T.Buffer((1000,), "float32"), C: T.Buffer((1,), "float32")):
        for k0 in range(125):
            for k1 in T.vectorized(8):
                C[0] = C[0] + A[k0 * 8 + k1] * B[k0 * 8 + k1]

    (lanes,) = tw.compile(dot, target="llvm -mcpu=x86-64-v3", schedule="as written").report["promotions"]
    assert lanes["registers"] == 4
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, 1000).astype("float32") for _ in "ab")
    run_both(dot, [a, b, np.zeros(1, "float32")], "llvm -mcpu=x86-64-v3")


@pytest.mark.parametrize(
    "body",
    [
        "C[0] = C[0] + A[k]; B[k] = C[0]",  # reads what is not complete
        "C[0] = C[0] * 2 + A[k]",  # no step of a reduction
        "C[0] = A[k] - C[0]",
        "C[0] = C[0] + A[k]; C[0] = T.max(C[0], 3)",  # two operations
        "C[0] = C[0] + C[1] * A[k]",
        "C[I[0]] = C[I[0]] + A[k]; I[0] = I[0] * A[k] * 0",  # writes where the result is
        "C[0] = C[0] + A[k]; I[0] = I[0] * A[k] + 1",
    ],
)
def test_what_is_no_reduction_stays_in_order(body: str) -> None:
    statements = "".join(f"        {statement.strip()}\n" for statement in body.split(";"))
    text = "@T.prim_func\ndef f(A: T.Buffer((40,), 'int32'), B: T.Buffer((40,), 'int32'), C: T.Buffer((2,), 'int32'), "
    text += f"I: T.Buffer((1,), 'int32')):\n    for k in T.vectorized(40):\n{statements}"
    rng = np.random.default_rng(0)
    args = [rng.integers(-3, 4, size).astype("int32") for size in (40, 40, 2)] + [np.zeros(1, "int32")]
    expected = [a.copy() for a in args]
    tw.compile(from_source(text.replace("T.vectorized", "range")), "interpreter")(*expected)
    with pytest.warns(tw.PerformanceWarning, match="not vectorized"):
        tw.compile(from_source(text), schedule="as written")(*args)
    for got, want in zip(args, expected, strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    "body", ["C[0] = C[0] * 2 + A[k]", "C[0] = C[0] + A[k]; B[k] = C[0]", "C[0] = C[0] + A[k]; C[0] = T.max(C[0], 3)"]
)
def test_the_interpreter_knows_lanes_that_meet(body: str) -> None:
    """Steps of one reduction may change places; nothing else may see the element meanwhile."""
    statements = "".join(f"        {statement.strip()}\n" for statement in body.split(";"))
    text = (
        "@T.prim_func\ndef f(A: T.Buffer((40,), 'int32'), B: T.Buffer((40,), 'int32'), C: T.Buffer((2,), 'int32')):\n"
    )
    func = from_source(text + f"    for k in T.vectorized(40):\n{statements}")
    with pytest.raises(tw.Error) as caught:
        tw.compile(func, "interpreter", schedule="as written")(*(np.zeros(size, "int32") for size in (40, 40, 2)))
    assert caught.value.code == "interpret/race"


def test_arguments_of_other_functions_may_overlap() -> None:
    """Partial results go on beyond the vectorized loop only where nothing else can see the sum."""

    @tw.script.ir_module
    class Sums:
        @T.prim_func
        def add(A: T.Buffer((64,), "int32"), C: T.Buffer((1,), "int32")):
            T.func_attr({"global_symbol": "add"})
            for k in range(8):
                for j in T.vectorized(8):
                    C[0] = C[0] + A[k * 8 + j] * 2

        @T.prim_func
        def main(X: T.Buffer((64,), "int32")):
            T.func_attr({"global_symbol": "main"})
            Sums.add(X.data, T.address_of(X[63]))

    expected = np.arange(64, dtype="int32")
    for k in range(0, 64, 8):
        expected[63] += 2 * expected[k : k + 8].sum()
    x = np.arange(64, dtype="int32")
    tw.compile(Sums, schedule="as written")["main"](x)
    assert re.search(r"for k in range\(8\):\n\s+C_lanes", lowered(Sums))
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize(
    ("step", "has_lanes"),
    [("C[0] and 8 % {n} < A[v]", False), ("8 % {n} < A[v] and C[0]", True), ("C[0] and 8 % ({n} + 1) < A[v]", True)],
)
def test_operands_that_the_result_skips_are_evaluated_by_no_lane(step: str, has_lanes: bool) -> None:
    program = from_source(f"""
@T.prim_func
def main(a: T.handle, b: T.handle, C: T.Buffer((1,), "bool")):
    m, n = T.int32(), T.int32()
    A = T.match_buffer(a, (m,), "int32")
    N = T.match_buffer(b, (n,), "int32")
    for i in T.vectorized(m):
        with T.block("C"):
            v = T.axis.reduce(m, i)
            C[0] = {step.format(n="n")}
""")
    after = tw.lower(program, after="vectorize_reductions")
    assert ("C_lanes" in after.script()) == has_lanes
    skips = step.startswith("C[0] and 8 % {n}")
    for n in (0, 3) if skips or "+ 1" in step else (3,):
        args = [np.arange(20, dtype="int32"), np.zeros(n, "int32"), np.zeros(1, "bool")]
        for start in (False, True) if n else (False,):
            args[2][0] = start
            want = [a.copy() for a in args]
            tw.compile(program, "interpreter", schedule="as written")(*want)
            got = [a.copy() for a in args]
            tw.compile(program, schedule="as written")(*got)
            assert got[2] == want[2]
            _core.interpret(after, "main", *args, check_uninitialized=False)
            assert args[2] == want[2]


@T.prim_func
def sums(A: T.Buffer((6, 100), "int32"), C: T.Buffer((6,), "int32")):
    for i in range(6):
        for k in T.vectorized(100):
            C[i] = C[i] + A[i, k]


def test_lanes_have_partial_results_that_are_added_once() -> None:
    text = script_after(sums, "vectorize_reductions")
    assert text.count("C_1[i] = ") == 1 and "T.allocate(" in text and '"local"' in text
    a = np.arange(600, dtype="int32").reshape(6, 100)
    c = np.arange(6, dtype="int32")
    agrees(sums, "vectorize_reductions", [a, c], [a, c + a.sum(1, dtype="int32")])


def test_vectors_of_results_have_no_partial_results() -> None:
    @T.prim_func
    def rows(A: T.Buffer((100, 8), "int32"), C: T.Buffer((8,), "int32")):
        for k in range(100):
            for j in T.vectorized(8):
                C[j] = C[j] + A[k, j]

    check_unchanged(rows, "vectorize_reductions")


#: sums whose places are read from offsets
PLACED = """@T.prim_func
def placed(p: T.Buffer((44,), "int32"), x: T.Buffer((3, 40)), s: T.Buffer((9,))):
    for i in range(3):
        s[p[i] + 1] = T.float32(0)
        for k in T.vectorized(40):
            s[p[i] + 1] = s[p[i] + 1] + x[i, k]
            {also}
"""


def test_the_index_of_a_result_may_be_data() -> None:
    program = from_source(PLACED.format(also="pass"))
    assert "s_lanes" in script_after(program, "vectorize_reductions")
    x = np.random.default_rng(0).integers(-4, 5, (3, 40)).astype("float32")
    offsets, s = np.arange(3, 47, dtype="int32"), np.zeros(9, "float32")
    want = s.copy()
    want[offsets[:3] + 1] = x.sum(1)
    agrees(program, "vectorize_reductions", [offsets, x, s], [offsets, x, want])


def test_an_index_that_the_loop_writes_is_no_place() -> None:
    program = from_source(PLACED.format(also="p[k + 4] = k"))
    assert "s_lanes" not in script_after(program, "vectorize_reductions")
