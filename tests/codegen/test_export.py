"""Exported kernels, called from C and C++, and loaded again."""

from __future__ import annotations

import random
import subprocess
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.samples import samples

import tilewright as tw
from tilewright.script import ir as I
from tilewright.script import tir as T


@T.prim_func
def saxpy(a: T.float32, x: T.handle, y: T.handle):
    n = T.int64()
    X = T.match_buffer(x, (n,), "float32")
    Y = T.match_buffer(y, (n + 1,), "float32")
    for i in T.parallel(n):
        Y[i] = Y[i] + a * X[i]


MAIN = r"""
#include <stdio.h>
#include "saxpy.h"
int main(void) {
  float x[5] = {1, 2, 3, 4, 5}, y[6] = {0, 0, 0, 0, 0, 9};
  if (saxpy_arrays(2.0, x, y, 5) != TW_OK) return 1;
  for (int i = 0; i < 6; ++i) printf("%g ", y[i]);
  if (saxpy_arrays(2.0, x, x, 5) != TW_ERROR_OVERLAP) return 2;
  int64_t shape[1] = {5}, wrong[1] = {7};
  DLTensor tx = {x, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, shape, NULL, 0};
  DLTensor ty = {y, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, wrong, NULL, 0};
  const DLTensor* tensors[2] = {&tx, &ty};
  tw_scalar scalars[1];
  scalars[0].f = 1;
  if (saxpy(NULL, tensors, scalars) != TW_ERROR_SHAPE) return 3;
  printf("\n%s\n", saxpy_last_error());
  return 0;
}
"""


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return tw.compile(saxpy).export(tmp_path_factory.mktemp("export"))


@pytest.mark.parametrize(("compiler", "suffix"), [(["cc", "-std=c11"], ".c"), (["c++", "-std=c++11"], ".cc")])
def test_the_header_serves_c_and_cpp(exported: Any, tmp_path: Path, compiler: list[str], suffix: str) -> None:
    source = tmp_path / f"main{suffix}"
    source.write_text(MAIN)
    strict = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"] if suffix == ".c" else ["-Wall", "-Wextra", "-Werror"]
    folder = exported.library.parent
    command = [*compiler, *strict, f"-I{folder}", str(source), str(exported.library), "-o", str(tmp_path / "main")]
    subprocess.run(command, check=True)
    out = subprocess.run(
        [tmp_path / "main"], check=True, capture_output=True, text=True, env={"LD_LIBRARY_PATH": str(folder)}
    )
    assert out.stdout.splitlines()[0].split() == ["2", "4", "6", "8", "10", "9"]
    assert "Y" in out.stdout.splitlines()[1]
    assert "n + 1" in out.stdout.splitlines()[1]


def test_the_object_links_into_a_program(exported: Any, tmp_path: Path) -> None:
    source = tmp_path / "main.c"
    source.write_text(MAIN)
    archive = Path(tw.__file__).parent / "libtilewright_runtime.a"
    command = ["cc", f"-I{exported.header.parent}", str(source), str(exported.object), str(archive), "-lm", "-lpthread"]
    subprocess.run([*command, "-o", str(tmp_path / "main")], check=True)
    subprocess.run([tmp_path / "main"], check=True, capture_output=True)


def test_a_library_shows_its_kernels_only(exported: Any) -> None:
    out = subprocess.run(["nm", "-D", "--defined-only", exported.library], check=True, capture_output=True, text=True)
    assert {line.split()[-1] for line in out.stdout.splitlines()} == {
        "saxpy",
        "saxpy_last_error",
        "tilewright_calls",
        "tilewright_module",
    }


def test_a_library_can_be_loaded(exported: Any) -> None:
    kernel = tw.load(exported.library)
    x, y = np.arange(5, dtype="float32"), np.ones(6, "float32")
    kernel(3.0, x, y)
    np.testing.assert_array_equal(y, [1, 4, 7, 10, 13, 1])
    with pytest.raises(tw.ArgumentError, match="comes from a library"):
        kernel.inspect("asm")


@I.ir_module
class Two:
    @T.prim_func
    def double(A: T.Buffer((8,), "float32")):
        for i in range(8):
            A[i] = A[i] * T.float32(2)

    @T.prim_func
    def negate(A: T.Buffer((8,), "float32")):
        for i in range(8):
            A[i] = T.float32(0) - A[i]


def test_a_module_is_one_library(tmp_path: Path) -> None:
    kernels = tw.compile(Two)
    assert set(kernels) == {"double", "negate"}
    files = kernels.export(tmp_path / "deep" / "folder", "pair")
    assert [f.name for f in files] == ["pair.so", "pair.o", "pair.h"]
    assert sorted(f.name for f in (tmp_path / "deep" / "folder").iterdir()) == ["pair.h", "pair.o", "pair.so"]
    a = np.arange(8, dtype="float32")
    tw.load(files.library)["negate"](a)
    kernels["double"](a)
    np.testing.assert_array_equal(a, -2 * np.arange(8))


def test_names_of_files_are_plain(tmp_path: Path) -> None:
    for name in ("../escape", "", "-o", "two\nlines"):
        with pytest.raises(tw.ArgumentError) as error:
            tw.compile(saxpy).export(tmp_path, name)
        assert error.value.code == "export/name"
    with pytest.raises(tw.ArgumentError, match="name is 5; it is the name of the files"):
        tw.compile(saxpy).export(tmp_path, 5)  # type: ignore[arg-type]


def test_files_that_are_no_objects(tmp_path: Path) -> None:
    (tmp_path / "other.o").write_bytes(b"not an object")
    for name in ("other.o", "missing.o"):
        with pytest.raises(tw.ResourceError, match=name) as error:
            tw.load(tmp_path / name)
        assert error.value.code == "library/open" and error.value.hint


def test_names_that_are_not_utf8(tmp_path: Path) -> None:
    with pytest.raises(tw.ArgumentError, match="is not UTF-8 text"):
        tw.compile(saxpy).export(tmp_path, "caf\udce9")


@pytest.mark.parametrize("target", ["native", "interpreter"])
def test_names_that_no_kernel_can_have(target: str) -> None:
    for name, why in (("", "is empty"), ("a\0b", "contains a zero byte")):
        with pytest.raises(tw.ArgumentError, match=why) as error:
            tw.compile(saxpy.with_attr("global_symbol", name), target=target)
        assert error.value.code == "compile/name"


def test_threads_may_export_to_one_folder(tmp_path: Path) -> None:
    kernel, failed = tw.compile(saxpy), []

    def work() -> None:
        try:
            for _ in range(3):
                kernel.export(tmp_path, "same")
        except tw.Error as error:
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert sorted(file.name for file in tmp_path.iterdir()) == ["same.h", "same.o", "same.so"]


def test_headers_of_similar_names_go_together(tmp_path: Path) -> None:
    names = {"one": "a-b", "two": "a_b", "three": "A_b", "four": "a__b"}
    for function, name in names.items():
        module = {
            each: tw.script.from_source(f"@T.prim_func\ndef {each}(A: T.Buffer((8,), 'int32')):\n    A[0] = 1\n")
            for each in (function, f"{function}_again")
        }
        tw.compile(tw.ir.IRModule(module)).export(tmp_path, name)
    lines = [f'#include "{name}.h"' for name in names.values()]
    uses = [f"  (void)&{function};\n  (void)&{function}_again;" for function in names]
    (tmp_path / "main.c").write_text("\n".join([*lines, "int main(void) {", *uses, "  return 0;", "}"]))
    command = ["cc", "-Wall", "-Werror", "-fsyntax-only", str(tmp_path / "main.c")]
    subprocess.run(command, check=True)


def test_keywords_of_any_letters(tmp_path: Path) -> None:
    program = tw.script.from_source(
        "@T.prim_func\ndef f(α: T.Buffer((4,), 'int32'), ä: T.Buffer((4,), 'int32')):\n"
        "    for i in range(4):\n        ä[i] = α[i] + 1\n"
    )
    kernel = tw.compile(program)
    files = kernel.export(tmp_path)
    for each in (kernel, tw.load(files.library), tw.load(files.object)):
        a, b = np.arange(4, dtype="int32"), np.zeros(4, "int32")
        each(ä=b, α=a)
        np.testing.assert_array_equal(b, a + 1)
        with pytest.raises(tw.ArgumentError, match="an unknown one, β"):
            each(β=b, α=a)


def test_an_object_of_another_version(tmp_path: Path) -> None:
    source = (
        "const struct { unsigned version; int count; void *kernels, *producer; } tilewright_module = {99, 0, 0, 0};"
    )
    subprocess.run(["cc", "-c", "-x", "c", "-", "-o", tmp_path / "old.o"], input=source.encode(), check=True)
    with pytest.raises(tw.ResourceError, match=r"old\.o cannot be loaded: .* has version 99 of the kernel interface"):
        tw.load(tmp_path / "old.o")


def test_names_with_a_zero_byte(tmp_path: Path) -> None:
    for folder, name in ((tmp_path, "a\0b"), (f"{tmp_path}/a\0b", "a")):
        with pytest.raises(tw.ArgumentError, match="contains a zero byte"):
            tw.compile(saxpy).export(folder, name)
    assert list(tmp_path.iterdir()) == []


def test_names_that_compilers_take_for_something_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Relative folders that look like options or files of options, and commas, which separate options to linkers."""
    monkeypatch.chdir(tmp_path)
    kernel = tw.compile(saxpy)
    for folder, name in (("-dash", "lib"), ("@file", "a,b"), ("with space", "@x"), ("a,b", "x y"), ("-Wl,-o", "$HOME")):
        files = kernel.export(folder, name)
        assert [str(file) for file in files] == [f"{folder}/{name}{end}" for end in (".so", ".o", ".h")]
        x, y = np.arange(5, dtype="float32"), np.ones(6, "float32")
        tw.load(files.library)(3.0, x, y)
        np.testing.assert_array_equal(y, [1, 4, 7, 10, 13, 1])


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(tw.ResourceError) as error:
        tw.compile(saxpy).export(tmp_path / "file" / "folder")
    assert error.value.code == "export/folder"


def test_a_full_device_leaves_nothing_behind() -> None:
    folder = Path("/dev/full")
    with pytest.raises(tw.ResourceError):
        tw.compile(saxpy).export(folder)


def test_without_a_linker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = tw.compile(saxpy)
    monkeypatch.setenv("CC", "")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(tw.ResourceError, match="no C compiler") as error:
        kernel.export(tmp_path / "out")
    assert error.value.code == "export/link"
    assert list((tmp_path / "out").iterdir()) == []


def test_a_linker_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = tw.compile(saxpy)
    driver = tmp_path / "cc"
    driver.write_text("#!/bin/sh\necho 'ld: final link failed: File too large'; exit 1\n")
    driver.chmod(0o755)
    monkeypatch.setenv("CC", str(driver))
    with pytest.raises(tw.ResourceError, match="File too large") as error:
        kernel.export(tmp_path / "out")
    assert "ulimit -f" in error.value.hint and "Nothing was left" in error.value.hint
    assert list((tmp_path / "out").iterdir()) == []


def ran(kernel: Any, folder: Path, statements: str) -> list[str]:
    """Return what C and C++ programs print that execute statements with the header of the kernel f."""
    files = kernel.export(folder, "f")
    outputs = []
    for compiler in (["cc", "-std=c11", "-x", "c"], ["c++", "-std=c++11", "-x", "c++"]):
        (folder / "main").write_text(f'#include <stdio.h>\n#include "f.h"\nint main(void) {{\n{statements}\n}}\n')
        flags = ["-Wall", "-Wextra", "-Werror", "-pedantic", f"-I{folder}", str(folder / "main"), "-x", "none"]
        subprocess.run([*compiler, *flags, str(files.library), "-o", str(folder / "program")], check=True)
        environment = {"LD_LIBRARY_PATH": str(folder)}
        out = subprocess.run([folder / "program"], check=True, capture_output=True, text=True, env=environment)
        outputs.append(out.stdout)
    return outputs


def doubling(declarations: str) -> Any:
    """Return a kernel f that doubles the array A, of which `declarations` tell the parameters and the buffers."""
    return tw.compile(
        tw.script.from_source(f"""
@T.prim_func
def f{declarations}
    for i in range(A.shape[0]):
        A[i] = A[i] * T.float32(2)
""")
    )


def test_sizes_of_every_type_serve_cpp(tmp_path: Path) -> None:
    kernel = doubling(
        """(n: T.uint64, m: T.uint8, a: T.handle, b: T.handle):
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n * T.uint64(2),), "float32")
    C = T.alloc_buffer((m,), "float32")"""
    )
    statements = (
        'float a[2] = {1, 2}, b[4] = {0}; int code = f_arrays(2, 3, a, b); printf("%d %g", code, (double)a[1]);'
    )
    assert ran(kernel, tmp_path, statements) == ["0 4"] * 2


def test_quotients_of_differences_in_the_header_are_rounded_down(tmp_path: Path) -> None:
    kernel = doubling(
        """(a: T.handle, b: T.handle, c: T.handle, m: T.int32):
    n = T.int64()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, ((n - 5) // 3 + 1,), "float32")
    C = T.match_buffer(c, ((n - 5) % 3, T.Cast("int64", m + 1) * T.int64(2)), "float32")"""
    )
    for n in (2, 3, 5, 9):
        assert ((n - 5) // 3 + 1, (n - 5) % 3) == {2: (0, 0), 3: (0, 1), 5: (1, 0), 9: (2, 1)}[n]
        arrays = "float a[9] = {1, 2}, b[2] = {0}, c[8] = {0};"
        statements = f'{arrays} int code = f_arrays(a, b, c, 2, {n}); printf("%d %g", code, (double)a[1]);'
        assert ran(kernel, tmp_path, statements) == ["0 4"] * 2


def test_products_of_numbers_in_the_header_have_64_bits(tmp_path: Path) -> None:
    kernel = doubling(
        """(a: T.handle, b: T.handle, m: T.int32, k: T.int32):
    A = T.match_buffer(a, (2,), "float32")
    B = T.match_buffer(b, (m * k // 65536,), "float32")"""
    )
    extent = 50_000 * 60_000 // 65_536
    arrays = f"float a[2] = {{1, 2}}; static float b[{extent}];"
    statements = f'{arrays} int code = f_arrays(a, b, 50000, 60000); printf("%d %g", code, (double)a[1]);'
    assert ran(kernel, tmp_path, statements) == ["0 4"] * 2


def random_extent(rng: random.Random, depth: int) -> str:
    """Return an expression of a size n and of a number m, which may be negative."""
    if depth == 0 or rng.random() < 0.2:
        return rng.choice(["n", 'T.Cast("int64", m)', f"T.int64({rng.randint(-9, 9)})"])
    a = random_extent(rng, depth - 1)
    if rng.random() < 0.4:
        return f"({a} {rng.choice('+-*')} {random_extent(rng, depth - 1)})"
    return f"({a} {rng.choice(['//', '%'])} {rng.choice([-5, -3, -2, 2, 3, 7])})"


@pytest.mark.parametrize("seed", range(samples(2)))
def test_random_extents_in_the_header_are_those_of_the_program(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    extents = [f"{random_extent(rng, 3)} % 50 + 1" for _ in range(12)]
    handles = ", ".join(f"b{i}: T.handle" for i in range(len(extents)))
    views = "".join(f"\n    B{i} = T.match_buffer(b{i}, ({e},), 'int8')" for i, e in enumerate(extents))
    kernel = doubling(
        f"""(a: T.handle, m: T.int32, {handles}):
    n = T.int64()
    A = T.match_buffer(a, (n,), "float32"){views}"""
    )
    calls, want = "", []
    for m in (-7, -2, 0, 3, 8):
        for n in (1, 2, 6, 11):
            names = {"n": n, "m": m, "T": SimpleNamespace(Cast=lambda _, x: x, int64=int)}
            shapes = [eval(e, names) for e in extents]
            arrays = [np.zeros(n, np.float32), m, *(np.zeros(shape, np.int8) for shape in shapes)]
            kernel(*arrays)
            calls += f'printf("%d ", f_arrays(a, {m}, {", ".join("b" for _ in extents)}, {n}));\n'
            want.append("0")
    statements = f"float a[11] = {{0}}; int8_t b[50] = {{0}};\n{calls}"
    assert [printed.split() for printed in ran(kernel, tmp_path, statements)] == [want] * 2


def test_arrays_that_pointers_do_not_describe_have_no_function_of_pointers(tmp_path: Path) -> None:
    """Such a function could only refuse them: this offset, or a size that C has no operator for."""
    offset = """(a: T.handle):
    A = T.match_buffer(a, (8,), "float32", elem_offset=4, offset_factor=4)"""
    least = """(a: T.handle, b: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (T.max(n, 4),), "float32")"""
    for declarations, listed in ((offset, "A: float32[8], written"), (least, "B: float32[...], read")):
        header = doubling(declarations).export(tmp_path, "f").header.read_text()
        assert "f_arrays" not in header and listed in header
