"""Loading libraries of exported kernels."""

import gc
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw


def test_loads_all_kernels_by_name(kernels):
    assert {"add", "total", "copy_float16"} <= set(kernels)
    assert len(kernels) == len(list(kernels))
    add = kernels["add"]
    assert add.name == "add"
    assert add.parameters == (
        ("A", "float32 (n, m)", False),
        ("B", "float32 (n, m)", False),
        ("C", "float32 (n, m)", True),
    )
    assert repr(add) == "<Kernel add(A: float32 (n, m), B: float32 (n, m), C: float32 (n, m)), on all cores>"


def test_works_from_another_folder_and_outlives_its_module(library_path, tmp_path):
    copy = tmp_path / "moved.so"
    shutil.copy(library_path, copy)
    add = tw.load(str(copy))["add"]
    gc.collect()
    copy.unlink()
    c = np.empty((2, 3), np.float32)
    add(np.ones_like(c), np.ones_like(c), c)
    assert (c == 2).all()


@pytest.mark.parametrize(
    ("flags", "code", "text"),
    [
        (["-DEMPTY"], "library/module", "holds no kernels: it has no symbol tilewright_module"),
        (["-DVERSION=99"], "library/version", "has version 99 of the kernel interface, this is version 1"),
        (["-DDAMAGED"], "library/signature", "is damaged: 1 tensors are announced as 0"),
    ],
)
def test_refuses_libraries_of_others(compile_library, flags, code, text):
    with pytest.raises(tw.ResourceError, match=text) as error:
        tw.load(compile_library(code.replace("/", "_"), *flags))
    assert error.value.code == code
    assert error.value.hint


@pytest.mark.parametrize("content", [None, b"", b"not a library"])
def test_refuses_what_is_no_library(tmp_path, content):
    path = tmp_path / "kernel.so"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(tw.ResourceError, match="cannot be loaded") as error:
        tw.load(path)
    assert error.value.code == "library/open"


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5, 0.9, 0.999])
def test_refuses_what_was_cut_off(library_path, tmp_path, share):
    """The system would end the process with SIGBUS."""
    whole = Path(library_path).read_bytes()
    path = tmp_path / "kernel.so"
    path.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(tw.ResourceError, match="is cut off") as error:
        tw.load(path)
    assert error.value.code == "library/open"


def test_a_loaded_kernel_has_no_program(kernels):
    with pytest.raises(tw.ArgumentError, match="comes from a library"):
        kernels["add"].inspect("tir")
    with pytest.raises(tw.ArgumentError, match="not 'everything'"):
        kernels["add"].inspect("everything")


def test_shows_nothing_but_kernels(library_path):
    """What a library exports must not meet the symbols of another copy of the runtime."""
    if not shutil.which("nm"):
        pytest.skip("nm is not installed")
    symbols = subprocess.run(["nm", "-D", "--defined-only", library_path], capture_output=True, text=True, check=True)
    assert [line.split()[-1] for line in symbols.stdout.splitlines()] == ["tilewright_module"]


def test_needs_neither_python_nor_the_compiler(library_path):
    if sys.platform != "linux" or not shutil.which("ldd"):
        pytest.skip("ldd is not installed")
    # What a sanitizer has the loader put in front is none of the library's needs.
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    needed = subprocess.run(["ldd", library_path], capture_output=True, text=True, check=True, env=environment).stdout
    for library in ("libstdc++", "libtilewright", "libpython", "libLLVM"):
        assert library not in needed


def test_a_library_by_several_paths(tmp_path):
    """The same file, whatever it is called: the loader knows it by what it is."""
    x = np.arange(4, dtype="float32")
    folder = tmp_path / "folder"
    folder.mkdir()
    for factor in (2, 3):
        source = f"""@T.prim_func
def scale(A: T.Buffer((4,)), B: T.Buffer((4,))):
    for i in range(4):
        B[i] = A[i] * {factor}
"""
        tw.compile(tw.script.from_source(source)).export(folder, name="scale")
        paths = [folder / "scale.so", tmp_path / "symbolic.so", tmp_path / "hard.so", folder / ".." / "folder/scale.so"]
        for link in paths[1:3]:
            link.unlink(missing_ok=True)
        paths[1].symlink_to(paths[0])
        paths[2].hardlink_to(paths[0])
        kernels = [tw.load(path) for path in paths]
        for kernel in kernels:
            np.testing.assert_array_equal(kernel(x), x * factor)


@pytest.mark.parametrize("parallel", [False, True])
def test_a_library_that_was_exported_again(tmp_path, parallel):
    """With kernels of its former selves in use, and with a pool of threads that keeps one loaded."""
    loop = "T.parallel" if parallel else "range"
    x, loaded = np.arange(4096, dtype="float32"), []
    for factor in (2, 3, 5, 3):
        source = f"""@T.prim_func
def scale(A: T.Buffer((4096,)), B: T.Buffer((4096,))):
    for i in {loop}(4096):
        B[i] = A[i] * {factor}
"""
        tw.compile(tw.script.from_source(source), schedule="as written").export(tmp_path, name="scale")
        loaded.append((factor, tw.load(tmp_path / "scale.so")))
        for expected, kernel in loaded:
            np.testing.assert_array_equal(kernel(x), x * expected)
    loaded.clear()
    gc.collect()
    np.testing.assert_array_equal(tw.load(tmp_path / "scale.so")(x), x * 3)
