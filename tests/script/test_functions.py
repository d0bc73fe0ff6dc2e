"""Functions, their parameters, and what a script gives."""

import pytest

import tilewright as tw
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
