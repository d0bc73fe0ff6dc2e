"""The verifier from Python: what its errors show."""

import pytest

import tilewright as tw
from tilewright import ir
from tilewright.script import tir as T


def program():
    @T.prim_func
    def copy(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi]

    return copy


def test_well_formed_programs_pass():
    ir.verify(program())
    ir.verify(ir.as_module(program()), "scheduled")


def test_errors_show_the_place_and_the_users_line():
    def break_reads(node):
        if isinstance(node, ir.Block) and node.name_hint == "B":
            fields = {name: getattr(node, name) for name in node.__match_args__}
            return ir.Block(**fields | {"reads": []})
        return None

    with pytest.raises(tw.ScriptError) as info:
        ir.verify(ir.rewrite(program(), break_reads))
    assert info.value.code == "verify/reads"
    text = str(info.value)
    assert "block 'B' reads buffer 'A', which its regions do not name" in text
    assert "B[vi] = A[vi]" in text and "^^^^^" in text and __file__ in text and "hint: correct T.reads" in text


def test_stages_have_names():
    with pytest.raises(tw.ScriptError, match="verify/stage") as info:
        ir.verify(program(), "lowered")
    assert "a BlockRealize in a lowered program" in str(info.value)
    with pytest.raises(tw.ArgumentError) as info:
        ir.verify(program(), "cooked")
    assert info.value.code == "verify/stage-name"
