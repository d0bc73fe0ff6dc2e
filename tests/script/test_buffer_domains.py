"""T.assume_buffer_domain: what a block declares of the values of a buffer."""

from itertools import pairwise

import numpy as np
import pytest

import tilewright as tw
from tilewright import ir
from tilewright.script import from_source
from tilewright.script import tir as T

ORDERED = """@T.prim_func
def rows(
    P: T.Buffer((5,), "int32"), J: T.Buffer((8,), "int32"), A: T.Buffer((8,)), X: T.Buffer((6,)), Y: T.Buffer((4,))
):
    T.assume_buffer_domain(P, [0, 9], order="nondecreasing")
    T.assume_buffer_domain(J, [0, 6], order="increasing", segments=P)
    for i in range(4):
        with T.block("row"):
            vi = T.axis.spatial(4, i)
            with T.block("zero"):
                Y[vi] = T.float32(0)
            for p in range(P[vi + 1] - P[vi]):
                with T.block("sum"):
                    vp = T.axis.reduce(P[vi + 1] - P[vi], p)
                    Y[vi] += A[P[vi] + vp] * X[J[P[vi] + vp]]
"""

POINTERS = np.array([0, 3, 3, 4, 8], "int32")
COLUMNS = np.array([0, 2, 5, 1, 2, 3, 4, 5], "int32")


def run(pointers: np.ndarray, columns: np.ndarray) -> np.ndarray:
    a, x, y = np.arange(1, 9, dtype="float32"), np.arange(6, dtype="float32"), np.full(4, 77, "float32")
    module = ir.as_module(from_source(ORDERED))
    ir.verify(module)
    ir.interpret(module, next(iter(module.functions)), pointers, columns, a, x, y)
    return y


def test_text_equality_and_json() -> None:
    func = from_source(ORDERED)
    text = func.script()
    assert 'T.assume_buffer_domain(P, [0, 9], order="nondecreasing")\n' in text
    assert 'T.assume_buffer_domain(J, [0, 6], order="increasing", segments=P)\n' in text
    assert "block_attr" not in text and '# with T.block("root"):' in text
    ir.assert_structural_equal(from_source(text), func)
    ir.assert_structural_equal(from_source(func.script(syntax_sugar=False)), func)
    ir.assert_structural_equal(ir.load_json(ir.save_json(func)), func)
    other = from_source(ORDERED.replace("[0, 9]", "[0, 10]"))
    assert not ir.structural_equal(other, func)
    assert ir.structural_hash(other) != ir.structural_hash(func)
    renamed = from_source(ORDERED.replace("P", "Q"))
    assert ir.structural_equal(renamed, func) and ir.structural_hash(renamed) == ir.structural_hash(func)


def test_distinct_values() -> None:
    func = from_source("""@T.prim_func
def f(R: T.Buffer((5,), "int32"), C: T.Buffer((9,))):
    T.assume_buffer_domain(R, [0, 9], order="distinct")
    for i in range(5):
        with T.block("C"):
            vi = T.axis.spatial(5, i)
            C[R[vi]] = T.float32(1)
""")
    assert 'T.assume_buffer_domain(R, [0, 9], order="distinct")\n' in func.script()
    ir.assert_structural_equal(from_source(func.script()), func)
    ir.assert_structural_equal(ir.load_json(ir.save_json(func)), func)
    c = np.zeros(9, "float32")
    ir.interpret(ir.as_module(func), "f", np.array([4, 0, 8, 7, 1], "int32"), c)
    assert np.flatnonzero(c).tolist() == [0, 1, 4, 7, 8]
    with pytest.raises(tw.ScriptError, match="no value of 'R' occurs twice, but the value at position 1 is 0") as info:
        ir.interpret(ir.as_module(func), "f", np.array([4, 0, 8, 7, 0], "int32"), c)
    assert info.value.code == "interpret/assumption"


def test_distinct_values_have_no_segments() -> None:
    text = ORDERED.replace('[0, 6], order="increasing"', '[0, 6], order="distinct"')
    with pytest.raises(tw.ScriptError, match="distinct in each segment") as info:
        from_source(text)
    assert info.value.code == "builder/domain"


@pytest.mark.parametrize(
    ("offsets", "message"),
    [
        ([2, 2, 5, 8], None),
        ([2, 8], None),
        ([], None),
        ([3, 3, 5, 8], "are offsets, but the value at position 0 is 3"),
        ([2, 3, 5, 7], "are offsets, but the value at position 3 is 7"),
        ([2, 6, 5, 8], "are offsets, but the value at position 2 is 5"),
        ([2, 3, 9, 8], r"are in \[2, 9\), but the value at position 2 is 9"),
    ],
)
def test_offsets_have_the_ends_of_their_domain(offsets: list[int], message: str | None) -> None:
    func = from_source("""
@T.prim_func
def f(p: T.handle, y: T.Buffer((1,), "int32")):
    n = T.int32(is_size_var=True)
    P = T.match_buffer(p, (n,), "int32")
    T.assume_buffer_domain(P, [2, 9], order="offsets")
    y[0] = n
""")
    ir.assert_structural_equal(from_source(func.script()), func)
    ir.assert_structural_equal(ir.load_json(ir.save_json(func)), func)
    given, kernel = (np.array(offsets, "int32"), np.zeros(1, "int32")), tw.compile(func)
    if message is None:
        ir.interpret(ir.as_module(func), "f", *given)
        kernel.validate(*given)
        return
    with pytest.raises(tw.ScriptError, match=message):
        ir.interpret(ir.as_module(func), "f", *given)
    with pytest.raises(tw.ArgumentError, match=r"P\[[0-9]\] is"):
        kernel.validate(*given)


def test_offsets_have_no_segments() -> None:
    text = ORDERED.replace('[0, 6], order="increasing"', '[0, 6], order="offsets"')
    with pytest.raises(tw.ScriptError, match="offsets in each segment") as info:
        from_source(text)
    assert info.value.code == "builder/domain" and info.value.hint


@pytest.mark.parametrize(
    ("values", "width", "message"),
    [
        ([0, 2, 5, 1, 2, 3], 3, None),
        ([0, 2, 1, 3, 0, 5, 4], 2, None),
        ([0, 1, 0, 0], 1, None),
        ([], 0, None),
        ([4, 4], 0, None),
        ([0, 2, 5, 1, 2, 2], 3, "length w, but the value at position 5 is 2"),
        ([2, 0, 5, 1, 2, 3], 3, "length w, but the value at position 1 is 0"),
        ([0, 2, 1, 3, 4, 4, 4], 4, "length w, but the value at position 2 is 1"),
        ([0, 2, 1, 3, 4, 7], 2, "but the value at position 5 is 7"),
    ],
)
def test_segments_of_one_length(values: list[int], width: int, message: str | None) -> None:
    func = from_source("""
@T.prim_func
def f(p: T.handle, w: T.int32, y: T.Buffer((1,), "int32")):
    n = T.int32(is_size_var=True)
    P = T.match_buffer(p, (n,), "int64")
    T.assume_buffer_domain(P, [0, 6], order="increasing", segments=w)
    y[0] = n
""")
    assert 'order="increasing", segments=w)\n' in func.script()
    ir.assert_structural_equal(from_source(func.script()), func)
    ir.assert_structural_equal(ir.load_json(ir.save_json(func)), func)
    assert not ir.structural_equal(from_source(func.script().replace("segments=w", "segments=3")), func)
    given, kernel = (np.array(values, "int64"), width, np.zeros(1, "int32")), tw.compile(func)
    if message is None:
        ir.interpret(ir.as_module(func), "f", *given)
        kernel.validate(*given)
        return
    with pytest.raises(tw.ScriptError, match=message):
        ir.interpret(ir.as_module(func), "f", *given)
    with pytest.raises(tw.ArgumentError, match=rf"P\[{message.split('position ')[1][0]}\] "):
        kernel.validate(*given)


@pytest.mark.parametrize("order", ["nondecreasing", "offsets"])
@pytest.mark.parametrize("offsets", [[0, 3, 3, 6], [0, 4, 4, 6], [0, 1, 2, 6], [0, 6], [0, 3, 6]])
def test_no_segment_is_longer(order: str, offsets: list[int]) -> None:
    func = from_source(f"""
@T.prim_func
def f(P: T.Buffer(({len(offsets)},), "int32"), y: T.Buffer((1,), "int32")):
    T.assume_buffer_domain(P, [0, 7], order="{order}", longest=3)
    y[0] = 1
""")
    assert f'order="{order}", longest=3)\n' in func.script()
    ir.assert_structural_equal(from_source(func.script()), func)
    ir.assert_structural_equal(ir.load_json(ir.save_json(func)), func)
    given, kernel = (np.array(offsets, "int32"), np.zeros(1, "int32")), tw.compile(func)
    too_long = [at for at, step in enumerate(np.diff(offsets), 1) if step > 3]
    if not too_long:
        ir.interpret(ir.as_module(func), "f", *given)
        kernel.validate(*given)
        return
    with pytest.raises(tw.ScriptError, match=f"by more than 3, but the value at position {too_long[0]}"):
        ir.interpret(ir.as_module(func), "f", *given)
    with pytest.raises(tw.ArgumentError, match=rf"P\[{too_long[0]}\] exceeds the value before it by more than 3"):
        kernel.validate(*given)


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ('order="increasing", segments=T.Range(0, 2)', "neither a buffer nor a number"),
        ('order="increasing", segments=T.float32(2)', "the length of segments is float32"),
        ('order="nondecreasing", longest=T.float32(2)', "the length of segments is float32"),
        ("segments=3", "segments without an order"),
        ('order="distinct", segments=3', "distinct in each segment"),
        ('order="offsets", segments=3', "offsets in each segment"),
        ('order="increasing", longest=3', "are no offsets"),
        ('order="nondecreasing", segments=2, longest=3', "are no offsets"),
    ],
)
def test_refused_segments(declared: str, message: str) -> None:
    text = ORDERED.replace('[0, 9], order="nondecreasing"', f"[0, 9], {declared}")
    with pytest.raises(tw.ScriptError, match=message) as info:
        from_source(text)
    assert info.value.code == "builder/domain" and info.value.hint


def test_in_a_block_with_axes_and_attributes() -> None:
    @T.prim_func
    def gather(J: T.Buffer((4, 2), "int64"), X: T.Buffer((6,)), Y: T.Buffer((4, 2))):
        for i, j in T.grid(4, 2):
            with T.block("Y"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.block_attr({"key": 1})
                T.assume_buffer_domain(J, [vi - 3, 6])
                Y[vi, vj] = X[J[vi, vj]]

    text = gather.script()
    assert 'T.block_attr({"key": 1})\n' in text and "T.assume_buffer_domain(J, [vi - 3, 6])\n" in text
    ir.assert_structural_equal(from_source(text), gather)
    index, y = np.array([[0, 5], [1, 1], [2, 3], [4, 0]]), np.zeros((4, 2), "float32")
    ir.interpret(ir.as_module(gather), "gather", index, np.arange(6, dtype="float32"), y)
    np.testing.assert_array_equal(y, index)
    index[3, 1] = -1
    with pytest.raises(tw.ScriptError, match="but the value at position 1 is -1") as info:
        ir.interpret(ir.as_module(gather), "gather", index, np.arange(6, dtype="float32"), y)
    assert info.value.code == "interpret/assumption"


def test_the_interpreter_accepts_what_is_declared() -> None:
    a, x = np.arange(1, 9, dtype="float32"), np.arange(6, dtype="float32")
    want = [(a[b:e] * x[COLUMNS[b:e]]).sum() for b, e in pairwise(POINTERS)]
    np.testing.assert_array_equal(run(POINTERS, COLUMNS), np.array(want, "float32"))


@pytest.mark.parametrize(
    ("name", "position", "value", "message"),
    [
        ("P", 2, 2, r"values of 'P' are nondecreasing, but the value at position 2 is 2"),
        ("P", 0, -1, r"values of 'P' are in \[0, 9\), but the value at position 0 is -1"),
        ("P", 4, 10, r"values of 'P' are in \[0, 9\), but the value at position 4 is 10"),
        ("J", 3, 0, None),  # the first of its row
        ("J", 2, 2, r"values of 'J' are increasing in each segment of 'P', but the value at position 2 is 2"),
        ("J", 7, 6, r"values of 'J' are in \[0, 6\), but the value at position 7 is 6"),
    ],
)
def test_the_interpreter_reports_the_first_violation(name: str, position: int, value: int, message: str | None) -> None:
    pointers, columns = POINTERS.copy(), COLUMNS.copy()
    (pointers if name == "P" else columns)[position] = value
    if message is None:
        run(pointers, columns)
        return
    with pytest.raises(tw.ScriptError, match=message) as info:
        run(pointers, columns)
    assert info.value.code == "interpret/assumption"


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("T.assume_buffer_domain(A, [0, 8])", "builder/domain"),
        ("T.assume_buffer_domain(J, [0, 8.0])", "builder/domain"),
        ('T.assume_buffer_domain(J, [0, 8], order="sorted")', "builder/domain"),
        ('T.assume_buffer_domain(K, [0, 8], order="increasing")', "builder/domain"),
        ("T.assume_buffer_domain(J, [0, 8], segments=J)", "builder/domain"),
        ("T.assume_buffer_domain(J, [0, 8, 9])", "script/arguments"),
        ("for i in range(2):\n        T.assume_buffer_domain(J, [0, 8])", "builder/place"),
        ("T.assume_buffer_domain(L, [0, 8])", "verify/domain"),
    ],
)
def test_refusals(line: str, code: str) -> None:
    source = f"""@T.prim_func
def copy(A: T.Buffer((8,)), J: T.Buffer((8,), "int32"), L: T.Buffer((8,), "int32"), K: T.Buffer((2, 4), "int32")):
    {line}
    for i in range(8):
        with T.block("L"):
            vi = T.axis.spatial(8, i)
            L[vi] = J[vi] + K[0, 0]
"""
    with pytest.raises(tw.ScriptError) as info:
        ir.verify(ir.as_module(from_source(source)))
    assert info.value.code == code


LISTS = """@T.prim_func
def lists(R: T.Buffer((3,), "int32"), S: T.Buffer((2,), "int64"), Y: T.Buffer((5,))):
    T.assume_buffer_domain(R, [0, 5], order="increasing")
    T.assume_buffer_domain(S, [0, 5])
    T.assume_disjoint(R, S)
    for i in range(5):
        with T.block("Y"):
            vi = T.axis.spatial(5, i)
            Y[vi] = T.float32(1)
"""


def test_disjoint_buffers_as_text_and_json() -> None:
    func = from_source(LISTS)
    text = func.script()
    assert "    T.assume_disjoint(R, S)\n" in text and "block_attr" not in text
    ir.assert_structural_equal(from_source(text), func)
    ir.assert_structural_equal(from_source(func.script(syntax_sugar=False)), func)
    ir.assert_structural_equal(ir.load_json(ir.save_json(func)), func)
    assert not ir.structural_equal(from_source(LISTS.replace("    T.assume_disjoint(R, S)\n", "")), func)
    inside = from_source("""@T.prim_func
def inside(R: T.Buffer((3,), "int32"), S: T.Buffer((2,), "int64"), Y: T.Buffer((5,))):
    for i in range(5):
        with T.block("Y"):
            vi = T.axis.spatial(5, i)
            T.assume_buffer_domain(R, [0, 5])
            T.assume_buffer_domain(S, [0, 5])
            T.assume_disjoint(R, S)
            Y[vi] = T.float32(1)
""")
    assert "            T.assume_disjoint(R, S)\n" in inside.script() and "block_attr" not in inside.script()
    ir.assert_structural_equal(from_source(inside.script()), inside)


@pytest.mark.parametrize(
    ("values", "others", "wrong"),
    [([0, 2, 4], [3, 1], ""), ([0, 2, 4], [3, 2], "position 1 is 2"), ([1, 3, 4], [1, 0], "position 0 is 1")],
)
def test_the_interpreter_checks_disjoint_buffers(values: list[int], others: list[int], wrong: str) -> None:
    module = ir.as_module(from_source(LISTS))
    arguments = np.array(values, "int32"), np.array(others), np.zeros(5, "float32")
    if not wrong:
        ir.interpret(module, "lists", *arguments)
        return
    with pytest.raises(tw.ScriptError, match=f"no value of 'R' is in 'S', but the value at {wrong}") as info:
        ir.interpret(module, "lists", *arguments)
    assert info.value.code == "interpret/assumption"


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("T.assume_disjoint(R)", "builder/domain"),
        ("T.assume_disjoint(R, S, R)", "builder/domain"),
        ("for i in range(2):\n        T.assume_disjoint(R, S)", "builder/place"),
        ("T.assume_disjoint(R, U)", "verify/domain"),
        ("T.assume_disjoint(R, V)", "verify/domain"),
        ('T.block_attr({"disjoint_buffers": [1]})', "verify/domain"),
        ("T.assume_disjoint(R, W)", "verify/domain"),
    ],
)
def test_refusals_of_disjoint_buffers(line: str, code: str) -> None:
    """`U` has no domain, `V` has two dimensions, and `W` is written."""
    source = f"""@T.prim_func
def lists(R: T.Buffer((3,), "int32"), S: T.Buffer((2,), "int32"), U: T.Buffer((2,), "int32"),
          V: T.Buffer((2, 2), "int32"), W: T.Buffer((5,), "int32")):
    with T.block("all"):
        T.assume_buffer_domain(R, [0, 5])
        T.assume_buffer_domain(S, [0, 5])
        T.assume_buffer_domain(V, [0, 5])
        T.assume_buffer_domain(W, [0, 5])
        {line.replace(chr(10), chr(10) + "    ")}
        W[0] = 1
"""
    if "W)" not in line:
        source = source.replace("        T.assume_buffer_domain(W, [0, 5])\n", "")
    with pytest.raises(tw.ScriptError) as info:
        ir.verify(ir.as_module(from_source(source)))
    assert info.value.code == code


def test_a_malformed_annotation_is_refused() -> None:
    source = """@T.prim_func
def copy(A: T.Buffer((8,)), B: T.Buffer((8,))):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            T.block_attr({"buffer_domains": [1]})
            B[vi] = A[vi]
"""
    with pytest.raises(tw.ScriptError) as info:
        from_source(source)
    assert info.value.code == "verify/domain"


def spmv(declared: bool) -> str:
    source = ORDERED if declared else "\n".join(line for line in ORDERED.splitlines() if "assume" not in line)
    return tw.compile(from_source(source), check_bounds=True, schedule="as written").inspect("tir")


def test_checks_of_bounds_need_not_ask_what_is_declared() -> None:
    """The declarations are checked once, ahead of all loops."""
    assert " reads '" not in spmv(declared=True)
    assert spmv(declared=False).count(" reads '") >= 3


def test_regions_are_those_of_the_declared_domain() -> None:
    @T.prim_func
    def gather(J: T.Buffer((16, 4), "int32"), X: T.Buffer((100,)), Y: T.Buffer((16, 4))):
        T.assume_buffer_domain(J, [20, 30])
        for i, j in T.grid(16, 4):
            with T.block("Y"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = X[J[vi, vj]]

    sch = tw.Schedule(gather)
    sch.read_at(sch.get_loops("Y")[0], "Y", "X", "global")
    assert "T.reads(X[20:30])" in sch.mod.script()
