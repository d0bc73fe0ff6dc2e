"""Every mistake in a script has a code, a place and, where it helps, a hint.

The place that an error must point at stands between « and ».
"""

import traceback

import numpy as np
import numpy.typing
import pytest
from marked_errors import FUNCTION, check, check_body, error_of

import tilewright as tw
from tilewright.script import from_source
from tilewright.script import ir as I
from tilewright.script import tir as T

# ---- names and Python


def test_unknown_name() -> None:
    check_body("script/unknown-name", "A[0] = «B»[0]", "'B' is not defined")
    check_body("script/unknown-name", "A[0] = T.exp(«nn»)", hint="did you mean 'n'?")


def test_unknown_name_is_reported_once() -> None:
    error = check_body("script/unknown-name", "A[0] = «x»\nA[1] = x + 1\nA[2] = x")
    assert error.errors == (error,)


def test_a_name_ends_with_its_block() -> None:
    check_body("script/unknown-name", "for i in range(4):\n    A[i] = 0.0\nA[«i»] = 1.0")


def test_a_name_that_ended_says_what_to_write_instead() -> None:
    branches = "if n > 3:\n    y = A[0] * 2.0\nelse:\n    y = A[1]\nA[2] = «y»"
    error = check_body("script/unknown-name", branches, hint="with the branch that binds it: write y = T.if_then_else(")
    assert 'y = T.alloc_buffer((1,), "float32", scope="local")' in error.hint
    check_body(
        "script/unknown-name", "for i in range(4):\n    y = i + 1\nA[«y»] = 0.0", hint="the loop that binds it: keep"
    )
    check_body("script/unknown-name", "while n > 3:\n    y = n + 1\nA[«y»] = 0.0", hint='"int32"')
    check_body(
        "script/unknown-name",
        "for i in range(4):\n    B = T.alloc_buffer((4,))\n«B»[0] = 0.0",
        hint="make the buffer in front of that",
    )
    # What ended in another function, or in a comprehension of Python, says nothing here.
    other = (
        "    @T.prim_func\n    def f(A: T.Buffer((4,), 'float32')):\n        for i in range(4):\n            y = A[i]\n"
    )
    here = "    @T.prim_func\n    def g(A: T.Buffer((4,), 'float32')):\n        A[0] = «y»\n"
    assert not check("script/unknown-name", f"@I.ir_module\nclass M:\n{other}{here}", I=I).hint
    assert not check_body("script/unknown-name", "x = [y for y in range(3)]\nA[0] = «y»").hint


def test_unknown_attribute() -> None:
    check_body("script/unknown-attribute", "for i in «T.gird»(4):\n    A[i] = 0.0", "'T' has no 'gird'", "'grid'")
    check_body("script/unknown-attribute", "A[0] = «A.shap»[0]", "'A' has no 'shap'", "'shape'")


def test_a_name_that_begins_like_it() -> None:
    check_body("script/unknown-attribute", "A[0] = «T.inf»('float32')", hint="'infinity'")


def test_numbers_of_the_running_program() -> None:
    marked = "A[0] = T.float32(len([x for x in «range(n)»]))"
    check_body("script/type", marked, "cannot be interpreted as an integer", "known when the program runs")
    error = check_body("script/type", "A[0] = «T.exp(A[0], A[0], 2)»")
    assert "takes numbers" not in str(error)


def test_wrong_arguments() -> None:
    check_body(
        "script/arguments", "for i in «T.parallel('a', 'b', 'c', 'd')»:\n    A[i] = 0.0", "T.parallel cannot take"
    )


def test_type_error_of_an_operator() -> None:
    check_body("script/type", "A[0] = «A + 1»", "unsupported operand")


def test_error_in_a_helper_function_names_its_place() -> None:
    def helper(x: object) -> None:
        raise ValueError("no good")

    error = error_of(FUNCTION + "    helper(n)\n", helper=helper)
    assert (error.code, error.message) == ("script/python-error", "ValueError: no good")
    assert error.file == __file__ and error.line == helper.__code__.co_firstlineno + 1
    assert 'raise ValueError("no good")\n' in str(error) and "called from --> <script" in str(error)
    assert "4 |     helper(n)" in str(error)


def test_error_in_a_nested_function_names_its_place() -> None:
    error = check_body(
        "script/python-error", "def g(i):\n    return A[i] + «zz»\nA[0] = g(n)", "name 'zz' is not defined"
    )
    assert "called from --> <script" in str(error) and "A[0] = g(n)" in str(error)
    check_body("script/unknown-attribute", "def g(i):\n    return «i.foo»\nA[0] = g(n)", "type Var has no 'foo'")
    check_body("ir/index-count", "def g(i):\n    x = 'ä'; return «A[i, i]»\nA[0] = g(n)")


def test_error_in_a_lambda_names_its_place() -> None:
    check_body("script/unknown-name", "A[0] = (lambda i: A[i] + «q»)(n)", "'q' is not defined")


def test_an_error_of_a_macro_that_is_called_twice_is_reported_once() -> None:
    text = "@T.macro\ndef m(A):\n    A[0] = «q»\n" + FUNCTION + "    m(A)\n    m(A)\n"
    check("script/unknown-name", text, "'q' is not defined")


def test_a_failed_name_of_a_text_is_reported_once() -> None:
    check("script/unknown-name", "x = «undefined»\n" + FUNCTION + "    A[x] = 1.0\n")


def test_data_types_that_do_not_exist() -> None:
    for call in ("T.alloc_buffer((4,), 'flot32')", "T.Buffer((4,), 'flot32')", "T.alloc_buffer((4,), dtype='flot32')"):
        check_body("script/dtype", f"B = «{call}»", "'flot32' is not a data type", "did you mean 'float32'")
    check_body("script/dtype", "A[0] = «T.Cast('flot32', n)»", hint="'float32'")
    check_body("script/dtype", "A[0] = «T.cast(n, 'flot32')»", hint="'float32'")
    check_body("script/dtype", "«T.call_extern('f', n)»", "'f' is not a data type")
    with pytest.raises(tw.ScriptError, match="'flot32' is not a data type"):
        T.Buffer((4,), "flot32")


def test_unknown_keywords() -> None:
    check_body("script/arguments", "B = «T.alloc_buffer((4,), scop='local')»", "no parameter 'scop'", "'scope'")
    check_body("script/type", "for i in «T.serial(4, annotation={})»:\n    A[i] = 0.0", hint="'annotations'")
    check_body("script/type", "A[0] = «T.abs(A[0], foo=1)»", hint="it takes x, dtype")


def test_functions_of_python_on_expressions() -> None:
    check_body("ir/truth", "A[0] = «max(A[0], A[1])»", hint="use T.max")
    check_body("script/type", "A[0] = «abs(A[1])»", hint="use T.abs")
    check_body("script/type", "A[0] = «A + 1»", hint="index it")
    check_body("script/membership", "if «n in [1, 2]»:\n    A[0] = 0.0", hint="n == 1 or n == 2")


def test_constants_out_of_range() -> None:
    check_body("script/constant", "A[0] = «T.int8(300)»", "300 is no int8", "from -128 to 127")
    check_body("script/constant", "A[0] = «T.uint8(-1)»", "-1 is no uint8", "from 0 to 255")
    check_body("script/constant", "A[0] = «T.float32('abc')»", "'abc' is not a number")
    check_body("script/constant-size", "I = T.alloc_buffer((4,), 'int64')\n«I[0] = 10**30»", "64 bits")


def test_variables_that_cannot_hold_their_value() -> None:
    check_body("builder/let-dtype", "«x: T.int32 = 1.5»", "float32 is bound to a variable of type int32", "T.Cast")
    check_body("builder/let-dtype", "«x: T.int8 = n»", hint='T.Cast("int8", ...)')
    check_body("builder/let-dtype", "«x: T.int8 = 200»")
    from_source(FUNCTION + "    x: T.int64 = n\n    y: T.float32 = 1\n    z: T.int8 = 100\n    A[x] = y + z\n")


def test_names_of_others_are_named() -> None:
    check_body("script/unknown-attribute", "«T.call_kernel»(A)", hint="kernels of other languages")
    check_body("script/unknown-attribute", "«T.Reduce»(A)", hint="T.axis.reduce")
    with pytest.raises(AttributeError, match="ProducerLoad: load from a buffer"):
        T.ProducerLoad


def test_what_is_returned_printed_and_shuffled() -> None:
    check_body("script/return", "«return A»", "not the buffer 'A'")
    check_body("script/print", "«T.print(A)»", "not the buffer 'A'", "A[0:4]")
    check_body("ir/shuffle-index", "A[0] = «T.Shuffle([A[0:4]], [4])»", "element 4 of vectors with 4 elements")
    check_body("ir/not-bool", "A[0] = «T.if_then_else(a, 1.0, 2.0)»", "must be bool, not handle")


def test_values_that_are_returned_have_the_type_of_the_result() -> None:
    check_body("verify/return", "«return A[0]»", "says no type of its result", hint="-> T.float32:")
    check_body("verify/return", "if n > 1:\n    «T.ret(n)»", "a value of type int32")
    for result, value, said in [("int32", "A[0]", "float32"), ("int64", "n", "int32"), ("float64", "A[0]", "float32")]:
        check(
            "verify/return",
            f"@T.prim_func\ndef f(A: T.Buffer((4,), 'float32'), n: T.int32) -> T.{result}:\n    «return {value}»\n",
            f"a value of type {said}, and its result is said to be {result}",
            hint=f'T.Cast("{result}", ...)',
        )
    for result, number in [("float64", 0.1), ("int64", 2**40), ("int64", 1), ("float32", 3), ("uint8", 7)]:
        text = f"@T.prim_func(private=True)\ndef f() -> T.{result}:\n    return {number}\n"
        (value,) = tw.script.from_source(text).body.value.args
        assert value.dtype == result and value.value == number


def test_a_helper_function_that_calls_itself_without_end() -> None:
    text = """
def down(i):
    return down(i + 1)

@T.prim_func
def f(A: T.Buffer((4,), "float32")):
    A[0] = down(0)
"""
    with pytest.raises(tw.ScriptError, match="never stops calling itself") as caught:
        tw.script.from_source(text)
    assert (caught.value.code, caught.value.line) == ("script/too-deep", 7)


def test_unsupported_syntax() -> None:
    check_body("script/unsupported", "for i in range(4):\n    «break»", hint="while loop")
    check_body("script/unsupported", "«try:\n    A[0] = 1.0\nfinally:\n    A[0] = 2.0»")
    check_body("script/unsupported", "A[0] = («yield»)")
    check_body("script/unsupported", "for i in range(4):\n    A[i] = 0.0\nelse:\n    «A[0] = 1.0»")
    check_body("script/unsupported", "«x = [i async for i in range(4)]»")


def test_syntax_error() -> None:
    error = error_of("@T.prim_func\ndef f():\n    x = = 1\n")
    assert (error.code, error.line, error.column) == ("script/syntax", 3, 9)
    assert "x = = 1" in str(error)


def test_bad_text() -> None:
    assert error_of("x\0y").code == "script/syntax"
    assert error_of("").code == "script/no-program"
    assert error_of("x = 1").code == "script/no-program"
    assert error_of("(" * 5000).code == "script/syntax"
    assert error_of("\ud800").code == "script/syntax"


def test_statement_outside_of_a_program() -> None:
    check("script/unsupported", "«for i in range(3):\n    pass»\n@T.prim_func\ndef f():\n    T.evaluate(0)\n")


def test_second_program() -> None:
    one = "@T.prim_func\ndef f():\n    T.evaluate(0)\n"
    check("script/second-program", one + "@T.prim_func\n«def g():\n    T.evaluate(0)»\n", hint="@I.ir_module")


def test_constant_too_large() -> None:
    check_body("script/constant-size", "T.evaluate(«2 ** 100000000»)")
    check_body("script/constant-size", "T.evaluate(«1 << 100000000»)")
    check_body("script/constant-size", "T.evaluate(«'a' * 100000000»)")


def test_no_truth_value() -> None:
    check_body("ir/truth", "A[0] = «bool(n)»", hint="a comparison")
    check_body("ir/truth", "A[0] = «sorted([n, A[0]])»", hint="T.if_then_else")


# ---- parameters


def test_parameter_without_annotation() -> None:
    check("script/no-annotation", "@T.prim_func\ndef f(«a»):\n    T.evaluate(0)\n", "annotation required")


def test_bad_annotation() -> None:
    check("script/annotation", "@T.prim_func\ndef f(a: «3»):\n    T.evaluate(0)\n", "type int")
    check("script/annotation", "@T.prim_func\ndef f(a: «int»):\n    T.evaluate(0)\n", hint="a: T.int32")
    check("script/annotation", "@T.prim_func\ndef f(a: «float»):\n    T.evaluate(0)\n", hint="a: T.float32")
    array = "@T.prim_func\ndef f(a: «{}»):\n    T.evaluate(0)\n"
    for what in ("np.ndarray", "T.Buffer", "npt.NDArray[np.float32]"):
        said = f"{what} as the annotation of 'a'"
        check("script/annotation", array.format(what), said, "a: T.Buffer((16, 16)", np=np, npt=numpy.typing)
    check("script/annotation", "@T.prim_func\ndef f() -> «3»:\n    T.evaluate(0)\n", "type of the result")
    check_body("script/annotation", "x: «3» = 4")
    check("script/syntax", "@T.prim_func\ndef f(a: «'T.int32 +'»):\n    T.evaluate(0)\n", "annotation")


def test_parameter_kinds() -> None:
    check("script/parameter", "@T.prim_func\ndef f(*, «a: T.int32»):\n    T.evaluate(0)\n")
    check("script/parameter", "@T.prim_func\ndef f(*«a»):\n    T.evaluate(0)\n")


def test_default_values_of_parameters() -> None:
    for parameters in ("a: T.int32 = «3»", "a: T.int32 = «3», b: T.int32 = 4"):
        check("script/default-value", f"@T.prim_func\ndef f({parameters}):\n    T.evaluate(0)\n", "no default values")


# ---- buffers


def test_match_buffer() -> None:
    check_body("builder/not-a-parameter", "x = T.int32()\nB = «T.match_buffer(x, (4,))»")
    check_body("builder/not-a-handle", "B = «T.match_buffer(n, (4,))»", hint="T.handle")
    check_body("builder/twice", "B = T.match_buffer(a, (4,))\nC = «T.match_buffer(a, (4,))»", "already")
    check_body("builder/shape", "B = «T.match_buffer(a)»", "needs the shape")


def test_shapes() -> None:
    check_body("builder/shape", "B = «T.alloc_buffer((4, 1.5))»")
    check_body("builder/shape", "B = «T.alloc_buffer((-4,))»")
    check_body("builder/shape", "B = «T.alloc_buffer('(128, 128)')»")
    check_body("builder/strides", "B = «T.match_buffer(a, (4, 4), strides=(16, 4, 1))»")
    check_body("builder/buffer-type", "B = «T.match_buffer(a, (4, 4), buffer_type='x')»")
    check_body("builder/shape", "B = «T.allocate_const([1, 2], 'int32', [3])»", "3 elements with 2 values")
    check_body("builder/shape", "B = «T.allocate_const([1, 2], 'int32', [n])»", "constant extents")
    check_body("builder/dtype", "B = «T.allocate_const(data, 'int32', [1])»", data=tw.ir.TensorData("int8", [1], b"x"))


def test_unknown_dtype() -> None:
    check_body("script/dtype", "B = «T.alloc_buffer((4,), 'flaot32')»", "'flaot32'", "'float32'")


def test_buffer_defined_twice() -> None:
    check_body("script/redefined", "B = T.alloc_buffer((4,))\n«B = T.alloc_buffer((8,))»", "'B' is defined already")


def test_assigning_a_buffer_to_a_buffer_copies_nothing() -> None:
    check_body("script/redefined", "B = T.alloc_buffer((16,))\n«B = A»", "nothing is copied", "B[i] = A[i]")
    check_body("script/redefined", "B = T.alloc_buffer((4, 4))\n«A = B»", "another name of 'B'", "A[i] = B[i, j]")
    # Another name is fine, and so is changing places in a loop of Python, which repeats its body.
    tw.script.from_source(FUNCTION + "    B = A\n    B[0] = 1.0\n")
    swap = "    for k in [0, 1]:\n        B[k] = A[k]\n        C = A\n        A = B\n        B = C\n"
    assert "A[1] = B[1]" in from_source(FUNCTION + "    B = T.alloc_buffer((16,))\n" + swap).script()


def test_the_type_of_a_call_of_a_function_of_others() -> None:
    extern = 'T.call_extern("float32", "name", ...)'
    for call in ('("sinf", A[0])', '("sinf", "float32", A[0])', '("sinf")'):
        check_body("script/dtype", f"A[0] = «T.call_extern{call}»", "'sinf' is not a data type", extern)
    check_body("script/dtype", "A[0] = «T.call_extern('flaot32', 'sinf', A[0])»", hint="'float32'")
    check_body("script/arguments", "A[0] = «T.call_extern(A[0], 'sinf')»", "not a BufferLoad", extern)
    check_body("script/arguments", "A[0] = «T.call_extern()»", "type of its result", extern)
    check_body("script/dtype", "A[0] = «T.call_pure_extern('sinf', A[0])»", hint='T.call_pure_extern("float32", "name"')
    check_body("script/dtype", "A[0] = «T.call_llvm_intrin('sinf', A[0])»", hint='T.call_llvm_intrin("float32", ...)')


def test_access() -> None:
    check_body("builder/index", "«A[None] = 0.0»", "type NoneType")
    check_body("builder/dtype", "A[0:4] = «A.vload([0], 'int32x4')»", "'A', which holds float32")
    check_body("ir/index-count", "A[0] = «A[0, 1]»", "1 dimensions")
    check_body("ir/index-dtype", "A[0] = «A[1.5]»", "float32")
    check_body("builder/index", "A[0] = «A[A]»", "type Buffer is used as an index")
    check_body("builder/vector-slice", "A[0] = «A[0:n:1]»")
    check_body("builder/vector-slice", "A[0] = «A[0:16:-1]»")


def test_store() -> None:
    with pytest.warns(RuntimeWarning, match="'B', which holds int32: it is cut off") as seen:
        from_source(FUNCTION + "    B = T.alloc_buffer((4,), 'int32')\n    B[0] = A[0]\n")
    assert seen[0].filename.startswith("<script ") and seen[0].lineno == 5
    check_body("builder/store-dtype", "«A[0] = A[0:4]»", "float32x4")
    check_body("builder/store-dtype", "«A[0] = A.data»", "handle")
    check_body("builder/store-value", "«A[0] = T.Range(0, 4)»", "Range")
    check_body("script/store", "«A[0] = None»", "None")
    check_body("script/store", "«n[0]» = 1")
    check_body("script/store", "x = T.meta_var([1])\n«x[0]» = 1", "Python list")
    check_body("builder/store-value", "«A[0] = A»", "a Buffer")


def test_regions() -> None:
    check_body("builder/region", "with T.block():\n    «T.reads(n)»")
    check_body("builder/region", "with T.block():\n    «T.reads(A[0:16:2])»", "stride")
    check_body("script/region", "with T.block():\n    «T.reads(3)»", "int")
    check_body("builder/region", "«T.realize(A, '')»", "whole buffer")


def test_matched_region() -> None:
    check_body("builder/match-region", "with T.block():\n    B = «T.match_buffer(A[0:4], (5,))»", "extent 5")
    check_body("builder/match-region", "with T.block():\n    B = «T.match_buffer(A[0:4], (2, 2))»", "2 dimensions")
    check_body("builder/match-region", "with T.block():\n    B = «T.match_buffer(A[0:4], (4,), 'int8')»", "int8")
    check_body(
        "builder/match-region", "with T.block():\n    B = «T.match_buffer(A[0:4], (4,), scope='local')»", "local"
    )
    check_body("builder/place", "B = «T.match_buffer(A[0:4], (4,))»", "inside T.block")
    check_body("builder/shape", "with T.block():\n    B = «T.match_buffer(n)»")
    check_body("builder/region", "with T.block():\n    B = «T.match_buffer(n + 1, (4,))»", "Add")


# ---- loops and control flow


def test_loops() -> None:
    check_body("script/for-iterator", "for i in «n»:\n    A[i] = 0.0", hint="T.serial")
    check_body("script/for-iterator", "for i in «T.evaluate(0)»:\n    A[i] = 0.0", "None")
    check_body("script/range-step", "for i in «range(0, 16, 2)»:\n    A[i] = 0.0")
    check_body("builder/index-range", "for i in «range(2**63)»:\n    A[0] = 0.0", "9223372036854775808 is beyond")
    check_body(
        "builder/index-range", "for i, j in «T.grid(4, T.uint64(2**64 - 1))»:\n    A[i] = 0.0", "18446744073709551615"
    )
    check_body("script/arguments", "for i in «range(2**64)»:\n    A[0] = 0.0", "more than 64 bits")
    check_body("builder/loop-dtype", "for i in «range(1.5)»:\n    A[i] = 0.0", "float32")
    check_body("script/unpack", "for «i, j» in range(16):\n    A[0] = 0.0")
    check_body("script/unpack", "for «i, j» in T.grid(4, 4, 4):\n    A[i] = 0.0", "3 values are unpacked into 2 names")
    one = check_body(
        "script/unpack", "for «(i,)» in T.grid(4, 4):\n    A[i] = 0.0", "2 values are unpacked into 1 name"
    )
    assert "names" not in str(one)
    check_body("script/thread", "for i in «T.thread_binding(16)»:\n    A[i] = 0.0")
    check_body("builder/thread", "for i in «T.thread_binding(16, thread='')»:\n    A[i] = 0.0")
    check_body("script/thread", "for i in «T.thread_binding(16, 16)»:\n    A[i] = 0.0")


def test_endless_python_loop() -> None:
    import itertools

    check_body("script/host-loop", "for i in «forever»:\n    A[i] = 0.0", forever=itertools.count())


def test_conditions() -> None:
    check_body("script/condition", "if «A»:\n    A[0] = 0.0", "Buffer")
    check_body("builder/condition", "if «a»:\n    A[0] = 0.0", "handle")
    check_body("ir/not-bool", "if «A[0:4]»:\n    A[0] = 0.0", "must be one bool, not boolx4")
    check_body("builder/condition", "while «a»:\n    A[0] = 0.0", "handle")
    check_body("builder/condition", "with T.block():\n    «T.where(a)»", "handle")
    check_body("builder/condition", "«assert a, 'x'»", "handle")
    check_body("script/assert", "assert n > 0, «A»")


def test_with() -> None:
    check_body("script/with", "with «3»:\n    A[0] = 0.0", "int")
    check_body("script/with", "with T.block('b') as «x»:\n    A[0] = 0.0", "T.block defines nothing")


def test_targets() -> None:
    check_body("script/target", "«A.x» = 1")
    check_body("script/target", "«A.x» += 1")
    check_body("script/target", "«A.x»: T.int32 = 1")
    check_body("script/target", "for «A.x» in [1, 2]:\n    pass")
    check_body("script/chained-assignment", "«x = y = 1»", "consequential")
    check_body("script/unpack", "«x, y» = n", "one value")
    check_body("script/statement", "«T.meta_var(3)»", "stands alone")


def test_let_of_nothing() -> None:
    check_body("builder/let-void", "«x = T.call_intrin('void', 'tir.f')»")


def test_threads() -> None:
    check_body("builder/thread", "«T.launch_thread(n, 4)»", "not a thread axis")
    check_body("builder/thread", "«T.launch_thread(1.5, 4)»")
    check_body(
        "builder/thread",
        "x = T.env_thread('threadIdx.x')\nwith T.launch_thread(x, 4):\n    A[0] = 0.0\n«T.launch_thread(x, 8)»",
        "4 and with 8",
    )


# ---- blocks


def test_missing_axis_binding() -> None:
    check_body(
        "builder/missing-binding",
        "for i in range(16):\n    with «T.block('b')»:\n        vi = T.axis.spatial(16)\n        A[vi] = 0.0",
        "axis 'vi' of block 'b' is not bound",
        "T.axis.spatial(extent, i)",
    )


def in_block(line: str) -> str:
    return f"for i, j in T.grid(4, 4):\n    with T.block('b'):\n        {line}\n        A[0] = 0.0"


def test_axes() -> None:
    check_body("builder/remap", in_block("vi, vj = «T.axis.remap('SS', [i])»"), "2 axes for 1 loops")
    check_body("builder/remap", in_block("vi, vj = «T.axis.remap('TT', [i, j])»"), "letter 'T'")
    check_body("builder/remap", in_block("vi, vj = «T.axis.remap('SS', [i + j, j])»"), "argument 1")
    check_body("builder/axis-dtype", in_block("vi = «T.axis.spatial(16, A[0])»"), "float32")
    check_body("script/axis-domain", in_block("vi = «T.axis.spatial((0, 4, 8), i)»"))
    check_body("script/redefined", in_block("vi = T.axis.S(4, i)\n        «vi = T.axis.S(4, j)»"))
    check_body("script/redefined", in_block("«vi, vi = T.axis.remap('SS', [i, j])»"))
    check_body(
        "builder/axis-order",
        in_block("with T.init():\n            A[0] = 0.0\n        vi = «T.axis.S(4, i)»"),
        "after T.init",
    )


def test_things_that_belong_into_a_block() -> None:
    for call in ("T.reads([])", "T.writes([])", "T.where(n > 0)", "T.block_attr({})", "T.axis.S(4, 0)"):
        check_body("builder/place", f"«{call}»", "belongs directly inside T.block")
    check_body("builder/place", "with «T.init()»:\n    A[0] = 0.0")


def test_things_said_twice() -> None:
    for line in ("T.reads(A[0:4])", "T.writes(A[0:4])", "T.where(i < 2)"):
        check_body("builder/twice", in_block(f"{line}\n        «{line}»"), "twice")
    init = "with T.init():\n            A[0] = 0.0\n        "
    check_body(
        "builder/twice", in_block(init + init.replace("T.init()", "«T.init()»").rstrip()), "T.init is given twice"
    )
    check_body(
        "builder/twice",
        in_block("T.block_attr({'k': 1})\n        «T.block_attr({'j': 2})»"),
        "T.block_attr is given twice",
    )
    check_body("builder/twice", "T.func_attr({'k': 1})\n«T.func_attr({'k': 1})»")


def test_block_without_realize() -> None:
    text = "for i in range(4):\n    with «T.block('b', no_realize=True)»:\n        {}\n        A[0] = 0.0"
    check_body("builder/no-realize", text.format("vi = T.axis.S(4, i)"), "axes are bound")
    check_body("builder/no-realize", text.format("T.where(i < 2)"), "T.where")


def test_opaque_access() -> None:
    check_body(
        "builder/opaque-access",
        "with «T.block('b')»:\n    T.evaluate(T.call_extern('int32', 'f', A.data))",
        "pointer of buffer 'A'",
        "T.reads(...)",
    )


# ---- expressions


def test_expressions() -> None:
    check_body("script/iter-type", "T.attr(«T.iter_var(n, (0, 4), 'Data', '')», 'k', 1)")
    check_body("script/index-map", "T.func_attr({'m': «T.index_map(lambda *i: i)»})")
    check_body("builder/intrinsic", "A[0] = «T.fma(A[0], A[1])»", "takes 3 arguments")
    check_body("builder/intrinsic", "A[0] = «T.exp(None)»", "T.exp is None")
    check_body("builder/loop", "for i, j in «T.grid(4, None)»:\n    A[i] = 0.0", "T.grid is None")
    check_body("script/arguments", "A[0] = «T.reinterpret('float32')»", "a type and a value")
    check_body("script/arguments", "A[0] = «T.call_extern()»", "the type of its result")


# ---- macros and functions inside


def test_error_inside_a_macro_shows_both_places() -> None:
    text = """
@T.macro
def fill(B):
    B[0] = «value»

@T.prim_func
def f(A: T.Buffer((16,), "float32")):
    fill(A)
"""
    error = check("script/unknown-name", text)
    assert "fill(A)" in str(error) and "B[0] = value" in str(error)
    assert str(error).index("B[0] = value") < str(error).index("fill(A)")


def test_misuse_of_a_macro() -> None:
    @T.macro
    def nothing() -> None:
        T.evaluate(0)

    check_body("script/macro-use", "x = «m()»", "Invalid use of T.macro", m=nothing)
    check_body("script/arguments", "«m(1)»", "nothing", m=nothing)


def test_macros_without_end() -> None:
    text = """
@T.macro
def m():
    m()

@T.prim_func
def f():
    m()
"""
    assert error_of(text).code == "script/macro-depth"


def test_program_inside_a_program() -> None:
    check_body("script/nested-function", "@T.prim_func\n«def g():\n    T.evaluate(0)»", hint="@I.ir_module")


# ---- modules


MODULE = """
@I.ir_module
class Module:
    @T.prim_func
    def f(x: T.int32) -> T.int32:
        return x + 1

"""


def test_modules() -> None:
    check(
        "script/unknown-function",
        MODULE + "    @T.prim_func\n    def g():\n        T.evaluate(«cls.ff»(1))\n",
        hint="'f'",
    )
    check("script/no-decorator", MODULE + "    «def g():\n        T.evaluate(0)»\n", hint="@T.prim_func")
    check("builder/same-name", MODULE + "    @T.prim_func\n    «def f():\n        T.evaluate(0)»\n")
    check("builder/twice", MODULE + "    I.module_attrs({'a': 1})\n    «I.module_attrs({'a': 1})»\n")


def test_private_function_with_a_symbol() -> None:
    check(
        "builder/private-symbol",
        "@T.prim_func(private=True)\ndef f():\n    «T.func_attr({'global_symbol': 'g'})»\n    T.evaluate(0)\n",
    )


# ---- several errors, and how they are shown


def test_several_errors_are_reported_together() -> None:
    error = error_of(
        FUNCTION + "    A[0] = x\n    B = T.alloc_buffer((4,), 'flaot32')\n    B[0] = 1.0\n    A[1, 2] = 0.0\n"
    )
    assert [e.code for e in error.errors] == ["script/unknown-name", "script/dtype", "ir/index-count"]
    assert [e.line for e in error.errors] == [4, 5, 7]
    assert str(error).startswith("3 errors in 'f'")
    assert error.code == "script/unknown-name" and error.line == 4


def test_the_body_of_a_bad_loop_is_still_checked() -> None:
    error = error_of(FUNCTION + "    for i in T.gird(4):\n        A[i] = i\n        A[0] = y\n")
    assert [(e.code, e.line) for e in error.errors] == [("script/unknown-attribute", 4), ("script/unknown-name", 6)]


def test_errors_of_all_functions_of_a_module() -> None:
    error = error_of(MODULE + "    @T.prim_func\n    def g():\n        x\n    @T.prim_func\n    def h():\n        y\n")
    assert [e.line for e in error.errors] == [10, 13]


def test_at_most_twenty_errors() -> None:
    error = error_of(FUNCTION + "".join(f"    A[0] = x{i}\n" for i in range(100)))
    assert len(error.errors) == 20


def test_message_shows_line_and_carets() -> None:
    error = error_of(FUNCTION + "    A[0] = T.exp(b)\n")
    assert "4 |     A[0] = T.exp(b)" in str(error)
    assert "\n  |                  ^" in str(error)


def test_columns_count_characters() -> None:
    check_body("script/unknown-name", "assert n > 0, 'ü€𝄞' + «b»")


def test_traceback_ends_at_the_users_line() -> None:
    def define() -> None:
        @T.prim_func
        def f(A: T.Buffer((16,), "float32")):
            A[0] = missing

    with pytest.raises(tw.ScriptError) as caught:
        define()
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert frames[-1].line == "A[0] = missing"
    assert frames[-1].name == "f"
    assert all(frame.filename == __file__ for frame in frames)
    assert caught.value.__cause__ is None and caught.value.__suppress_context__
    assert caught.value.file == __file__


def test_traceback_of_a_module_ends_at_the_users_line() -> None:
    from tilewright.script import ir as I

    with pytest.raises(tw.ScriptError) as caught:

        @I.ir_module
        class Module:
            @T.prim_func
            def f(A: T.Buffer((16,), "float32")):
                A[0] = missing

    frames = traceback.extract_tb(caught.value.__traceback__)
    assert frames[-1].line == "A[0] = missing"
    assert all(frame.filename == __file__ for frame in frames)


def test_source_that_cannot_be_found() -> None:
    namespace: dict[str, object] = {"T": T}
    with pytest.raises(tw.ScriptError, match="cannot be found") as caught:
        exec("@T.prim_func\ndef f():\n    T.evaluate(0)\n", namespace)
    assert caught.value.code == "script/no-source"


def test_decorating_something_else() -> None:
    with pytest.raises(tw.ArgumentError, match=r"T\.prim_func decorates a function"):
        T.prim_func(3)
    with pytest.raises(tw.ArgumentError, match="decorates a function"):
        T.macro(3)


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [
        ("int8", -128, 127),
        ("uint8", 0, 255),
        ("int16", -32768, 32767),
        ("int32", -(2**31), 2**31 - 1),
        ("uint32", 0, 2**32 - 1),
        ("int64", -(2**63), 2**63 - 1),
        ("uint64", 0, 2**64 - 1),
        ("bool", 0, 1),
    ],
)
def test_numbers_that_do_not_fit_are_not_stored(dtype: str, low: int, high: int) -> None:
    def stored(value: str) -> object:
        return from_source(f"@T.prim_func\ndef f(A: T.Buffer((4,), {dtype!r}), n: T.int32):\n    A[1] = {value}\n")

    wide = ["T.int64({})" if high < 2**63 else "T.uint64({})", "T.Select(n > 0, T.int64({}), T.int64(0))"]
    for text in wide[:1] if high >= 2**63 - 1 else wide:
        for value in (low, high):
            if "uint64" not in text or value >= 0:
                stored(text.format(value))
    for value in (low - 1, high + 1):
        if not -(2**63) <= value < 2**63:
            continue
        for text in (
            "T.int64({})",
            "T.Select(n > 0, T.int64({}), T.int64(0))",
            "T.if_then_else(n > 0, T.int64(0), T.int64({}))",
        ):
            with pytest.raises(tw.ScriptError, match=f"does not fit into 'A', which holds {dtype}") as caught:
                stored(text.format(value))
            assert caught.value.code == "builder/constant" and caught.value.line == 3
        stored(f"T.Cast({dtype!r}, T.int64({value}))")  # what is asked for


@pytest.mark.filterwarnings("ignore:.*it is cut off:RuntimeWarning")
def test_a_number_that_does_not_fit_points_at_its_line() -> None:
    check(
        "builder/constant",
        "@T.prim_func\ndef f(A: T.Buffer((4,), 'int8')):\n    «A[1] = 300»\n",
        hint='T.Cast("int8", T.int32(',
    )
    check("builder/constant", "@T.prim_func\ndef f(A: T.Buffer((4,), 'int32')):\n    «A[1] = T.float32(3e9)»\n")
    check("builder/constant", "@T.prim_func\ndef f(A: T.Buffer((4,), 'int32')):\n    «A[1] = T.float32('nan')»\n")


@pytest.mark.parametrize(
    ("call", "instead"),
    [
        ("math.sqrt(A[0])", "T.sqrt"),
        ("np.exp(A[0])", "T.exp"),
        ("np.arctan2(A[0], A[1])", "T.atan2"),
        ("sqrt(A[0])", "T.sqrt"),
    ],
)
def test_functions_of_numbers_are_told_from_those_of_expressions(call, instead):
    source = f"""
import math
import numpy as np
from math import sqrt
from tilewright.script import tir as T

@T.prim_func
def f(A: T.Buffer((4,), "float32")):
    A[1] = math.pi + np.float32(math.sqrt(2.0))
    A[0] = {call}
"""
    with pytest.raises(tw.ScriptError, match=f"takes numbers: use {instead}, which takes expressions") as error:
        from_source(source)
    assert "A[0] = " in str(error.value)


def test_a_return_in_the_middle() -> None:
    check_body(
        "script/unsupported",
        "for i in range(4):\n    if i == n:\n        «return»\n    A[i] = 1.0",
        "continues to its end",
    )
    check_body("script/unsupported", "«return»\nA[0] = 1.0", "continues to its end")
    ended = from_source(
        "from tilewright.script import tir as T\n\n"
        "@T.prim_func\ndef f(A: T.Buffer((4,))):\n    A[0] = 1.0\n    return\n"
    )
    assert "A[0] = T.float32(1.0)" in ended.script() and "evaluate" not in ended.script()


def test_how_to_say_it() -> None:
    check_body("ir/index-count", "A[0] = «A[0, 1]»", hint="A[i, j]")
    check_body("ir/not-bool", "A[0] = T.float32(«T.And(n, n)»)", hint="x != 0")


def test_a_name_of_a_module_below_is_found():
    source = "from tilewright import script as T\n\n@T.prim_func\ndef f():\n    pass\n"
    with pytest.raises(tw.ScriptError, match=r"from tilewright\.script import tir") as caught:
        tw.script.from_source(source)
    assert caught.value.code == "script/unknown-attribute"
    assert "module 'tilewright.script' has no 'prim_func'" in str(caught.value)
