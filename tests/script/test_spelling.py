"""What scripts may also write, and how it prints: return, dtypes by keyword, remainders, casts of stores."""

import pytest

from tilewright import ir
from tilewright.script import from_source, ir_builder
from tilewright.script import tir as T


def lines_of(body: str) -> list[str]:
    """The printed statements of a body with a buffer A and an integer n, after a round trip."""
    text = "@T.prim_func\ndef f(A: T.Buffer((8,)), n: T.int32):\n" + "".join(
        f"    {line}\n" for line in body.split("\n")
    )
    func = from_source(text, check_well_formed=False)
    printed = func.script()
    ir.assert_structural_equal(from_source(printed, check_well_formed=False), func, map_free_vars=True)
    return [line.strip() for line in printed.splitlines()[4:]]


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        ("p = T.allocate([4], 'float32', '')\nT.evaluate(p)", None),
        ("T.ret(n)", ["return n"]),
        ("return n + 1", ["return n + 1"]),
        ("T.evaluate(T.truncmod(3, 4))", ["T.evaluate(T.truncmod(3, 4))"]),
        ("T.evaluate(T.truncmod(n, 4))", ["T.evaluate(T.truncmod(n, 4))"]),
        ("A[0] = T.fabs(A[1], dtype='float32')", ["A[0] = T.fabs(A[1])"]),
        ("T.tvm_throw_last_error(dtype='handle')", ["T.tvm_throw_last_error()"]),
        ("A[0] = T.if_then_else(n < 2, A[1], A[2], dtype='float32')", ["A[0] = T.if_then_else(n < 2, A[1], A[2])"]),
        ("A[0] = T.reinterpret(n, dtype='float32')", ['A[0] = T.reinterpret("float32", n)']),
        ("A[0] = T.exp(0)", ["A[0] = T.exp(T.float32(0.0))"]),
        ("T.evaluate(T.popcount(0))", ["T.popcount(0)"]),
        ("T.call_extern('f', A.data, dtype='')", ['T.call_extern("void", "f", A.data)']),
        ("A[0 : T.vscale() * 4] = T.Broadcast(1.0, T.vscale() * 4)", None),
        ("p = T.ptr('int8', 'shared')\nT.evaluate(p)", ['p = T.handle("int8", "shared")', "T.evaluate(p)"]),
        ("x = T.StringImm('text')\nT.evaluate(x)", ['x: T.handle = "text"', "T.evaluate(x)"]),
        ("T.attr([A], 'key', 1)\nT.evaluate(0)", ['T.attr([A], "key", 1)', "T.evaluate(0)"]),
        ("B = T.alloc_buffer((8,), 'bool')\nB[0:4] = A[0:4] < 1.0", None),
    ],
)
def test_spellings(body, lines):
    printed = lines_of(body)
    assert lines is None or printed == lines


def test_slices_of_scalable_vectors_print_as_slices():
    (line,) = lines_of("A[0 : T.vscale() * 4] = A.vload([T.Ramp(0, 1, T.vscale() * 4)], dtype='float32xvscalex4')")
    assert line == "A[0:T.vscale() * 4] = A[0:T.vscale() * 4]"


def test_vectors_of_bool_are_spelled_as_in_tvm():
    (line,) = lines_of("A.vstore([T.Ramp(0, 1, 4)], A[0:4], predicate=T.get_active_lane_mask('boolx4', n, 3))")
    assert 'T.get_active_lane_mask("uint1x4", n, 3)' in line


def test_a_fraction_that_is_lost_warns():
    with pytest.warns(RuntimeWarning, match="'B', which holds int32: it is cut off"):
        lines = lines_of("B = T.alloc_buffer((8,), 'int32')\nB[0] = A[0]")
    assert lines[-1] == 'B[0] = T.Cast("int32", A[0])'


def test_the_empty_scope_is_global():
    assert "scope" not in lines_of("B = T.alloc_buffer((8,), scope='')\nB[0] = A[0]")[0]
    assert lines_of("p = T.allocate([8], 'float32', '')\nT.evaluate(p)") == lines_of(
        "p = T.allocate([8], 'float32', 'global')\nT.evaluate(p)"
    )


def test_a_grid_of_one_loop_gives_one_variable():
    assert lines_of("for i in T.grid(8):\n    A[i + 1] = A[i]") == lines_of("for i in range(8):\n    A[i + 1] = A[i]")
    with ir_builder.IRBuilder() as builder, T.grid(4) as i:
        T.evaluate(i + 1)
    assert builder.get().script().startswith("for v in range(4):")


def test_names_for_many():
    with ir_builder.IRBuilder() as builder, T.grid(4, 5) as (i, j):
        assert ir_builder.IRBuilder.name_many(["i", "j"], [i, j]) == [i, j]
        T.evaluate(i + j)
    assert builder.get().script().startswith("for i, j in T.grid(4, 5):")
    with pytest.raises(ValueError, match="as many names"):
        ir_builder.IRBuilder.name_many(["i"], [])
    with pytest.raises(ValueError, match="no IRBuilder is entered"):
        ir_builder.IRBuilder.current()


def test_values_of_a_meta_variable():
    first, second = T.meta_var([3, 4])
    assert (first.value, second.value) == (3, 4)


def test_statements_of_a_sequence():
    func = from_source("@T.prim_func\ndef f():\n    T.evaluate(1)\n    T.evaluate(2)")
    assert len(func.body) == 2 and func.body[1].value.value == 2
