"""Functions, their parameters, and what a script gives."""

import pytest

import tilewright as tw
from tilewright.script import evaluate
from tilewright.script import tir as T


@T.prim_func
def matmul(A: T.Buffer((16, 32), "float32"), B: T.Buffer((32, 8), "float32"), C: T.Buffer((16, 8), "float32")):
    for i, j, k in T.grid(16, 8, 32):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = 0.0
            C[vi, vj] += A[vi, vk] * B[vk, vj]


def test_matmul_has_the_expected_structure() -> None:
    assert matmul.attrs == {"global_symbol": "matmul"}
    root = matmul.body.block
    assert root.name_hint == "root" and root.iter_vars == ()
    loops = root.body
    block = loops.body.body.body.block
    assert [loops.extent.value, loops.body.extent.value, loops.body.body.extent.value] == [16, 8, 32]
    assert [axis.var.name_hint for axis in block.iter_vars] == ["vi", "vj", "vk"]
    assert [axis.iter_type for axis in block.iter_vars] == [
        tw.ir.IterType.DATA_PAR,
        tw.ir.IterType.DATA_PAR,
        tw.ir.IterType.COMM_REDUCE,
    ]
    assert [region.buffer.name for region in block.reads] == ["A", "B"]
    assert [region.buffer.name for region in block.writes] == ["C"]
    assert isinstance(block.init, tw.ir.BufferStore)


def test_calling_a_program_says_compile_it_first() -> None:
    with pytest.raises(tw.ArgumentError, match="compile it first"):
        matmul(1, 2, 3)


def test_expressions_mean_what_they_mean_in_a_program() -> None:
    b = tw.ir.Var("b", "bool")
    assert str(evaluate("not b and n > 2", {"b": b, "n": tw.ir.Var("n", "int32")})) == "not b and n > 2"
    assert evaluate("[f(*x, k=2) for x in y]", {"f": lambda a, k: a * k, "y": [[1], [2]]}) == [2, 4]
    for text, code in {"1 +": "script/syntax", "a = 1": "script/expression", "z": "script/unknown-name"}.items():
        with pytest.raises(tw.ScriptError) as info:
            evaluate(text)
        assert info.value.code == code


def test_names_in_place_of_strides_are_variables() -> None:
    buffer = T.Buffer((T.int64(4),), strides=["s"])
    assert buffer.strides[0].name == "s" and buffer.strides[0].dtype == "int64"
    with pytest.raises(tw.Error, match="the offset of 'buffer' is handle"):
        T.Buffer((4,), elem_offset="o")


def test_the_address_of_a_buffer_is_that_of_its_first_element() -> None:
    @T.prim_func
    def main(A: T.Buffer((4, 4), "float32")):
        T.evaluate(T.address_of(A))
        T.evaluate(T.address_of(A[1, 2], dtype="handle"))

    assert [str(s).splitlines()[-1] for s in main.body] == ["T.address_of(A[0, 0])", "T.address_of(A[1, 2])"]
