"""The Python view of IR nodes: construction, attributes, operators, match, traversal, errors."""

import pickle

import numpy as np
import pytest

import tilewright as tw
from tilewright import arith, ir
from tilewright.script import tir as T
from tilewright.script.core import script


def scale_and_shift():
    x = ir.Var("x", "int32")
    return x, x * 4 + 1


def test_fields_are_attributes_and_patterns():
    x, e = scale_and_shift()
    match e:
        case ir.Add(ir.Mul(v, factor), shift):
            assert v.same_as(x) and int(factor) == 4 and int(shift) == 1
        case _:
            pytest.fail("no match")
    assert e.__match_args__ == ("a", "b")
    assert e.a is e.a and e.dtype == "int32"


def test_types_and_strings_are_values():
    int32, pointer = ir.PrimType("int32"), ir.PointerType(ir.PrimType("int8"), "shared")
    assert int32 == ir.PrimType("int32") != ir.PrimType("int64")
    assert pointer == ir.PointerType(ir.PrimType("int8"), "shared") != ir.PointerType(ir.PrimType("int8"), "global")
    assert ir.TupleType([int32, pointer]) == ir.TupleType([int32, pointer]) != ir.TupleType([int32])
    assert len({int32, ir.PrimType("int32"), pointer}) == 2
    assert int32 != "int32" and int32 != None and int32 != pointer  # noqa: E711
    text = ir.StringImm("a")
    assert text == "a" and text == ir.StringImm("a") and text != "b" and text != ir.StringImm("b") and text != 1
    assert {text: 1}[ir.StringImm("a")] == 1


def test_nodes_are_immutable():
    _, e = scale_and_shift()
    with pytest.raises(AttributeError):
        e.a = e.b


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (3, "int32"),
        (2**40, "int64"),
        (True, "bool"),
        (1.5, "float32"),
        (np.int8(3), "int8"),
        (np.float16(1), "float16"),
        (2**63, "uint64"),
    ],
)
def test_python_numbers_become_constants(value, dtype):
    constant = ir.const(value)
    assert constant.dtype == dtype and (float(constant) if "float" in dtype else int(constant)) == value


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_a_constant_beyond_its_type_is_refused(dtype):
    first, last = np.iinfo(dtype).min, np.iinfo(dtype).max
    for value in (int(first), int(last)):
        assert int(ir.const(value, dtype)) == value
    for value in (int(first) - 1, int(last) + 1, 2**70):
        with pytest.raises(tw.ScriptError, match=f"{value} is no {dtype}") as caught:
            ir.const(value, dtype)
        assert f"from {first} to {last}" in str(caught.value)


def test_equality_builds_a_comparison_and_lists_work():
    x, y = ir.Var("x", "int32"), ir.Var("y", "int32")
    assert isinstance(x == y, ir.EQ)
    assert x in [y, x] and x not in [y]
    assert {x: 1}[x] == 1


def test_truth_of_an_expression_is_an_error():
    x = ir.Var("x", "int32")
    with pytest.raises(tw.ArgumentError, match="no truth value") as caught:
        assert x < 3
    assert caught.value.code == "ir/truth"


def test_operands_must_fit():
    with pytest.raises(tw.ScriptError, match="Add of int32 and float32"):
        ir.Add(ir.Var("x", "int32"), 1.5)
    with pytest.raises(tw.ScriptError, match="needs a value for 'body'"):
        ir.For(ir.Var("i", "int32"), 0, 4)
    with pytest.raises(TypeError):
        ir.Var("x", "int32") + object()


def test_a_function_returns_nothing_unless_a_type_is_given():
    for given in ({}, {"ret_type": None}):
        func = ir.PrimFunc(body=ir.Evaluate(0), **given)
        assert isinstance(func.ret_type, ir.TupleType) and not list(func.ret_type.fields)
    assert str(ir.PrimFunc(body=ir.Evaluate(0), ret_type="int32").ret_type) != str(func.ret_type)
    with pytest.raises(tw.ScriptError, match="needs a value for 'body'"):
        ir.PrimFunc([])


def test_calling_a_program_says_compile_it_first():
    func = ir.PrimFunc([], {}, ir.TupleType(), {"global_symbol": "f"}, ir.Evaluate(0))
    with pytest.raises(tw.ArgumentError, match=r"compile it first: kernel = tw.compile\(f\)"):
        func()


def test_json_and_pickle_round_trip():
    _, e = scale_and_shift()
    assert ir.structural_equal(ir.load_json(ir.save_json(e)), e, map_free_vars=True)
    assert ir.structural_hash(pickle.loads(pickle.dumps(e))) == ir.structural_hash(e)
    with pytest.raises(tw.ScriptError, match="json"):
        ir.load_json("not json")


def test_visit_and_rewrite():
    x, e = scale_and_shift()
    kinds = []
    ir.visit(e, lambda node: kinds.append(type(node).__name__))
    assert kinds[:3] == ["Add", "Mul", "Var"]
    doubled = ir.rewrite(e, lambda node: ir.const(2 * int(node)) if isinstance(node, ir.IntImm) else None)
    assert ir.structural_equal(doubled, x * 8 + 2)
    assert ir.rewrite(e, lambda node: None) is e
    with pytest.raises(tw.ArgumentError, match="same sort"):
        ir.rewrite(e, lambda node: ir.Evaluate(0) if isinstance(node, ir.IntImm) else None)
    with pytest.raises(ZeroDivisionError):
        ir.visit(e, lambda node: 1 // 0)


def test_rewrite_replaces_a_buffer_everywhere():
    a = ir.decl_buffer([4], "float32", "A")
    s = ir.BufferStore(a, ir.BufferLoad(a, [0]), [1])
    after = ir.rewrite(
        s, lambda node: ir.Buffer(node.data, node.dtype, [8], name="A") if isinstance(node, ir.Buffer) else None
    )
    assert after.buffer.same_as(after.value.buffer) and int(after.buffer.shape[0]) == 8


def test_annotations_are_python_values():
    loop = ir.For(ir.Var("i", "int32"), 0, 4, 0, None, {"a": 1, "b": [1, "s"], "c": {"d": True}}, ir.Evaluate(0))
    assert loop.annotations == {"a": 1, "b": [1, "s"], "c": {"d": True}}
    assert loop.kind == ir.ForKind.SERIAL and loop.loop_var.name_hint == "i"


@pytest.mark.deep
def test_a_deep_program_is_refused_with_a_message():
    e, y = ir.Var("x", "int32"), ir.Var("y", "int32")
    with pytest.raises(tw.ScriptError, match="nests deeper"):
        for _ in range(20000):
            e = ir.Add(e, y)
    with pytest.raises(tw.ArgumentError, match="too deep"):
        ir.rewrite(e, lambda node: None)


def test_ends_of_types_are_finite_numbers():
    for dtype in ("float16", "float32", "float64"):
        assert T.max_value(dtype).value == np.finfo(dtype).max and T.min_value(dtype).value == np.finfo(dtype).min
    assert (T.min_value("int8").value, T.max_value("uint8").value, T.max_value("bfloat16").dtype) == (
        -128,
        255,
        "bfloat16",
    )


def test_alignments_beyond_those_of_any_memory_are_refused():
    for align in (2**31, 2**40, 2**62):
        with pytest.raises(tw.ScriptError, match="ir/alignment"):
            T.Buffer((4,), "float32", align=align)
    assert T.Buffer((4,), "float32", align=2**30).data_alignment == 2**30


def test_nodes_that_describe_no_memory_are_refused():
    wrong = {
        "ir/alignment": lambda: T.Buffer((4,), "float32", align=6),
        "ir/allocation": lambda: ir.Allocate(ir.Var("x", "int32"), "float32", [4], True, ir.Evaluate(0), {}),
        "ir/tensor-data": lambda: ir.TensorData("float32", [4], b"123"),
    }
    for code, build in wrong.items():
        with pytest.raises(tw.ScriptError) as error:
            build()
        assert error.value.code == code


@pytest.mark.parametrize("count", range(5))
def test_calls_with_another_number_of_arguments_are_printed_and_refused(count):
    x = ir.Var("x", "int32")
    for name, arity, *_ in script.intrinsics():
        for arguments in ([x] * count, [1, 2, 3, 4][:count]):
            call = ir.Call("int32", f"tir.{name}", arguments)
            assert str(ir.load_json(ir.save_json(call))) == str(call)
            arith.Analyzer().simplify(call + 1)
            arith.Analyzer().const_int_bound(call)
            arith.Analyzer().can_prove(ir.EQ(call, call + 1))
            if arity not in (-1, count):
                with pytest.raises(tw.ScriptError, match=f"T.{name} takes {arity} arguments, not {count}"):
                    ir.verify(ir.PrimFunc([x], {}, None, {}, ir.Evaluate(call)), "scheduled")


def test_names_of_types_that_are_no_text():
    """Halves of characters (lone surrogates) have no bytes."""
    for build in (ir.PrimType, lambda name: ir.PointerType(name, "global"), lambda name: ir.Var("x", name)):
        with pytest.raises(tw.ArgumentError):
            build("\ud800")


@pytest.mark.parametrize("number", [2**63 - 1, 2**63, 2**64 - 1])
def test_large_unsigned_constants_have_their_value(number):
    made = ir.IntImm("uint64", number)
    assert made.value == number and ir.structural_equal(ir.IntImm(made.dtype, made.value), made)
    assert ir.structural_equal(made, T.uint64(number)) and ir.structural_equal(made, T.IntImm("uint64", number))
    match made:
        case ir.IntImm("uint64", value):
            assert value == number


@pytest.mark.parametrize(("dtype", "number"), [("int64", 2**63), ("uint64", -1), ("uint32", 2**63), ("bool", 2**63)])
def test_constants_beyond_their_type_are_refused(dtype, number):
    with pytest.raises(tw.ScriptError, match=f"{number} is no {dtype}"):
        ir.IntImm(dtype, number)
