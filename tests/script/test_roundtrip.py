"""Print, then parse, is the identity: on random programs over all kinds of nodes, with and without sugar."""

import pytest
from random_programs import program

import tilewright as tw
from tilewright import ir


def check(func, **options):
    text = func.script(show_meta=True, **options)
    try:
        again = tw.script.from_source(text)
        ir.assert_structural_equal(again, func)
    except tw.Error as error:
        pytest.fail(f"{error}\n\n{text}")
    # Names are stable too. A Let in the bound of a region prints twice, with a second variable.
    if "T.Let(" not in text:
        assert again.script(show_meta=True, **options) == text


@pytest.mark.parametrize("seed", range(200))
def test_random_programs(seed):
    func = program(seed)
    check(func)
    check(func, syntax_sugar=False)


def test_metadata_holds_what_does_not_fit():
    data = ir.TensorData("float32", [300], bytes(range(240)) * 5)
    pointer = ir.decl_buffer([300], name="K").data
    body = ir.AllocateConst(pointer, data, "float32", [300], ir.Evaluate(ir.StringImm("two\nlines")), {})
    func = ir.PrimFunc([], {}, ir.TupleType([]), {"global_symbol": "main"}, body)
    hidden = func.script()
    assert 'metadata["TensorData"][0]' in hidden and "# Metadata omitted. Use show_meta=True" in hidden
    check(func)
    with pytest.raises(tw.ScriptError, match="'metadata' is not defined") as caught:
        tw.script.from_source(hidden)
    assert "script(show_meta=True)" in caught.value.hint
