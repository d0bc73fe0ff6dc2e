"""The pass carry_values: what iterations take from those before them stays in registers, and nothing else changes."""

import random as rng

import numpy as np
import pytest

import tilewright as tw
from tilewright import _core, ir
from tilewright.script import tir as T
from tilewright.testing import check_equivalent

TARGET = "llvm -mcpu=haswell -num-cores=1"


@T.prim_func
def two_taps(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for i in range(62):
        B[i + 2] = B[i + 1] * T.float32(0.5) + B[i] * T.float32(0.25) + A[i]


def carried(program, target=TARGET):
    """The program in which values are carried."""
    return tw.lower(program, after="carry_values", target=target)


def loads_in_loops(module, buffer="B"):
    """Of a buffer, in innermost loops."""
    found = 0

    def look(node):
        nonlocal found
        loops, loads = [], []
        if isinstance(node, ir.For):
            _core.visit(node.body, lambda each: loops.append(each) if isinstance(each, ir.For) else None)
            _core.visit(node.body, lambda each: loads.append(each) if isinstance(each, ir.BufferLoad) else None)
        if not loops:
            found += sum(load.buffer.scope() == "global" and load.buffer.name.startswith(buffer) for load in loads)

    for function in module.functions.values():
        _core.visit(function.body, look)
    return found


def run(program, arrays, how="as written"):
    """What a program leaves in copies of the arrays."""
    own = [array.copy() for array in arrays]
    tw.compile(program, "interpreter" if how == "interpreter" else "native", schedule="as written")(*own)
    return own


def test_the_example_of_the_contract():
    lowered = carried(two_taps)
    assert loads_in_loops(lowered) == 0 and "local" in lowered.script(), lowered.script()
    check_equivalent(two_taps, lowered)
    a, b = np.arange(64, dtype="float32"), np.ones(64, "float32")
    expected = b.copy()
    for i in range(62):
        expected[i + 2] = expected[i + 1] * np.float32(0.5) + expected[i] * np.float32(0.25) + a[i]
    np.testing.assert_allclose(run(two_taps, [a, b])[1], expected, rtol=1e-6)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 9, 40])
def test_lines_of_open_length(n):
    """Also for fewer elements than the recurrence has taps; nothing is read before the start of the buffer."""

    @T.prim_func
    def line(a: T.handle, b: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,), "int32")
        B = T.match_buffer(b, (n,), "int32")
        for i in range(n):
            B[i] = (
                T.if_then_else(i >= 1, B[i - 1], T.int32(7)) * 3 - T.if_then_else(i >= 2, B[i - 2], T.int32(1)) + A[i]
            )

    assert loads_in_loops(carried(line)) == 0
    a, expected = np.arange(n, dtype="int32"), []
    for i in range(n):
        value = (expected[i - 1] if i >= 1 else 7) * 3 - (expected[i - 2] if i >= 2 else 1) + int(a[i])
        expected.append((value + 2**31) % 2**32 - 2**31)
    np.testing.assert_array_equal(run(line, [a, np.full(n, 5, "int32")])[1], expected)


@pytest.mark.parametrize("n", [0, 1, 2, 5, 33])
def test_a_loop_of_open_length_that_may_not_run_loads_nothing(n):
    @T.prim_func
    def line(a: T.handle, b: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,), "float32")
        B = T.match_buffer(b, (n,), "float32")
        for i in range(n - 1):
            B[i + 1] = B[i] * T.float32(0.5) + A[i]

    assert loads_in_loops(carried(line)) == 0
    a, b = np.arange(n, dtype="float32"), np.ones(n, "float32")
    expected = b.copy()
    for i in range(n - 1):
        expected[i + 1] = expected[i] * np.float32(0.5) + a[i]
    np.testing.assert_allclose(run(line, [a, b])[1], expected, rtol=1e-6)


def body_of(lines):
    return tw.script.from_source(
        "@T.prim_func\n"
        'def main(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32"), C: T.Buffer((64,), "int32")):\n'
        + "".join(f"    {line}\n" for line in lines)
    )


#: what is in the loop, and how many loads of B are left in it
BODIES = {
    "two stores of one element": (["B[i + 1] = B[i] + A[i]", "B[i + 1] = B[i] * 3"], 0),
    "elements between": (["B[2 * i + 2] = B[2 * i] + A[i]", "B[2 * i + 3] = B[2 * i + 1] - A[i]"], 0),
    "one after the other": (["B[2 * i + 2] = B[2 * i + 1] + A[i]", "B[2 * i + 3] = B[2 * i + 2] - A[i]"], 1),
    "backward": (["B[40 - i] = B[41 - i] + B[43 - i] + A[i]"], 0),
    "what is not there yet": (["B[i + 1] = B[i] + B[i + 2]"], 1),
    "too long ago": (["B[i + 9] = B[i] + A[i]"], 1),
    "the same place": (["B[5] = B[5] * 3 + A[i]"], 1),
    "another store": (["B[i + 1] = B[i] + A[i]", "B[A[i] % 64] = 4"], 1),
    "a conditional store": (["B[i + 1] = B[i] + A[i]", "if A[i] > 3:", "    B[i + 1] = B[i + 1] * 5"], 1),
    "coupled": (["B[i + 1] = B[i] - C[i]", "C[i + 1] = C[i] + B[i]"], 0),
    "a condition of data": (["B[i + 2] = T.if_then_else(A[i] > 5, B[i], B[i + 1]) + 1"], 0),
    "through an index": (["B[i + 1] = B[i] + C[B[i] % 64]"], 0),
}


@pytest.mark.parametrize("name", BODIES)
def test_bodies(name):
    body, left = BODIES[name]
    program = body_of(["for i in range(20):", *(f"    {line}" for line in body)])
    lowered = carried(program)
    assert loads_in_loops(lowered) == left or name in ("one after the other", "a conditional store"), lowered.script()
    check_equivalent(program, lowered)
    arrays = [np.random.default_rng(0).integers(0, 9, 64).astype("int32") for _ in range(3)]
    for found, expected in zip(run(program, arrays), run(program, arrays, "interpreter"), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_rows_in_lanes():
    """Rows that run side by side in the lanes of a vector: what they carry is a vector."""

    @T.prim_func
    def rows(A: T.Buffer((8, 50), "float32"), B: T.Buffer((8, 50), "float32")):
        for i in range(48):
            for r in T.vectorized(8):
                B[r, i + 2] = B[r, i + 1] * T.float32(0.5) + B[r, i] * T.float32(0.25) + A[r, i]

    lowered = carried(rows)
    assert loads_in_loops(lowered) == 0 and "float32x8" in lowered.script(), lowered.script()
    check_equivalent(rows, lowered)


def test_lanes_that_store_where_others_did():
    """Each iteration overwrites what the lanes beside it stored the iteration before."""

    @T.prim_func
    def waves(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
        for i in range(40):
            B[T.Ramp(i + 2, 1, 8)] = B[T.Ramp(i, 1, 8)] + T.Broadcast(A[i], 8)

    lowered = carried(waves)
    assert loads_in_loops(lowered) == 1, lowered.script()
    check_equivalent(waves, lowered)


def test_arguments_of_functions_inside_may_overlap():
    """Only an entry checks them."""

    @T.prim_func(private=True)
    def inside(B: T.Buffer((64,), "int32"), C: T.Buffer((64,), "int32")):
        for i in range(20):
            B[i + 1] = B[i] + 1
            C[i] = B[i + 1]

    assert loads_in_loops(carried(inside)) > 0


def source(random):
    """A recurrence of up to three taps, forward or backward, in one of several nests."""
    n, taps = random.choice([3, 4, 9, 30]), sorted(random.sample([1, 2, 3, 9], random.randint(1, 3)))
    first, step, backward = max(taps), random.choice([1, 1, 2, 3]), random.random() < 0.3
    rows = random.choice([1, 1, 4])
    size = step * (n + first) + step

    def element(back):
        place = f"({step} * (i + {first - back}))"
        place = f"{size - 1} - {place}" if backward else place
        return f"B[r, {place}]"

    terms = [
        f"T.if_then_else(i >= {random.randint(0, 3)}, {element(tap)}, A[r, i])"
        if random.random() < 0.3
        else element(tap)
        for tap in taps
    ]
    extent = f"range({n})" if random.random() < 0.7 else f"range({random.randint(0, 2)}, {n})"
    more = [f"            {element(0)} = {element(0)} - {element(taps[0])}"] if random.random() < 0.2 else []
    if random.random() < 0.2 and step > 1:
        more.append(f"            B[r, {step} * i + 1] = A[r, i]")
    nest = [f"    for r in range({rows}):", f"        for i in {extent}:"]
    if random.random() < 0.3:
        nest = [f"    for i in {extent}:", f"        for r in {random.choice(['T.vectorized', 'range'])}({rows}):"]
    return "\n".join(
        [
            "@T.prim_func",
            f'def main(A: T.Buffer(({rows}, {size}), "int32"), B: T.Buffer(({rows}, {size}), "int32")):',
            *nest,
            f"            {element(0)} = {' + '.join(terms)} + A[r, i]",
            *more,
        ]
    )


@pytest.mark.parametrize("seed", range(60))
def test_recurrences_of_all_kinds(seed):
    program = tw.script.from_source(source(rng.Random(seed)) + "\n")
    check_equivalent(program, carried(program))
    shape = [int(extent) for extent in next(iter(program.buffer_map.values())).shape]
    arrays = [np.random.default_rng(seed).integers(-9, 9, shape).astype("int32") for _ in range(2)]
    np.testing.assert_array_equal(run(program, arrays)[1], run(program, arrays, "interpreter")[1])


def test_an_index_by_a_name_moves_with_the_name():
    @T.prim_func
    def named(X: T.Buffer((64,), "int32"), A: T.Buffer((64,), "int32"), C: T.Buffer((65,), "int32")):
        for k in range(64):
            x: T.int32 = X[k]
            C[k + x + 1] = C[k + x] + A[k]

    at = np.random.default_rng(0).integers(0, 64, 64).astype("int32")
    x, a, c = at - np.arange(64, dtype="int32"), np.arange(64, dtype="int32"), np.zeros(65, "int32")
    wanted = c.copy()
    for k in range(64):
        wanted[at[k] + 1] = wanted[at[k]] + a[k]
    np.testing.assert_array_equal(run(named, [x, a, c])[2], wanted)


def test_what_a_while_loop_may_not_load_is_loaded_within_bounds():
    """The first iteration does not enter the inner loop, and nothing precedes the buffer."""

    @T.prim_func
    def asks(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32"), S: T.Buffer((1,), "int32")):
        for i in range(8):
            S[0] = i
            B[i] = A[i]
            while S[0] > 0:
                A[i] = B[i - 1]
                S[0] = 0

    arrays = [np.arange(8, dtype="int32"), np.zeros(8, "int32"), np.zeros(1, "int32")]
    own = [array.copy() for array in arrays]
    tw.compile(carried(asks), "interpreter")(*own)
    np.testing.assert_array_equal(own[0], [0, 0, 1, 2, 3, 4, 5, 6])
    np.testing.assert_array_equal(run(asks, arrays)[0], own[0])


@pytest.mark.parametrize("ahead", [1, 2])
@pytest.mark.parametrize("kind", ["range", "T.parallel"])
def test_rows_load_what_precedes_them_only_if_it_is_used(kind, ahead):
    """Other threads may store the end of the row before, which flat indices take for the element before the first."""
    program = tw.script.from_source(f"""
@T.prim_func
def rows(A: T.Buffer((5, 7), "int32")):
    for i in {kind}(5):
        for j in range(7):
            A[i, j] = T.if_then_else({ahead} <= j, A[i, j - {ahead}], i) + j
""")
    after = carried(program)
    assert f"A_past_{ahead}[0] = 0" in after.script()
    expected = np.empty((5, 7), "int32")
    for i, j in np.ndindex(5, 7):
        expected[i, j] = (expected[i, j - ahead] if ahead <= j else i) + j
    for each in (after, program):
        a = np.full((5, 7), 77, "int32")
        tw.compile(each, "interpreter")(a)
        np.testing.assert_array_equal(a, expected)
    np.testing.assert_array_equal(run(program, [np.full((5, 7), 77, "int32")])[0], expected)


@pytest.mark.parametrize("kind", ["range", "T.parallel"])
def test_conditions_on_data_are_not_known_before_the_loop(kind):
    program = tw.script.from_source(f"""
@T.prim_func
def rows(M: T.Buffer((7,), "int32"), A: T.Buffer((5, 7), "int32")):
    for i in {kind}(5):
        for j in range(7):
            A[i, j] = T.if_then_else(M[j] > 0, A[i, j - 1], i) + j
""")
    after = carried(program)
    assert ("past" in after.script()) == (kind == "range")
    m = np.array([0, 1, 1, 0, 1, 0, 1], "int32")
    expected = np.empty((5, 7), "int32")
    for i, j in np.ndindex(5, 7):
        expected[i, j] = (expected[i, j - 1] if m[j] else i) + j
    a = np.full((5, 7), 77, "int32")
    tw.compile(after, "interpreter")(m, a)
    np.testing.assert_array_equal(a, expected)


def test_an_assertion_comes_before_what_it_guards():
    """check_bounds: the element before the first one is not read, not even in front of the loop."""

    @T.prim_func
    def from_m(m: T.int32, A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
        for i in range(T.max(m, 0), 8):
            B[i] = A[i]
            C[i] = B[i - 1]

    kernel = tw.compile(from_m, check_bounds=True)
    assert 'T.int64(1) <= T.Cast("int64", T.max(m, 0)), B_1[T.max(m, 0) - 1], 0)' in kernel.inspect("tir")
    with pytest.raises(tw.Error, match="at index i - 1 = -1"):
        kernel(0, *(np.zeros(8, "int32") for _ in "ABC"))
    c = np.zeros(8, "int32")
    kernel(3, np.arange(8, dtype="int32"), np.full(8, 9, "int32"), c)
    np.testing.assert_array_equal(c, [0, 0, 0, 9, 3, 4, 5, 6])
