"""Kernels over sparse matrices, instrumented by LLVM's thread sanitizer: two threads never race.

A build of ours with sanitizers does not instrument generated code. Here, LLVM does, and the program around the kernel
runs each parallel loop on two threads.
"""

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import tilewright as tw
from fuzz.format_rules import SPMV as spmv
from tilewright.script import tir as T
from tilewright.sparse import convert_structure, decompose_format, formats, programs, row_copies
from tilewright.sparse.convert import LANES, to_sell

from .test_decompose import spmm

PACKAGE = Path(tw.__file__).parent
CALLER = Path(__file__).with_name("thread_sanitizer.cc")
#: features whose stores LLVM instruments: it leaves out those under a mask
TARGET = "llvm -mcpu=x86-64-v2 -num-cores=2"
CODES = {"i": 0, "u": 1, "f": 2}
M, N, K = 60, 40, 4


class Sanitized:
    """Calls instrumented copies of kernels."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.caller = folder, folder / "caller.o"
        options = ["-std=c++20", "-fsanitize=thread", "-fno-builtin", f"-I{PACKAGE / 'include'}"]
        subprocess.run(["g++", *options, "-c", CALLER, "-o", self.caller], check=True)

    def build(self, kernel: tw.Kernel) -> None:
        """Make a program that calls the kernel."""
        text = str(kernel.inspect("llvm"))
        # Functions with this attribute are instrumented.
        text = re.sub(r"^(define [^{]*) \{$", r"\1 sanitize_thread {", text, flags=re.MULTILINE)
        (self.folder / "kernel.ll").write_text(text)
        passes = ["opt-19", "-passes=tsan-module,function(tsan)", "kernel.ll", "-o", "kernel.bc"]
        compiler = ["llc-19", "-filetype=obj", "-relocation-model=pic", "kernel.bc", "-o", "kernel.o"]
        entry = f"-Wl,--defsym=called_kernel={kernel.name}"
        libraries = [PACKAGE / "libtilewright_runtime.a", "-lpthread", "-ldl", "-lm"]
        linker = ["g++", "-fsanitize=thread", entry, self.caller, "kernel.o", *libraries, "-o", "program"]
        for command in (passes, compiler, linker):
            subprocess.run(command, check=True, cwd=self.folder)

    def reported(self, kernel: tw.Kernel, arguments: Sequence[Any]) -> str:
        """Call an instrumented copy of a kernel. Return what the sanitizer reports."""
        self.build(kernel)
        lines = []
        for number, value in enumerate(arguments):
            if isinstance(value, np.ndarray):
                path = self.folder / f"{number}.bin"
                value.tofile(path)
                extents = " ".join(map(str, value.shape))
                lines.append(f"tensor {CODES[value.dtype.kind]} {8 * value.dtype.itemsize} {path} {extents}")
            else:
                lines.append(f"scalar {value}")
        (self.folder / "arguments").write_text("\n".join(lines) + "\n")
        # The sanitizer wants addresses that are not randomized.
        call = ["setarch", "-R", self.folder / "program", "arguments"]
        environment = {"TSAN_OPTIONS": "exitcode=66"}
        done = subprocess.run(call, cwd=self.folder, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode in (0, 66), done.stderr
        for number, value in enumerate(arguments):
            if isinstance(value, np.ndarray) and value.flags.writeable:
                value[...] = np.fromfile(self.folder / f"{number}.bin", value.dtype).reshape(value.shape)
        return done.stderr


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory: pytest.TempPathFactory) -> Sanitized:
    return Sanitized(tmp_path_factory.mktemp("sanitized"))


def matrix_of() -> Any:
    random = np.random.default_rng(0)
    mask = random.random((M, N)) < 0.2
    mask[M // 2] = True
    return scipy.sparse.csr_matrix(np.where(mask, random.integers(1, 5, (M, N)), 0).astype("float32"))


def over_format(rules: list[Any], func: Any = spmm, columns: int = K) -> tuple[Any, list[Any], int, np.ndarray]:
    """The program over a format, its arguments, the position of the result, and what it will hold."""
    matrix = matrix_of()
    program = decompose_format(func, "A", rules)
    converted = convert_structure(rules, matrix.shape, matrix.tocoo().coords)
    random = np.random.default_rng(1)
    if func is spmv:
        dense, sizes = random.integers(-4, 5, N).astype("float64"), [M, N, matrix.nnz]
        matrix = matrix.astype("float64")
    else:
        dense, sizes = random.integers(-4, 5, (N, columns)).astype("float32"), [M, N, columns, matrix.nnz]
    more = program.arguments(converted, converted.convert_values(matrix.data))
    want = matrix @ dense
    out = np.full(want.shape, np.nan, want.dtype)
    return program.function, [dense, out, matrix.indptr, matrix.indices, *sizes, *more], 1, want


#: rows in parallel; buckets of disjoint rows; columns in parallel, since rows occur several times; copies of the result
CASES = {
    "csr": lambda: over_format(formats.csr(M, N)),
    "bsr": lambda: over_format(formats.bsr(M, N, 4)),
    "sell": lambda: over_format(formats.sell(M, N, 4)),
    "hyb": lambda: over_format(formats.hyb(M, N, 1, 3, cut=False)),
    "hyb with cut rows": lambda: over_format(formats.hyb(M, N, 2, 1)),
    "coo": lambda: over_format(formats.coo(M, N), columns=40),
    "spmv of coo": lambda: over_format(formats.coo(M, N), spmv),
    "spmv of csc": lambda: over_format(formats.csc(M, N), spmv),
}


@pytest.mark.parametrize("name", CASES)
def test_threads_do_not_race(name: str, sanitized: Sanitized) -> None:
    func, arguments, output, want = CASES[name]()
    kernel = tw.compile(func, TARGET)
    assert "sch.parallel(" in str(kernel.inspect("schedule"))
    assert sanitized.reported(kernel, arguments) == ""
    np.testing.assert_array_equal(arguments[output], want)


def test_tasks_of_several_formats_do_not_race(sanitized: Sanitized) -> None:
    rules = formats.hyb(M, N, 1, 3, cut=False)
    func, arguments, output, want = over_format(rules)
    sch = tw.Schedule(func)
    sch.lower_sparse_iter()
    sch.parallel(sch.horizontal_fuse(*(sch.get_loops(f"spmm_{rule.name}0")[0] for rule in rules)))
    assert sanitized.reported(tw.compile(sch, TARGET), arguments) == ""
    np.testing.assert_array_equal(arguments[output], want)


@pytest.mark.parametrize("name", ["spmm", "spmv", "spmv_sell", "sddmm"])
def test_operators_do_not_race(name: str, sanitized: Sanitized) -> None:
    """The programs of tw.sparse."""
    matrix = matrix_of()
    random = np.random.default_rng(1)
    x, y = (random.integers(-4, 5, (extent, K)).astype("float32") for extent in (M, N))
    csr, vector = [matrix.indptr, matrix.indices], y[:, 0].copy()
    sell, values = to_sell(tw.sparse.from_scipy(matrix, copy=True))
    slices = [sell.starts, sell.indices, values, sell.lengths, sell.full, sell.order]
    func, given, want = {
        "spmm": lambda: (programs.spmm(K), [*csr, matrix.data, y], matrix @ y),
        "spmv": lambda: (programs.spmv(), [*csr, matrix.data, vector], matrix @ vector),
        "spmv_sell": lambda: (programs.spmv_sell(LANES), [*slices, vector], matrix @ vector),
        "sddmm": lambda: (programs.sddmm(K), [*csr, x, y], (x @ y.T)[matrix.toarray() != 0]),
    }[name]()
    out = np.full(want.shape, np.nan, "float32")
    assert sanitized.reported(tw.compile(func, TARGET), [*given, out]) == ""
    np.testing.assert_array_equal(out, want)


@pytest.mark.parametrize("rules", [formats.ell(M, N, N), formats.padded_csr(M, N, 4), formats.sell(M, N, 4)])
def test_conversions_do_not_race(rules: list[Any], sanitized: Sanitized, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels that copy rows store whole vectors. Tasks are smaller here than elsewhere, so that there are several."""
    monkeypatch.setattr(row_copies, "OF_TASK", 7)
    matrix = matrix_of()
    (part,) = convert_structure(rules, matrix.shape, matrix.tocoo().coords).parts
    copies = part._copies
    assert isinstance(copies, row_copies.RowCopies)
    write = row_copies._copying_rows if copies._by_rows.lanes == 1 else row_copies._copying_lanes
    program = write(copies._by_rows, "int32", copies._is_ordered, "float32")
    stored = np.full(part.size, np.nan, "float32")
    arguments = [*copies._rows, copies._groups, matrix.data, stored]
    assert sanitized.reported(tw.compile(program, TARGET, schedule="as written"), arguments) == ""
    np.testing.assert_array_equal(stored, np.where(part.source < 0, 0, matrix.data[part.source]))


def test_atomic_updates_do_not_race(sanitized: Sanitized) -> None:
    @T.prim_func
    def sums(a: T.handle, y: T.handle, p: T.handle, q: T.handle, m: T.int32, n: T.int32, nnz: T.int32):
        I = T.sp.dense_fixed(m)
        J = T.sp.compressed_varied(I, (n, nnz), (p, q))
        J_all = T.sp.dense_fixed(n)
        A = T.sp.match_buffer(a, (I, J), "float32")
        Y = T.sp.match_buffer(y, (J_all,), "float32")
        with T.sp.iteration([I, J], "RR", "sums") as [i, j]:
            T.sp.iteration_attr({"atomic": True})
            Y[j] = Y[j] + A[i, j]

    matrix = matrix_of()
    sch = tw.Schedule(sums)
    sch.lower_sparse_iter()
    sch.parallel(sch.get_loops("sums0")[0])
    y = np.zeros(N, "float32")
    arguments = [matrix.data, y, matrix.indptr, matrix.indices, M, N, matrix.nnz]
    assert sanitized.reported(tw.compile(sch, TARGET), arguments) == ""
    np.testing.assert_array_equal(y, matrix.sum(0).A1)


def test_a_race_is_reported(sanitized: Sanitized) -> None:
    """A list of rows that is declared to be distinct, and is not: kernels trust structures."""

    @T.prim_func
    def scattered(rows: T.handle, x: T.handle, y: T.handle, m: T.int32, n: T.int32):
        R = T.match_buffer(rows, (n,), "int32")
        X = T.match_buffer(x, (n,), "float32")
        Y = T.match_buffer(y, (m,), "float32")
        for i in T.parallel(n):
            with T.block("add"):
                vi = T.axis.spatial(n, i)
                T.assume_buffer_domain(R, [0, m], order="distinct")
                Y[R[vi]] = Y[R[vi]] + X[vi]

    kernel = tw.compile(scattered, TARGET, schedule="as written")
    for rows, found in ((np.arange(8), False), (np.arange(8) // 2 % 2, True)):
        arguments = [rows.astype("int32"), np.ones(8, "float32"), np.zeros(8, "float32"), 8, 8]
        assert ("data race" in sanitized.reported(kernel, arguments)) == found
