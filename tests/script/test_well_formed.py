"""A parsed program is verified as a whole; what is wrong is shown where the user wrote it."""

import pytest

import tilewright as tw
from tilewright.script import ir as I
from tilewright.script import tir as T

LOST = """
@T.prim_func{arguments}
def f(A: T.Buffer((4,), "float32")):
    B = T.Buffer((4,), "float32")
    B[0] = A[0]
"""


def test_what_no_single_node_shows_is_found() -> None:
    with pytest.raises(tw.ScriptError, match="buffer 'B' is used where nothing declares it") as caught:
        tw.script.from_source(LOST.format(arguments=""))
    assert caught.value.code == "verify/buffer"
    assert caught.value.line == 5
    assert "B[0] = A[0]" in str(caught.value) and "^^^" in str(caught.value)


def test_it_can_be_left_away() -> None:
    tw.script.from_source(LOST.format(arguments=""), check_well_formed=False)
    tw.script.from_source(LOST.format(arguments="(check_well_formed=False)"))
    module = LOST.format(arguments="").replace("\n", "\n    ")
    text = "@I.ir_module{arguments}\nclass M:" + module
    with pytest.raises(tw.ScriptError, match="nothing declares"):
        tw.script.from_source(text.format(arguments=""))
    tw.script.from_source(text.format(arguments="(check_well_formed=False)"))
    tw.script.from_source(text.format(arguments="").replace("T.prim_func", "T.prim_func(check_well_formed=False)"))


def test_decorators() -> None:
    with pytest.raises(tw.ScriptError, match="nothing declares"):

        @T.prim_func
        def strict(A: T.Buffer((4,), "float32")):
            B = T.Buffer((4,), "float32")
            B[0] = A[0]

    @T.prim_func(check_well_formed=False)
    def lenient(A: T.Buffer((4,), "float32")):
        B = T.Buffer((4,), "float32")
        B[0] = A[0]

    @I.ir_module(check_well_formed=False)
    class Lenient:
        @T.prim_func
        def main(A: T.Buffer((4,), "float32")):
            B = T.Buffer((4,), "float32")
            B[0] = A[0]

    assert lenient.script() and Lenient.functions["main"].script()


@T.macro
def store_to_nothing(A):
    C = T.Buffer((4,), "float32")
    C[0] = A[0]


def test_inside_a_macro_both_places_are_shown() -> None:
    with pytest.raises(tw.ScriptError, match="nothing declares") as caught:

        @T.prim_func
        def f(A: T.Buffer((4,), "float32")):
            store_to_nothing(A)

    assert "C[0] = A[0]" in str(caught.value)
    assert "store_to_nothing(A)" in str(caught.value)


def test_regions_that_do_not_cover_are_no_matter_of_the_language() -> None:
    @T.prim_func
    def f(A: T.Buffer((4, 4), "float32")):
        for i in range(4):
            with T.block("b"):
                vi = T.axis.spatial(4, i)
                T.reads()
                T.writes(A[vi, 0])
                A[vi, 1] = 1.0

    with pytest.raises(tw.ScriptError, match="verify/writes"):
        tw.ir.verify(f)
