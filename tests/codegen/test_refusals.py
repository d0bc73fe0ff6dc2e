"""Programs for which no code is generated, and why."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright import _core
from tilewright.script import ir as I
from tilewright.script import tir as T


def refused(program: Any) -> str:
    with pytest.raises(tw.Error) as error:
        tw.compile(program)
    return error.value.code


def test_functions_without_code_on_a_cpu() -> None:
    @T.prim_func
    def external(A: T.Buffer((4,), "float32")):
        T.evaluate(T.call_extern("int32", "system", A.data))

    @T.prim_func
    def warp(A: T.Buffer((4,), "int32")):
        A[0] = T.tvm_warp_activemask()

    @T.prim_func
    def thread(A: T.Buffer((4,), "int32")):
        for i in T.thread_binding(4, thread="threadIdx.x"):
            A[i] = 1

    for program in (external, warp, thread):
        assert refused(program) == "codegen/unsupported"


def test_a_size_that_no_argument_tells() -> None:
    @T.prim_func(check_well_formed=False)
    def square(a: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n * n,), "float32")
        for i in range(n * n):
            A[i] = T.float32(0)

    assert refused(square) == "verify/undefined"
    with pytest.raises(tw.ScriptError) as error:
        _core.compile_object(_core.as_module(square))
    assert error.value.code == "codegen/unbound-size"


def test_public_functions_return_nothing() -> None:
    @T.prim_func
    def answer() -> T.int32:
        T.ret(42)

    assert refused(answer) == "codegen/return-value"


def test_parameters_are_buffers_or_scalars() -> None:
    vector = _core.Var("x", _core.PrimType("float32x4"))
    func = _core.PrimFunc([vector], {}, _core.TupleType([]), {"global_symbol": "f"}, _core.Evaluate(0))
    assert refused(func) == "codegen/parameter-type"


def test_views_that_do_not_match() -> None:
    @T.prim_func
    def view(A: T.Buffer((8, 8), "float32")):
        for i in range(8):
            with T.block("B"):
                v = T.axis.spatial(8, i)
                W = T.match_buffer(A[v, 0:8], (8,), strides=[2])
                for j in range(8):
                    W[j] = T.float32(1)

    assert refused(view) == "lower/match-buffer"

    # n is the function's: the view states it, and does not give it another value.
    @T.prim_func
    def restated(a: T.handle, B: T.Buffer((8,), "int32")):
        n = T.int32()
        A = T.match_buffer(a, (n,), "int32")
        for i in range(1):
            with T.block("B"):
                v = T.axis.spatial(1, i)
                W = T.match_buffer(B[v : v + 4], (n,), "int32")
                A[v] = W[v] + n

    assert refused(restated) == "lower/match-buffer"


@T.prim_func
def copy(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32")):
    for i, j in T.grid(8, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj]


def test_passes_have_names() -> None:
    with pytest.raises(tw.ArgumentError) as error:
        tw.lower(copy, after="polish")
    assert error.value.code == "lower/unknown-pass"
    assert "flatten_buffers" in str(error.value)


def test_code_is_generated_for_lowered_programs_only() -> None:
    module = _core.as_module(copy)
    for after, code in [("inline_block_axes", "codegen/not-lowered"), ("lower_blocks", "codegen/not-flat")]:
        with pytest.raises(tw.InternalError) as error:
            _core.compile_object(tw.lower(copy, after=after))
        assert error.value.code == code
    del module
    stray = _core.PrimFunc(
        [], {}, _core.TupleType([]), {"global_symbol": "f"}, _core.Evaluate(_core.Var("x", "int32") + 1)
    )
    with pytest.raises(tw.InternalError) as error:
        _core.compile_object(_core.as_module(stray))
    assert error.value.code == "codegen/unbound-variable"


def test_only_objects_can_be_loaded() -> None:
    with pytest.raises(tw.ResourceError) as error:
        _core.load_object(b"not an object")
    assert error.value.code == "codegen/load"


def test_calls_in_a_module_have_to_fit() -> None:
    @I.ir_module(check_well_formed=False)
    class Wrong:
        @T.prim_func(private=True)
        def helper(A: T.Buffer((4,), "float32"), n: T.int32):
            A[n] = T.float32(1)

        @T.prim_func
        def main(A: T.Buffer((4,), "float32")):
            Wrong.helper(A.data)

    with pytest.raises(tw.ScriptError, match=r"(?s)helper.*\.data"):
        tw.compile(Wrong)


def test_files_of_the_package_may_be_missing(tmp_path: Path) -> None:
    package = tmp_path / "tilewright"
    package.mkdir()
    for item in Path(tw.__file__).parent.iterdir():
        if item.name != "include":
            (package / item.name).symlink_to(item)
    script = tmp_path / "script.py"
    script.write_text(
        "import tilewright as tw\n"
        "from tilewright.script import tir as T\n"
        "@T.prim_func\n"
        "def f(A: T.Buffer((4,), 'float32')):\n"
        "    A[0] = T.float32(1)\n"
        "try:\n"
        "    tw.compile(f).export('.')\n"
        "except tw.ResourceError as error:\n"
        "    print(error.code)\n"
    )
    command = [sys.executable, str(script)]
    environment = os.environ | {"PYTHONPATH": "."}
    out = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path, env=environment)
    assert out.stdout.strip() == "export/package"


def test_a_read_only_place(tmp_path: Path) -> None:
    kernel = tw.compile(copy)
    # A folder where the file should be: refused to root, too.
    (tmp_path / "copy.o").mkdir()
    (tmp_path / "copy.o" / "x").write_text("")
    with pytest.raises(tw.ResourceError) as error:
        kernel.export(tmp_path)
    assert error.value.code == "export/write"
    np.testing.assert_equal(len(list(tmp_path.iterdir())), 1)


def calling(dtype: str, name: str, *more: Any) -> Any:
    @T.prim_func
    def call(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), dtype)):
        for i in range(4):
            with T.block("call"):
                vi = T.axis.spatial(4, i)
                B[vi] = T.call_pure_extern(dtype, name, A[vi], *more)

    return call


@pytest.mark.parametrize(
    "dtype, name, more, declaration",
    [
        ("float32", "exp", (), "double exp(double)"),
        ("float64", "expf", (), "float expf(float)"),
        ("float32", "powf", (), "float powf(float, float)"),
        ("float32", "powf", (2,), "float powf(float, float)"),
        ("float32", "expf", (1.0,), "float expf(float)"),
        ("float32", "memset", (0, 4), "void* memset(void*, int, size_t)"),
        ("int32", "printf", (), "int printf(void*, ...)"),
    ],
)
def test_functions_of_c_with_other_types(dtype: str, name: str, more: tuple[Any, ...], declaration: str) -> None:
    with pytest.raises(tw.Error, match=r"other types than those of C") as error:
        tw.compile(calling(dtype, name, *more))
    assert error.value.code == "codegen/unsupported"
    assert declaration in str(error.value)


@pytest.mark.parametrize("name", ["logb", "erfc", "lgamma"])
def test_functions_of_c_with_their_types(name: str) -> None:
    a = np.array([0.25, 1.0, 3.5, 700.0], "float32")
    expected = [{"logb": lambda x: math.floor(math.log2(x))}.get(name, getattr(math, name, None))(float(x)) for x in a]
    np.testing.assert_allclose(tw.compile(calling("float32", name + "f"))(a), expected, rtol=1e-6, atol=1e-30)


def test_schedules_that_do_not_exist() -> None:
    with pytest.raises(tw.ArgumentError, match="there are 'as written' and 'by rules'") as error:
        tw.compile(calling("float32", "expf"), schedule="by magic")
    assert error.value.code == "compile/schedule"
