"""NAME_validate: functions that check what a program declares of its arrays, from Python and from C."""

import pickle
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.script import from_source
from tilewright.script import tir as T


def declaring(order: str, segments: bool) -> tw.ir.PrimFunc:
    """A program over ragged rows of integers."""

    @T.prim_func
    def rows(p: T.handle, v: T.handle, m: T.int32, n: T.int32):
        nnz = T.int32(is_size_var=True)
        P = T.match_buffer(p, (m + 1,), "int32")
        V = T.match_buffer(v, (nnz,), "int64")
        T.assume_buffer_domain(V, [2, n], order=order, segments=P if segments else None)
        T.assume_buffer_domain(P, [0, nnz + 1], order="nondecreasing")
        T.evaluate(0)

    return rows


def broken(pointers: np.ndarray, values: np.ndarray, n: int, order: str, segments: bool) -> str:
    """The first position that breaks a declaration, in the order of these, but offsets before what they are offsets
    of; "" where none does."""
    declared = [("P", pointers, 0, len(values) + 1, "nondecreasing"), ("V", values, 2, n, order)]
    for name, array, least, end, how in declared if segments else declared[::-1]:
        for at, value in enumerate(array):
            if not least <= value < end:
                return f"{name}[{at}] is not in ["
        starts = {*map(int, pointers)} if name == "V" and segments else set()
        for at in range(1, len(array)):
            step = int(array[at]) - int(array[at - 1])
            if how and at not in starts and (step < 0 or (step == 0 and how == "increasing")):
                rule = "does not exceed" if how == "increasing" else "is less than"
                return f"{name}[{at}] {rule} the value before it"
    return ""


@pytest.mark.parametrize("segments", [False, True])
@pytest.mark.parametrize("order", ["", "nondecreasing", "increasing"])
def test_first_positions(order: str, segments: bool) -> None:
    if segments and not order:
        return
    kernel = tw.compile(declaring(order, segments))
    random = np.random.default_rng(len(order))
    found = set()
    for _ in range(200):
        lengths = random.integers(0, 4, 6)
        pointers = np.concatenate([[0], np.cumsum(lengths)]).astype("int32")
        parts = [np.sort(random.choice(np.arange(2, 60), size, replace=False)) for size in lengths]
        values = np.concatenate(parts).astype("int64")
        if not segments:
            values.sort()
        for array in (pointers, values):
            if random.random() < 0.3 and len(array):
                at = int(random.integers(len(array)))
                array[at] = random.choice([-1, 1, 60, 5, 2**31 - 1, array[at - 1]])
        want = broken(pointers, values, 60, order, segments)
        found.add(want.split("[")[0])
        if not want:
            kernel.validate(pointers, values, 6, 60)
            continue
        with pytest.raises(tw.ArgumentError) as caught:
            kernel.validate(pointers, values, 6, 60)
        assert want in caught.value.message and "T.assume_buffer_domain" in caught.value.hint
    assert found == {"", "P", "V"}


def test_distinct_values() -> None:
    kernel = tw.compile(declaring("distinct", segments=False))
    random = np.random.default_rng(0)
    found = set()
    for _ in range(100):
        values = random.choice(np.arange(2, 60), int(random.integers(0, 20)), replace=False).astype("int64")
        if random.random() < 0.6 and len(values):
            values[int(random.integers(len(values)))] = random.choice([1, 60, 2**40, values[0], values[-1]])
        outside = np.flatnonzero((values < 2) | (values >= 60))
        repeated = [at for at in range(len(values)) if values[at] in values[:at]]
        pointers = np.array([0, len(values)], "int32")
        found.add((len(outside) > 0, len(repeated) > 0))
        if not len(outside) and not repeated:
            kernel.validate(pointers, values, 1, 60)
            continue
        with pytest.raises(tw.ArgumentError) as caught:
            kernel.validate(pointers, values, 1, 60)
        want = f"V[{outside[0]}] is not in" if len(outside) else f"V[{repeated[0]}] is the value of an earlier element"
        assert want in caught.value.message
    assert found == {(False, False), (True, False), (False, True)}


def test_disjoint_arrays() -> None:
    @T.prim_func
    def lists(r: T.handle, s: T.handle, t: T.handle, low: T.int32, n: T.int32):
        a, b, c = T.int32(is_size_var=True), T.int32(is_size_var=True), T.int32(is_size_var=True)
        R = T.match_buffer(r, (a,), "int32")
        S = T.match_buffer(s, (b,), "int64")
        U = T.match_buffer(t, (c,), "int32")
        T.assume_buffer_domain(R, [low, n])
        T.assume_buffer_domain(S, [low - 2, n - 1])
        T.assume_buffer_domain(U, [low, n])
        T.assume_disjoint(R, S, U)
        T.evaluate(0)

    kernel = tw.compile(lists)
    random = np.random.default_rng(0)
    found = set()
    for _ in range(200):
        sizes = random.integers(0, 4, 3)
        values = random.permutation(np.arange(-3, 12))[: sizes.sum()]
        parts = np.split(values, np.cumsum(sizes)[:2])
        arrays = [each.astype(t) for each, t in zip(parts, ("i4", "i8", "i4"), strict=True)]
        for array in arrays:
            if random.random() < 0.2 and len(array):
                array[0] = random.integers(-6, 14)
        want = ""
        for name, array, least, end in zip("RSU", arrays, (-3, -5, -3), (12, 11, 12), strict=True):
            for at, value in enumerate(array):
                want = want or ("" if least <= value < end else f"{name}[{at}] is not in [")
        for number, (name, array) in enumerate(zip("RSU", arrays, strict=True)):
            before = {int(value) for each in arrays[:number] for value in each}
            for at, value in enumerate(array):
                want = want or (f"{name}[{at}] is a value of another buffer" if int(value) in before else "")
        found.add(want.split("] ")[-1])
        if not want:
            kernel.validate(*arrays, -3, 12)
            continue
        with pytest.raises(tw.ArgumentError) as caught:
            kernel.validate(*arrays, -3, 12)
        assert want in caught.value.message
    assert len(found) == 3


def test_arrays_of_several_dimensions() -> None:
    @T.prim_func
    def cells(v: T.handle):
        m = T.int32(is_size_var=True)
        V = T.match_buffer(v, (m, 3), "int32")
        T.assume_buffer_domain(V, [0, 10])
        T.evaluate(0)

    values = np.zeros((4, 3), "int32")
    kernel = tw.compile(cells)
    kernel.validate(values)
    values[2, 1] = 10
    with pytest.raises(tw.ArgumentError, match=r"V\[7\] is not in \[0, 10\)"):
        kernel.validate(values)


def test_programs_without_declarations_have_nothing_to_check(tmp_path: Path) -> None:
    @T.prim_func
    def double(x: T.Buffer((4,)), y: T.Buffer((4,))):
        for i in range(4):
            y[i] = x[i] * T.float32(2)

    kernel = tw.compile(double)
    kernel.validate("anything")
    assert "validate" not in kernel.export(tmp_path).header.read_text()


MAIN = r"""
#include <stdio.h>
#include "product.h"
int main(void) {
  int32_t indptr[4] = {0, 2, 2, 3}, indices[3] = {0, 3, 1}, damaged[3] = {0, 4, 1}, descends[4] = {0, 2, 1, 3};
  float values[3] = {1, 2, 3}, b[16], c[12] = {0};
  for (int i = 0; i < 16; ++i) b[i] = i;
  if (product_validate_arrays(indptr, indices, values, b, c, 3, 4, 3) != TW_OK) return 1;
  if (product_arrays(indptr, indices, values, b, c, 3, 4, 3) != TW_OK) return 2;
  for (int i = 0; i < 12; ++i) printf("%g ", c[i]);
  if (product_validate_arrays(indptr, damaged, values, b, c, 3, 4, 3) != TW_ERROR_ASSERTION) return 3;
  printf("\n%s\n", product_validate_last_error());
  if (product_validate_arrays(descends, indices, values, b, c, 3, 4, 3) != TW_ERROR_ASSERTION) return 4;
  printf("%s\n", product_validate_last_error());
  return 0;
}
"""


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Any:
    kernel = tw.compile(tw.sparse.programs.spmm(4))
    return kernel.export(tmp_path_factory.mktemp("export"), name="product")


def test_from_c(exported: Any, tmp_path: Path) -> None:
    source = tmp_path / "main.c"
    source.write_text(MAIN)
    command = ["cc", "-Wall", "-Werror", f"-I{exported.header.parent}", str(source), str(exported.library)]
    subprocess.run([*command, "-o", str(tmp_path / "main")], check=True)
    environment = {"LD_LIBRARY_PATH": str(exported.library.parent)}
    out = subprocess.run([str(tmp_path / "main")], capture_output=True, text=True, env=environment)
    assert out.returncode == 0, out.stdout
    lines = out.stdout.splitlines()
    assert lines[0].split() == ["24", "27", "30", "33", "0", "0", "0", "0", "12", "15", "18", "21"]
    assert lines[1].startswith("J[1] is not in [0, n)") and "P[2] is less than the value before it" in out.stdout


def test_loaded_again(exported: Any) -> None:
    for file in (exported.library, exported.object):
        kernel = tw.load(file)
        assert isinstance(kernel, tw.Kernel) and kernel.name == "product"
        for each in (kernel, pickle.loads(pickle.dumps(kernel))):
            check_validation(each)


def check_validation(kernel: tw.Kernel) -> None:
    arrays = [np.zeros(shape, "float32") for shape in ((1,), (4, 4), (1, 4))]
    indptr, indices = np.array([0, 1], "int32"), np.array([3], "int32")
    kernel.validate(indptr, indices, *arrays)
    with pytest.raises(tw.ArgumentError, match=r"J\[0\] is not in \[0, n\)"):
        kernel.validate(indptr, indices + 1, *arrays)


def test_own_functions_keep_their_names(tmp_path: Path) -> None:
    """A function whose name ends so is what its program says."""

    @T.prim_func
    def f(p: T.Buffer((4,), "int32")):
        T.func_attr({"global_symbol": "f"})
        T.assume_buffer_domain(p, [0, 4])
        T.evaluate(0)

    @T.prim_func
    def own(p: T.Buffer((4,), "int32"), q: T.Buffer((4,), "int32")):
        T.func_attr({"global_symbol": "f_validate"})
        for i in range(4):
            q[i] = p[i] + 1

    module = tw.ir.IRModule({"f": f, "f_validate": own})
    exported = tw.compile(module).export(tmp_path, "both")
    for file in (exported.library, exported.object):
        loaded = tw.load(file)
        assert {*loaded} == {"f", "f_validate"}
        p, q = np.arange(4, dtype="int32"), np.zeros(4, "int32")
        loaded["f_validate"](p, q)
        assert (q == p + 1).all()


def test_a_validator_replaces_no_function_of_its_name_in_the_module(tmp_path: Path) -> None:
    @T.prim_func
    def gather(I: T.Buffer((4,), "int32"), A: T.Buffer((8,), "float32"), B: T.Buffer((4,), "float32")):
        T.assume_buffer_domain(I, [0, 8])
        for i in range(4):
            B[i] = A[I[i]]

    @T.prim_func
    def double(A: T.Buffer((8,), "float32")):
        for i in range(8):
            A[i] = A[i] * T.float32(2)

    kernels = tw.compile(tw.ir.IRModule({"gather": gather, "gather_validate": double}))
    loaded = tw.load(kernels.export(tmp_path, "both").library)
    assert set(kernels) == set(loaded) == {"gather", "double"}
    a, b = np.arange(8, dtype="float32"), np.zeros(4, "float32")
    loaded["double"](a)
    loaded["gather"](np.array([0, 7, 3, 3], "int32"), a, b)
    np.testing.assert_array_equal(b, [0, 14, 6, 6])
    with pytest.raises(tw.ArgumentError, match=r"I\[1\] is not in \["):
        loaded["gather"].validate(np.array([0, 8, 3, 3], "int32"), a, b)


TREE = """@T.prim_func
def f(
    y: T.handle, ptr: T.handle, rows: T.handle, near: T.handle,
    m: T.int32, c: T.int32, z: T.int32, w: T.int32, n: T.int32
):
    I = T.sp.dense_fixed(m)
    R = T.sp.dense_varied(I, (c, z), ptr)
    J = T.sp.compressed_fixed(R, (n, w), near)
    U = T.sp.compressed_fixed(I, (n, w), rows, sorted=False)
    Y = T.sp.match_buffer(y, (I,), "float32")
    with T.sp.iteration([I], "S", "zero") as [i]:
        Y[i] = T.float32(0)
"""


def test_structure_of_axes() -> None:
    """The first position that breaks what an axis demands: rows of one length that do not ascend, rows longer than
    their axis, coordinates outside of it."""
    kernel = tw.compile(from_source(TREE))
    random = np.random.default_rng(0)
    found = set()
    for _ in range(200):
        m, c, w, n = (int(each) for each in random.integers(1, 5, 4))
        w = min(w, n)
        pointers = np.concatenate([[0], np.cumsum(random.integers(0, c + 1, m))]).astype("int32")
        z = int(pointers[-1])
        choose = lambda: random.permutation(n)[:w]  # noqa: B023, E731
        rows = np.concatenate([choose() for _ in range(m)]).astype("int32")
        near = np.concatenate([np.sort(choose()) for _ in range(z)] or [rows[:0]]).astype("int32")
        for array in (pointers, rows, near):
            if random.random() < 0.4 and len(array):
                array[random.integers(len(array))] = random.choice([-1, 0, 1, 2, 5, 20])
        want = ""
        for at, value in enumerate(pointers):
            want = want or ("" if 0 <= value <= z else f"ptr_data[{at}] is not in")
        for at in range(1, m + 1):
            want = want or ("" if pointers[at - 1] <= pointers[at] else f"ptr_data[{at}] is less than")
        for at in range(1, m + 1):
            too_long = pointers[at] - pointers[at - 1] > c
            want = want or (f"ptr_data[{at}] exceeds the value before it by more than c" if too_long else "")
        for name, array in (("near", near), ("rows", rows)):
            for at, value in enumerate(array):
                want = want or ("" if 0 <= value < n else f"{name}_data[{at}] is not in")
            for at in range(1, len(array)):
                descends = name == "near" and at % w and array[at] <= array[at - 1]
                want = want or (f"near_data[{at}] does not exceed the value before it" if descends else "")
        found.add(re.sub(r"\[.*?\]", "", want))
        given = np.empty(m, "float32"), pointers, rows, near, m, c, z, w, n
        if not want:
            kernel.validate(*given)
            continue
        with pytest.raises(tw.ArgumentError) as caught:
            kernel.validate(*given)
        assert want in caught.value.message and "by an axis" in caught.value.hint
    assert found == {
        "",
        "ptr_data is not in",
        "ptr_data is less than",
        "ptr_data exceeds the value before it by more than c",
        "near_data is not in",
        "near_data does not exceed the value before it",
        "rows_data is not in",
    }


def test_axes_that_share_coordinates() -> None:
    """What each of the axes demands holds for the array that they share, whatever the program declares itself."""
    kernel = tw.compile(
        from_source("""@T.prim_func
def f(y: T.handle, near: T.Buffer((12,), "int32")):
    T.assume_buffer_domain(near, [0, 20])
    I = T.sp.dense_fixed(4)
    K = T.sp.dense_fixed(3)
    J = T.sp.compressed_fixed(I, (20, 3), near)
    L = T.sp.compressed_fixed(K, (20, 4), near)
    Y = T.sp.match_buffer(y, (I,), "float32")
    with T.sp.iteration([I], "S", "zero") as [i]:
        Y[i] = T.float32(0)
""")
    )
    out = np.empty(4, "float32")
    kernel.validate(out, np.arange(12, dtype="int32"))
    for at in (4, 6):  # where rows of one of the axes begin
        near = np.arange(12, dtype="int32")
        near[at:] -= 2
        with pytest.raises(tw.ArgumentError, match=rf"near\[{at}\] does not exceed"):
            kernel.validate(out, near)
