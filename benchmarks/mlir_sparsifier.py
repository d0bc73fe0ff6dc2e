"""Products of sparse and dense matrices by MLIR's sparsifier, for benchmarks: `apt-get install mlir-19-tools llvm-19`.

The program is a linalg.generic over a tensor in CSR. `mlir-opt --sparsifier` makes loops of it, LLVM makes them fast
for this processor. The sparsifier makes one thread's code. Its sparse-dense products add to their output. Its sampled
products store into the values of a sparse tensor: a custom reduction over elements that are present keeps the structure
(`mlir/test/Dialect/SparseTensor/GPU/gpu_sddmm_lib.mlir` of LLVM 19).
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

import tilewright as tw

TOOLS = {name: f"{name}-19" for name in ("mlir-opt", "mlir-translate", "opt", "llc")}
OBJECT = ("--relocation-model=pic", "--filetype=obj")

CSR = """
#CSR = #sparse_tensor.encoding<{{ map = (i, k) -> (i : dense, k : compressed), posWidth = 32, crdWidth = 32 }}>
"""
PRODUCT = (
    CSR
    + """
func.func @product(%indptr: tensor<?xi32>, %indices: tensor<?xi32>, %values: tensor<?x{real}>,
                   %b: tensor<{k}{j}x{real}>, %out: memref<{i}{j}x{real}>) attributes {{ llvm.emit_c_interface }} {{
  %c = bufferization.to_tensor %out restrict writable : memref<{i}{j}x{real}>
  %a = sparse_tensor.assemble (%indptr, %indices), %values
    : (tensor<?xi32>, tensor<?xi32>), tensor<?x{real}> to tensor<{i}x{k}x{real}, #CSR>
  %sums = linalg.generic {{ indexing_maps = [{maps}], iterator_types = [{kinds}] }}
      ins(%a, %b : tensor<{i}x{k}x{real}, #CSR>, tensor<{k}{j}x{real}>) outs(%c : tensor<{i}{j}x{real}>) {{
  ^bb0(%x: {real}, %y: {real}, %sum: {real}):
    %term = arith.mulf %x, %y : {real}
    %more = arith.addf %sum, %term : {real}
    linalg.yield %more : {real}
  }} -> tensor<{i}{j}x{real}>
  bufferization.materialize_in_destination %sums in restrict writable %out
    : (tensor<{i}{j}x{real}>, memref<{i}{j}x{real}>) -> ()
  return
}}
"""
)
SAMPLED = (
    CSR
    + """
func.func @product(%indptr: tensor<?xi32>, %indices: tensor<?xi32>, %x: tensor<{i}x{k}x{real}>,
                   %y: tensor<{j}x{k}x{real}>, %out: memref<?x{real}>) -> memref<?x{real}>
    attributes {{ llvm.emit_c_interface }} {{
  %values = bufferization.to_tensor %out restrict writable : memref<?x{real}>
  %sampled = sparse_tensor.assemble (%indptr, %indices), %values
    : (tensor<?xi32>, tensor<?xi32>), tensor<?x{real}> to tensor<{i}x{j}x{real}, #CSR>
  %zero = arith.constant 0.0 : {real}
  %sums = linalg.generic {{
      indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>,
                       affine_map<(i, j, k) -> (i, j)>],
      iterator_types = ["parallel", "parallel", "reduction"] }}
      ins(%x, %y : tensor<{i}x{k}x{real}>, tensor<{j}x{k}x{real}>) outs(%sampled : tensor<{i}x{j}x{real}, #CSR>) {{
  ^bb0(%a: {real}, %b: {real}, %sum: {real}):
    %term = sparse_tensor.unary %sum : {real} to {real}
      present = {{
        ^bb0(%any: {real}):
          %product = arith.mulf %a, %b : {real}
          sparse_tensor.yield %product : {real}
      }}
      absent = {{}}
    %more = sparse_tensor.reduce %sum, %term, %zero : {real} {{
      ^bb0(%p: {real}, %q: {real}):
        %both = arith.addf %p, %q : {real}
        sparse_tensor.yield %both : {real}
    }}
    linalg.yield %more : {real}
  }} -> tensor<{i}x{j}x{real}, #CSR>
  %done = sparse_tensor.values %sums : tensor<{i}x{j}x{real}, #CSR> to memref<?x{real}>
  return %done : memref<?x{real}>
}}
"""
)
REALS = {4: "f32", 8: "f64"}
#: index maps and kinds of loops, by the dimensions of the dense operand
LOOPS = {
    1: (
        "affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (k)>, affine_map<(i, k) -> (i)>",
        '"parallel", "reduction"',
    ),
    2: (
        "affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>",
        '"parallel", "parallel", "reduction"',
    ),
}


Calls = dict[str, Callable[[], object]]


def product(a: csr_array, b: np.ndarray, out: np.ndarray) -> Calls:
    """Return calls of ``out = a @ b``, scalar and with vectors; none where a tool is not installed.

    Args:
        a: in CSR, with int32 indices.
        b: a vector, or a matrix in rows.
        out: which the calls write.
    """
    maps, kinds = LOOPS[b.ndim]
    columns = f"x{b.shape[1]}" if b.ndim == 2 else ""
    program = PRODUCT.format(i=a.shape[0], k=a.shape[1], j=columns, real=REALS[b.itemsize], maps=maps, kinds=kinds)
    calls = _calls(program, b.itemsize, [_memref(array) for array in (a.indptr, a.indices, a.data, b, out)])

    def from_zero(call: Callable[[], object]) -> Callable[[], object]:
        return lambda: (out.fill(0), call())

    return {name: from_zero(call) for name, call in calls.items()}


def sampled_product(a: csr_array, x: np.ndarray, y: np.ndarray, out: np.ndarray) -> Calls:
    """Return calls that compute the elements of ``x @ y.T`` that `a` holds, scalar and with vectors; none where a tool
    is not installed.

    Args:
        a: in CSR, with int32 indices.
        x: in rows, one for each row of `a`.
        y: in rows, one for each column of `a`.
        out: one number for each nonzero, which the calls write.
    """
    program = SAMPLED.format(i=a.shape[0], j=a.shape[1], k=x.shape[1], real=REALS[x.itemsize])
    returned = _memref(out)
    return _calls(program, x.itemsize, [returned, *(_memref(array) for array in (a.indptr, a.indices, x, y, out))])


def _calls(program: str, itemsize: int, arguments: Sequence[Any]) -> Calls:
    """Return calls of a program, scalar and with vectors of elements of this size."""
    if not all(map(shutil.which, TOOLS.values())):
        return {}
    lanes = tw.Target("native").vector_bits // (8 * itemsize)
    vectors = f" vl={lanes} reassociate-fp-reductions=true enable-index-optimizations=true"
    pointers = [ctypes.byref(each) for each in arguments]

    def call(options: str) -> Callable[[], object]:
        function = _compiled(program, options)._mlir_ciface_product
        return lambda: function(*pointers)

    return {"MLIR": call(""), "MLIR, vectors": call(vectors)}


def _compiled(program: str, options: str) -> ctypes.CDLL:
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder)
        (made / "a.mlir").write_text(program)
        sparsifier = f"--sparsifier=enable-runtime-library=false{options}"
        for command in (
            [TOOLS["mlir-opt"], "a.mlir", sparsifier, "-o", "b.mlir"],
            [TOOLS["mlir-translate"], "--mlir-to-llvmir", "b.mlir", "-o", "c.ll"],
            [TOOLS["opt"], "-O3", "-mcpu=native", "c.ll", "-o", "d.bc"],
            [TOOLS["llc"], "-O3", "-mcpu=native", "--fp-contract=fast", *OBJECT, "d.bc", "-o", "e.o"],
            ["gcc", "-shared", "e.o", "-o", "f.so"],
        ):
            subprocess.run(command, cwd=made, check=True)
        return ctypes.CDLL(str(made / "f.so"))


def _memref(array: np.ndarray) -> Any:
    """The descriptor of an array, as MLIR's C interface takes it."""

    class MemRef(ctypes.Structure):
        _fields_ = [
            ("allocated", ctypes.c_void_p),
            ("aligned", ctypes.c_void_p),
            ("offset", ctypes.c_int64),
            ("sizes", ctypes.c_int64 * array.ndim),
            ("strides", ctypes.c_int64 * array.ndim),
        ]

    address, steps = array.ctypes.data, [step // array.itemsize for step in array.strides]
    numbers = ctypes.c_int64 * array.ndim
    return MemRef(address, address, 0, numbers(*array.shape), numbers(*steps))
