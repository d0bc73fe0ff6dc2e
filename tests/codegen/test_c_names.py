"""Names of kernels and parameters that C, C++ or their libraries keep for themselves."""

from __future__ import annotations

import keyword
import math
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.script import from_source
from tilewright.script import ir as I
from tilewright.script import tir as T

_NAMES = [
    *(name for name in dir(math) if not name.startswith("_")),
    *(f"{name}f" for name in ("exp", "sin", "pow", "fabs", "tgamma")),
    *("main", "double", "int", "auto", "inline", "register", "class", "template", "co_await", "bool", "typeof", "asm"),
    *("printf", "malloc", "free", "abs", "index", "time", "read", "write", "exit", "abort", "signal", "linux", "unix"),
    *("memcpy", "strlen", "j0", "y1", "gamma", "creal", "isalpha", "errno", "NULL", "size_t", "int32_t", "INT32_MAX"),
    *("tw_ctx", "tw_last_error", "TW_OK", "DLTensor", "kDLCPU", "tilewright_module", "_start", "__x", "std", "tensors"),
    *("my-kernel", "2d", "grüße", "a b", "a.b", "x*/y", "_", "scalars", "shape0", "saxpy", "tw"),
]
NAMES = list(dict.fromkeys(_NAMES))


def scale(name: str, array: str = "A", number: str = "n") -> tw.ir.PrimFunc:
    """Multiplies an array by exp(0) and a number, so that it calls the library too."""
    program = from_source(
        f"@T.prim_func\ndef f({array}: T.Buffer((8,), 'float32'), {number}: T.int32):\n"
        "    for i in range(8):\n"
        f"        {array}[i] = {array}[i] * T.exp({array}[i] * 0.0) * T.Cast('float32', {number})\n"
    )
    return program.with_attr("global_symbol", name)


def check(kernel: tw.Kernel) -> None:
    data = np.arange(8, dtype="float32")
    kernel(data, 3)
    np.testing.assert_array_equal(data, 3 * np.arange(8))


COMPILERS = [["cc", "-std=c11"], ["cc"], ["c++", "-std=c++17"]]


def compiles(header: Path, folder: Path) -> None:
    for number, compiler in enumerate(COMPILERS):
        source = folder / f"user{number}{'.cc' if compiler[0] == 'c++' else '.c'}"
        source.write_text(f'#include "{header.name}"\n#include <math.h>\n#include <stdlib.h>\n#include <string.h>\n')
        flags = ["-Wall", "-Wextra", "-Werror", "-Wno-unused-function", "-fsyntax-only", f"-I{header.parent}"]
        subprocess.run([*compiler, *flags, str(source)], check=True)


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> tuple[tw.KernelModule, tw.kernel.Exported]:
    """A module with a kernel of each name; where Python has the name as well, a parameter is called so too."""
    functions = {}
    for position, name in enumerate(NAMES):
        parameters = [name, "_T" if name == "T" else "n"] if is_python_name(name) else ["A", "n"]
        functions[f"f{position}"] = scale(name, *parameters)
    kernels = tw.compile(tw.ir.IRModule(functions, {}))
    assert isinstance(kernels, tw.KernelModule)
    return kernels, kernels.export(tmp_path_factory.mktemp("names"), "every name")


def is_python_name(name: str) -> bool:
    return name.isidentifier() and not keyword.iskeyword(name) and name not in ("range", "T")


def test_kernels_of_any_name_compute(everything: tuple[tw.KernelModule, tw.kernel.Exported]) -> None:
    kernels, files = everything
    loaded = tw.load(files.library)
    assert set(kernels) == set(loaded) == set(NAMES)
    for name in NAMES:
        check(kernels[name])
        check(loaded[name])


def test_the_header_is_c_and_cpp(everything: tuple[tw.KernelModule, tw.kernel.Exported], tmp_path: Path) -> None:
    compiles(everything[1].header, tmp_path)


def test_each_header_alone_is_c(tmp_path: Path) -> None:
    for name in ("double", "exp", "my-kernel", "main"):
        compiles(tw.compile(scale(name)).export(tmp_path / "out", "it").header, tmp_path)


def test_spelling(tmp_path: Path) -> None:
    spelled = {"double": "double_", "exp": "exp_", "my-kernel": "my_kernel", "2d": "k2d", "_x": "k_x", "tw_f": "tw_f_"}
    spelled["tw"] = "tw_"  # tw_last_error is a function of the runtime
    for name, c_name in spelled.items():
        kernel = tw.compile(scale(name, "int_", "exp"))
        assert kernel.name == name
        header = kernel.export(tmp_path, "it").header.read_text().replace(" it(", f" {c_name}(")
        assert f"int32_t {c_name}(tw_ctx* ctx" in header
    functions = {
        "a": scale("exp"),
        "b": scale("exp_"),
        "c": scale("f"),
        "d": scale("f_arrays"),
        "e": scale("f_last_error"),
    }
    header = tw.compile(tw.ir.IRModule(functions, {})).export(tmp_path, "them").header
    text = header.read_text()
    assert all(
        f"int32_t {name}(tw_ctx* ctx" in text for name in ("exp_", "exp__1", "f", "f_arrays_1", "f_last_error_1")
    )
    compiles(header, tmp_path)


def test_a_parameter_called_like_its_function(tmp_path: Path) -> None:
    header = tw.compile(scale("scale", "scale", "tensors")).export(tmp_path).header
    assert "scale_arrays(float* scale_1, int32_t tensors)" in header.read_text()
    compiles(header, tmp_path)


def test_a_name_for_files_and_function(tmp_path: Path) -> None:
    files = tw.compile(scale("inner")).export(tmp_path, "outer")
    assert [f.name for f in files] == ["outer.so", "outer.o", "outer.h"]
    assert "int32_t outer(tw_ctx* ctx" in files.header.read_text()
    assert "inner" not in files.header.read_text()
    loaded = tw.load(files.library)
    assert loaded.name == "outer"
    check(loaded)


@I.ir_module
class Several:
    @T.prim_func(private=True)
    def part(A: T.Buffer((8,), "float32")):
        for i in range(8):
            A[i] = A[i] * T.float32(2)

    @T.prim_func
    def first(A: T.Buffer((8,), "float32")):
        Several.part(A.data)
        Several.part(A.data)

    @T.prim_func
    def second(A: T.Buffer((8,), "float32")):
        A[0] = T.float32(0)


def test_one_kernel_of_a_module_is_exported_alone(tmp_path: Path) -> None:
    kernels = tw.compile(Several)
    loaded = tw.load(kernels["first"].export(tmp_path, "quadruple").library)
    assert loaded.name == "quadruple"
    data = np.ones(8, "float32")
    loaded(data)
    np.testing.assert_array_equal(data, 4)
    assert set(tw.load(kernels.export(tmp_path, "both").library)) == {"first", "second"}


def test_functions_of_te_carry_a_name(tmp_path: Path) -> None:
    a = te.placeholder((8,), name="a")
    b = te.compute((8,), lambda i: a[i] + 1.0, name="increment")
    assert te.create_prim_func([a, b]).attrs["global_symbol"] == "increment"
    assert te.create_prim_func([a, b], name="other").attrs["global_symbol"] == "other"
    files = tw.compile(te.create_prim_func([a, b])).export(tmp_path)
    assert files.header.name == "increment.h"
    compiles(files.header, tmp_path)


def test_flags_for_a_program_of_ones_own(tmp_path: Path) -> None:
    files = tw.compile(scale("scale")).export(tmp_path)
    command = [sys.executable, "-m", "tilewright", "info", "--cflags", "--libs"]
    flags = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    (tmp_path / "main.c").write_text(
        '#include "scale.h"\n#include "runtime/abi.h"\n'
        "int main(void) { float a[8] = {1}; return scale_arrays(a, 3) == TW_OK && a[0] == 3 ? 0 : 1; }\n"
    )
    program = str(tmp_path / "main")
    compile_it = [
        "cc",
        "-Wall",
        "-Werror",
        str(tmp_path / "main.c"),
        str(files.object),
        *shlex.split(flags),
        "-o",
        program,
    ]
    subprocess.run(compile_it, check=True)
    subprocess.run([program], check=True)


def test_two_kernels_of_one_name_are_refused() -> None:
    with pytest.raises(tw.ScriptError, match="exported as 'f'") as caught:
        tw.compile(tw.ir.IRModule({"a": scale("f"), "b": scale("f")}, {}))
    assert caught.value.code == "codegen/same-name"
