"""Tensor expressions: what their programs look like, and what they compute."""

import math

import numpy as np
import pytest

import tilewright as tw
from tilewright import _core, ir, te
from tilewright.compat import tvm
from tilewright.script import tir as T
from tilewright.script.core import script
from tilewright.testing import check_same


def run(func, *arrays):
    """Runs the program in the interpreter; the arrays are its arguments."""
    module = ir.as_module(func)
    ir.interpret(module, next(iter(module.functions)), *arrays)
    return arrays


def test_matmul_is_the_program_one_would_write():
    A = te.placeholder((8, 4), name="A")
    B = te.placeholder((4, 6), name="B")
    k = te.reduce_axis((0, 4), name="k")
    C = te.compute((8, 6), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")

    @T.prim_func
    def main(A: T.Buffer((8, 4)), B: T.Buffer((4, 6)), C: T.Buffer((8, 6))):
        T.func_attr({"tir.noalias": True})
        for i, j, k in T.grid(8, 6, 4):
            with T.block("C"):
                v_i, v_j, v_k = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[v_i, v_j] = T.float32(0)
                C[v_i, v_j] = C[v_i, v_j] + A[v_i, v_k] * B[v_k, v_j]

    func = te.create_prim_func([A, B, C], name="main")
    ir.assert_structural_equal(func, main)
    assert func.script() == main.script()
    assert (C.shape[0].value, C.dtype, C.ndim, C.name, C.op.name) == (8, "float32", 2, "C", "C")
    assert C.op.reduce_axis == (k,) and len(C.op.axis) == 2 and C.op.input_tensors == [A, B]


def test_chain_allocates_what_is_between():
    A = te.placeholder((5,), "int32", name="A")
    B = te.compute((5,), lambda i: A[i] + 1, name="B")
    C = te.compute((5,), lambda *i: B(*i) * B(*i) - A(*i), name="C")
    func = te.create_prim_func([A, C])
    assert [b.name for b in func.body.block.alloc_buffers] == ["B"]
    a, c = run(func, np.arange(5, dtype="int32"), np.zeros(5, "int32"))
    np.testing.assert_array_equal(c, (a + 1) ** 2 - a)


@pytest.mark.parametrize(
    ("reducer", "numpy"), [(te.sum, np.sum), (te.prod, np.prod), (te.max, np.max), (te.min, np.min)]
)
def test_reducers(reducer, numpy):
    A = te.placeholder((3, 4, 2), "int32", name="A")
    k, l = te.reduce_axis((0, 4), "k"), te.reduce_axis((0, 2), "l")
    B = te.compute((3,), lambda i: reducer(A[i, k, l], axis=[k, l]), name="B")
    a = np.random.default_rng(0).integers(-3, 4, (3, 4, 2)).astype("int32")
    _, b = run(te.create_prim_func([A, B]), a, np.zeros(3, "int32"))
    np.testing.assert_array_equal(b, numpy(a, axis=(1, 2)))


def test_reduction_where_and_init():
    A = te.placeholder((3, 8), "int32", name="A")
    start = te.placeholder((3,), "int32", name="start")
    k = te.reduce_axis((2, 8), "k")
    B = te.compute((3,), lambda i: te.sum(A[i, k], axis=k, where=k % 2 == 0, init=start[i]), name="B")
    a, s = np.arange(24, dtype="int32").reshape(3, 8), np.array([100, 200, 300], "int32")
    *_, b = run(te.create_prim_func([A, start, B]), a, s, np.zeros(3, "int32"))
    np.testing.assert_array_equal(b, a[:, 2::2].sum(axis=1) + s)


def test_reducer_of_tuples():
    argmax = te.comm_reducer(
        lambda x, y: (T.Select(x[1] >= y[1], x[0], y[0]), T.Select(x[1] >= y[1], x[1], y[1])),
        lambda index, value: (te.const(-1, index), T.min_value(value)),
        name="argmax",
    )
    n = te.var("n")
    index, value = te.placeholder((n, 7), "int32", name="index"), te.placeholder((n, 7), "int32", name="value")
    k = te.reduce_axis((0, 7), "k")
    outputs = te.compute((n,), lambda i: argmax((index[i, k], value[i, k]), axis=k), name="argmax")
    assert [t.name for t in outputs] == ["argmax_v0", "argmax_v1"]
    func = te.create_prim_func([index, value, *outputs])
    i, v = np.tile(np.arange(7, dtype="int32"), (4, 1)), np.random.default_rng(1).permutation(28).astype("int32")
    v = v.reshape(4, 7)
    _, _, at, top = run(func, i, v, np.zeros(4, "int32"), np.zeros(4, "int32"))
    np.testing.assert_array_equal(at, v.argmax(axis=1))
    np.testing.assert_array_equal(top, v.max(axis=1))


def test_several_values_share_their_loops():
    A = te.placeholder((4,), name="A")
    B, C = te.compute((4,), lambda i: (A[i] + 1.0, A[i] * 2.0), name="B")
    func = te.create_prim_func([A, B, C])
    loop = func.body.block.body
    assert isinstance(loop, ir.For) and [r.block.name_hint for r in loop.body.seq] == ["B.v0", "B.v1"]
    a, b, c = run(func, np.arange(4, dtype="float32"), np.zeros(4, "float32"), np.zeros(4, "float32"))
    np.testing.assert_array_equal((b, c), (a + 1, a * 2))


def test_blocks_of_one_name_are_told_apart():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0)
    C = te.compute((4,), lambda i: B[i] + 1.0)
    D = te.compute((4,), lambda i: C[i] + 1.0)
    func = te.create_prim_func([A, D])
    assert [loop.body.block.name_hint for loop in func.body.block.body.seq] == ["compute", "compute_1", "compute_2"]


def test_extern_reads_and_writes_whole_tensors():
    A = te.placeholder((4, 4), name="A")
    B = te.compute((4, 4), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.extern((4, 4), [B], lambda ins, outs: T.call_packed("library.f", ins[0].data, outs[0].data), name="C")
    func = te.create_prim_func([A, C])
    block = func.body.block.body.seq[1].block
    assert block.name_hint == "C"
    assert [str(region.buffer.name) for region in (*block.reads, *block.writes)] == ["B", "C"]
    two = te.extern([(4,), (2,)], [A], lambda ins, outs: T.call_packed("f", outs[1].data), dtype=["int8", "int32"])
    assert [(t.name, t.dtype, t.shape[0].value) for t in two] == [("extern_v0", "int8", 4), ("extern_v1", "int32", 2)]


def test_scalars_become_parameters():
    n, factor = te.size_var("n"), te.var("factor", "float32")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] * factor, name="B")
    func = te.create_prim_func([factor, A, B])
    a = np.arange(6, dtype="float32")
    *_, b = run(func, 2.5, a, np.zeros(6, "float32"))
    np.testing.assert_array_equal(b, a * 2.5)


def test_zero_dimensions_and_wide_indices():
    A = te.placeholder((), name="A")
    B = te.compute((), lambda: A[()] + 1.0, name="B")
    a, b = run(te.create_prim_func([A, B]), np.array(2, "float32"), np.zeros((), "float32"))
    assert (a, b) == (2, 3)
    wide = te.compute((ir.const(4, "int64"),), lambda i: i + 1, name="wide")
    assert wide.dtype == "int64" and wide.op.axis[0].var.dtype == "int64"


def test_programs_share_nothing():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
    first, second = te.create_prim_func([A, B]), te.create_prim_func([A, B])
    assert not first.params[0].same_as(second.params[0])
    ir.assert_structural_equal(first, second)


def test_attributes():
    A, W = te.placeholder((4,), name="A"), te.placeholder((4,), name="W")
    B = te.compute((4,), lambda i: A[i] * W[i], name="B", attrs={"layout_free_placeholders": [W], "note": "x"})
    func = te.create_prim_func([A, W, B])
    assert list(func.attrs["layout_free_buffers"]) == [1]
    assert func.body.block.body.body.block.annotations == {"note": "x"}


@pytest.mark.parametrize(
    ("attempt", "message", "code"),
    [
        (lambda A: te.compute((4, 4), lambda i: A[i]), "dimensions: 2, not 1", "te/formula"),
        (lambda A: te.compute((4,), lambda i: None), "returns no value", "te/formula"),
        (lambda A: te.compute((4,), int), "Python does not know what 'int' takes", "te/formula"),
        (
            lambda A: te.compute((4,), lambda i: (te.sum(A[0], axis=te.reduce_axis((0, 2))), 1)),
            "not for a part of it",
            "te/reduction",
        ),
        (
            lambda A: te.create_prim_func([te.compute((4,), lambda i: A[i])]),
            "'A' is not among the parameters",
            "te/parameters",
        ),
        (lambda A: te.create_prim_func([A, 3]), "not int", "te/parameters"),
        (lambda A: te.create_prim_func([A], "int64"), "index_dtype_override", "te/index-dtype"),
        (
            lambda A: te.compute((4,), lambda i: ir.decl_buffer((4,), name="raw")[i]),
            "'raw', which is not a tensor",
            "te/no-tensor",
        ),
        (lambda A: te.extern((4,), [A], lambda ins, outs: None), "instead of a statement or a call", "te/extern"),
        (lambda A: te.extern((4,), [], lambda ins, outs: 0), "cannot infer the type", "te/extern"),
        (lambda A: te.compute((4,), lambda *i: A(*i), varargs_names=["a", "b"]), "2 names for 1 indices", "te/formula"),
        (lambda A: te.extern((4,), [A], lambda ins, outs: 0, in_buffers=[]), "no in_buffers", "te/extern"),
        (lambda A: te.const("x", "float32"), "not a str", "te/constant"),
        (lambda A: te.reduce_axis(None), "the domain of an axis is missing", "te/axis"),
        (lambda A: te.comm_reducer(max, min, name=3), "the name of the reducer", "te/reducer"),
        (lambda A: te.thread_axis((0, 4)), "needs the tag", "te/thread-axis"),
    ],
)
def test_mistakes(attempt, message, code):
    with pytest.raises(tw.ArgumentError, match=message) as error:
        attempt(te.placeholder((4,), name="A"))
    assert error.value.code == code and error.value.hint


def test_in_a_script():
    @T.prim_func
    def formula(A: T.Buffer((4, 6)), D: T.Buffer((4,))):
        k = T.reduce_axis((0, 6))
        B = T.compute((4, 6), lambda i, j: A[i, j] * 2.0)
        T.compute(D.shape, lambda i: T.sum(B[i, k] + T.max(A[i, k], 0), axis=k), out=D)

    @T.prim_func
    def written(A: T.Buffer((4, 6)), D: T.Buffer((4,))):
        B = T.alloc_buffer((4, 6))
        for i, j in T.grid(4, 6):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * 2.0
        for i, k in T.grid(4, 6):
            with T.block("D"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    D[vi] = T.float32(0)
                D[vi] = D[vi] + (B[vi, vk] + T.max(A[vi, vk], 0))

    check_same(formula, written)
    assert [loop.body.body.block.name_hint for loop in formula.body.block.body.seq] == ["B", "D"]


def test_mistakes_in_a_script_are_shown_there():
    with pytest.raises(tw.ScriptError, match="dimensions: 2, not 1") as caught:

        @T.prim_func
        def formula(A: T.Buffer((4, 6))):
            B = T.compute((4, 6), lambda i: A[i, i])
            T.evaluate(B[0, 0])

    assert "B = T.compute" in str(caught.value)


def test_functions_of_expressions():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: te.if_then_else(i < 2, te.exp(A[i]), te.sqrt(A[i])), name="B")
    a = np.arange(4, dtype="float32")
    _, b = run(te.create_prim_func([A, B]), a, np.zeros(4, "float32"))
    np.testing.assert_allclose(b, np.where(np.arange(4) < 2, np.exp(a), np.sqrt(a)), rtol=1e-6)
    C = te.compute((4,), lambda i: te.cbrt(A[i]) + te.expm1(A[i]), name="C")
    _, c = run(te.create_prim_func([A, C]), a, np.zeros(4, "float32"))
    np.testing.assert_allclose(c, np.cbrt(a) + np.expm1(a), rtol=1e-6)
    with pytest.raises(AttributeError, match="'scan'"):
        te.scan


def test_what_works_is_listed_and_documented():
    for name in ("all", "any", "exp", "if_then_else", "floordiv", "sum", "compute", "sigmoid"):
        assert name in dir(te), name
        assert name in te.__all__
        assert getattr(te, name).__doc__, name
    assert not [name for name in te.__all__ if not getattr(te, name).__doc__]
    assert sorted(te.__all__) == dir(te)


def test_all_and_any():
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: te.if_then_else(te.all(i > 1, i < 4, te.any(i < 3, i > 5)), A[i], 0.0), name="B")
    a = np.arange(1, 9, dtype="float32")
    _, b = run(te.create_prim_func([A, B]), a, np.zeros(8, "float32"))
    np.testing.assert_array_equal(b, [0, 0, 3, 0, 0, 0, 0, 0])


def test_formulas_are_compiled_as_they_are():
    A, k = _tensors()
    B = te.compute((4,), lambda i: te.sum(A[i, k], axis=k), name="B")
    a = np.arange(16, dtype="float32").reshape(4, 4)
    for program in (B, [A, B], (A, B)):
        np.testing.assert_array_equal(tw.compile(program)(a), a.sum(axis=1))


def _tensors():
    return te.placeholder((4, 4), name="A"), te.reduce_axis((0, 4), name="k")


@pytest.mark.parametrize(
    ("make", "message", "code"),
    [
        (
            lambda A, k: te.compute((4,), lambda i: te.sum(A[i, k], axis=k) + 1.0),
            "nothing can be computed with it",
            "te/reduction",
        ),
        (
            lambda A, k: te.compute((4,), lambda i: 2 * te.sum(A[i, k], axis=k)),
            "nothing can be computed with it",
            "te/reduction",
        ),
        (
            lambda A, k: te.compute((4,), lambda i: -te.max(A[i, k], axis=k)),
            "nothing can be computed with it",
            "te/reduction",
        ),
        (
            lambda A, k: te.create_prim_func([A, te.compute((4,), lambda i: A[i, k], name="B")]),
            "'k' in the formula of",
            "te/undefined",
        ),
        (
            lambda A, k: te.create_prim_func([A, te.compute((4,), lambda i: te.sum(A[i, k]))]),
            "'k' in the formula of",
            "te/undefined",
        ),
        (lambda A, k: te.create_prim_func(A), "the tensor 'A' alone", "te/parameters"),
        (lambda A, k: te.create_prim_func(3), "a value of type int", "te/parameters"),
        (lambda A, k: A + 1.0, "element by element", "te/whole-tensor"),
        (lambda A, k: te.compute((4,), lambda i: A), "index it", "te/value"),
        (lambda A, k: te.sum(A, axis=k), "index it", "te/value"),
        (lambda A, k: te.exp(A), "takes expressions, not a Tensor", "script/arguments"),
        (lambda A, k: te.placeholder((4,), "foat32"), "did you mean 'float32'", "te/dtype"),
        (lambda A, k: te.var("n", "foat32"), "did you mean 'float32'", "te/dtype"),
        (lambda A, k: te.const(1, "foat32"), "did you mean 'float32'", "te/dtype"),
        (lambda A, k: te.placeholder((None, 4)), "None in a shape", "te/shape"),
        (lambda A, k: te.placeholder(("n", 4)), "type str in a shape", "te/shape"),
        (
            lambda A, k: te.compute((4,), lambda i: "x"),
            "a value of type str where a formula needs an expression",
            "te/value",
        ),
        (lambda A, k: te.compute((4,), 3), "a formula is a function", "te/formula"),
        (
            lambda A, k: te.compute((4,), lambda i, j: A[i, j]),
            "as many indices as its tensor has dimensions: 1, not 2",
            "te/formula",
        ),
        (lambda A, k: te.program_of(A), "'A' is an input: nothing computes it", "te/parameters"),
        (lambda A, k: te.all(), "needs a condition", "te/no-condition"),
        (lambda A, k: te.comm_reducer(3, 4), "made of two functions", "te/reducer"),
        (lambda A, k: te.extern(3, 4, 5), "takes a shape, a list of tensors", "te/extern"),
        (lambda A, k: te.compute((4,), lambda i: A[i, 0], attrs=[1]), "compute cannot take", "arguments/types"),
    ],
)
def test_mistakes_are_explained(make, message, code):
    with pytest.raises(tw.Error, match=message) as error:
        make(*_tensors())
    assert error.value.code == code and error.value.hint


@pytest.mark.parametrize("function", [math.sqrt, np.exp, float])
def test_functions_of_numbers_are_told_from_those_of_expressions(function):
    A = te.placeholder((4,), "float32", name="A")
    with pytest.raises(tw.ArgumentError, match=r"te\.sqrt, te\.exp and the others"):
        te.compute((4,), lambda i: function(A[i]))


@pytest.mark.parametrize(
    ("value", "dtype"), [(300, "int8"), (-1, "uint8"), (2**64, "uint64"), (2**31, "int32"), (math.nan, "int32")]
)
def test_constants_that_their_type_does_not_hold(value, dtype):
    with pytest.raises(tw.ArgumentError, match=rf"{value} is no {dtype}\n  hint: these are from") as error:
        te.const(value, dtype)
    assert error.value.code == "te/constant"


@pytest.mark.parametrize(
    ("number", "dtype"), [(3, "int32"), (3000000000, "int64"), (2**63, "uint64"), (0.5, "float32"), (True, "bool")]
)
def test_a_number_alone_has_the_first_type_that_holds_it(number, dtype):
    made = te.compute((2,), lambda i: number)
    assert made.dtype == dtype
    assert tw.compile([made])().tolist() == [number] * 2
    with pytest.raises(tw.Error, match=r"ir/literal.*beyond the range of float32"):
        te.compute((2,), lambda i: 1e300)


@pytest.mark.parametrize("reduce", [te.sum, te.prod, tvm.te.sum, tvm.te.prod])
def test_arithmetic_reductions_of_bools_are_refused(reduce):
    flags, k = te.placeholder((4,), "bool", "flags"), te.reduce_axis((0, 4), "k")
    with pytest.raises(tw.ArgumentError, match=r"modulo 2\n  hint: .*astype\(\"int32\"\)") as error:
        te.compute((1,), lambda i: reduce(flags[k], axis=k))
    assert error.value.code == "te/bool-reduction"
    numbers = np.array([True, True, False, True])
    count = te.compute((1,), lambda i: te.sum(flags[k].astype("int32"), axis=k))
    assert tw.compile([flags, count])(numbers).tolist() == [numbers.sum()]
    some = te.compute((1,), lambda i: te.max(flags[k], axis=k))
    every = te.compute((1,), lambda i: te.min(flags[k], axis=k))
    found = tw.compile([flags, some, every])(numbers)
    assert [array.tolist() for array in found] == [[numbers.any()], [numbers.all()]]


def test_formulas_that_are_no_formulas():
    A = te.placeholder((8, 4), "float32", name="A")
    k = te.reduce_axis((0, 4), "k")
    with pytest.raises(tw.ArgumentError, match="an axis stands twice"):
        te.compute((8,), lambda i: te.sum(A[i, k], axis=[k, k]))
    with pytest.raises(tw.Error, match="ir/literal"):
        te.compute((8,), lambda i: 2**70)
    pairs = te.comm_reducer(lambda x, y: (x[0] + y[0], x[1] + y[1]), lambda a, b: (te.const(0, a), te.const(0, b)))
    with pytest.raises(tw.ArgumentError, match=r"(?s)'reduce' does not combine two values.*a tuple of two"):
        te.compute((8,), lambda i: pairs(A[i, k], axis=k))


@pytest.mark.parametrize("shape", [(-3,), (4, -1), -2, (np.int64(-5), 4), (ir.const(-3), 4), (T.max(-7, -3),)])
def test_negative_extents_are_refused(shape):
    for make in (
        lambda: te.compute(shape, lambda *i: te.const(1.0, "float32")),
        lambda: te.placeholder(shape),
        lambda: te.extern(shape, [], lambda ins, outs: None, dtype="float32"),
        lambda: te.extern(
            [[4], list(shape) if isinstance(shape, tuple) else [shape]], [], lambda ins, outs: None, dtype="float32"
        ),
    ):
        with pytest.raises(tw.ArgumentError, match=r"the extent of dimension [01] is -") as error:
            make()
        assert "hint: an extent is at least 0" in str(error.value)


def test_an_axis_is_a_value_of_a_reducer():
    """argmax of (k, A[i, k]), a sum over k: the index itself is what is combined."""
    A = te.placeholder((4, 5), name="A")
    k = te.reduce_axis((2, 5), name="k")
    argmax = te.comm_reducer(
        lambda x, y: (
            te.if_then_else(x[1] >= y[1], x[0], y[0]),
            te.if_then_else(x[1] >= y[1], x[1], y[1]),
        ),
        lambda index, value: (te.const(-1, index), te.min_value(value)),
    )
    data = np.random.default_rng(0).permutation(20).reshape(4, 5).astype("float32")
    at = te.compute((4,), lambda i: argmax((k, A[i, k]), axis=k), name="at")
    found = tw.compile(te.create_prim_func([A, *at]))(data)
    assert found[0].tolist() == (data[:, 2:].argmax(1) + 2).tolist()
    own = te.comm_reducer(lambda x, y: x + y, lambda dtype: te.const(0, dtype))
    for formula, want in [
        (lambda i: te.sum(k, axis=k), [2 + 3 + 4] * 4),
        (lambda i: te.max(k, axis=[k]), [4] * 4),
        (lambda i: own(k, axis=k, where=k > 2), [3 + 4] * 4),
        (lambda i: te.sum(own(k, i), axis=k), [9 + 3 * i for i in range(4)]),
    ]:
        assert tw.compile(te.create_prim_func([te.compute((4,), formula)]))().tolist() == want


def test_formulas_have_the_functions_of_numbers():
    """By the table of intrinsics: a new row needs no other list."""
    of_numbers = {name for name, _, _, typing, *_ in script.intrinsics() if typing in ("kSameFloat", "kInteger")}
    assert of_numbers <= set(te.__all__) and {"fma", "fabs", "shift_left", "isnan"} <= set(te.__all__)
    assert all(getattr(te, name) is getattr(T, name) for name in of_numbers)


def test_functions_that_had_been_forgotten():
    a, b = (te.placeholder((16,), dtype, name=name) for name, dtype in (("A", "float64"), ("B", "int32")))
    c = te.compute((16,), lambda i: te.fma(a[i], a[i], te.fabs(a[i])), name="C")
    d = te.compute((16,), lambda i: te.bitwise_xor(te.shift_left(b[i], 3), te.bitwise_not(b[i])), name="D")
    x, y = np.random.default_rng(0).normal(size=16), np.arange(-8, 8, dtype="int32")
    *_, p, q = run(te.create_prim_func([a, b, c, d]), x, y, np.zeros(16), np.zeros(16, "int32"))
    np.testing.assert_allclose(p, x * x + abs(x), rtol=1e-15)
    np.testing.assert_array_equal(q, (y << 3) ^ ~y)


@pytest.mark.parametrize(
    "formula",
    [
        lambda A, i, j: 1.0 if A[i, j] == 1 else 0.0,
        lambda A, i, j: 1.0 if A[i, j] != A[j, i] else 0.0,
        lambda A, i, j: (lambda x: 0.0 if x != x else x)(A[i, j]),
        lambda A, i, j: 1.0 if i == j else 0.0,
        lambda A, i, j: 1.0 if i == 0 else 0.0,
        lambda A, i, j: A[i, j] if i + j != 3 else 0.0,
        lambda A, i, j: A[i, j] if A[i, j] in (1.0, 2.0) else 0.0,
        lambda A, i, j: A[i, j] if i not in (0, 3) else 0.0,
    ],
)
def test_what_varies_has_no_truth_value(formula):
    """Python would choose one value for all elements."""
    A = te.placeholder((4, 4), name="A")
    with pytest.raises(tw.ArgumentError, match="no truth value"):
        te.compute((4, 4), lambda i, j: formula(A, i, j))


def test_sizes_and_indices_themselves_can_be_asked_about():
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n, 1), name="A")

    def broadcast(*index):
        first, *_ = index
        assert first in index and first == index[0]
        return A[tuple(T.int32(0) if size == 1 else i for size, i in zip(A.shape, index, strict=True))]

    x = np.arange(3, dtype="float32").reshape(3, 1)
    B = te.compute((n, m), broadcast, name="B")
    func = te.create_prim_func([A, B])
    np.testing.assert_array_equal(run(func, x, np.zeros((3, 2), "float32"))[1], np.repeat(x, 2, 1))
    i = ir.Var("i", "int32")
    assert i != 0 and i not in (n, m) and i in (n, i)


def test_extents_in_memory_of_a_program_that_is_there_are_compared() -> None:
    """Schedules look for loops of a certain length; only a function that is being evaluated refuses to answer."""

    @T.prim_func
    def rows(P: T.Buffer((4,), "int32"), Y: T.Buffer((8,), "float32")):
        for i in range(3):
            for k in range(P[i], P[i + 1]):
                with T.block("y"):
                    v = T.axis.spatial(8, k)
                    Y[v] = Y[v] + T.float32(1)

    schedule = tw.Schedule(rows)
    extents = [schedule.get(loop).extent for loop in schedule.get_loops("y")]
    assert [bool(extent == 3) for extent in extents] == [True, False]
    assert [bool(extent != 3) for extent in extents] == [False, True]
    _core.leave_formula()  # which nothing has entered
