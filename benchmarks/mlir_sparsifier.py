"""Products of sparse and dense matrices by MLIR's sparsifier, for benchmarks: `apt-get install mlir-19-tools llvm-19`.

The program is a linalg.generic over a tensor in CSR. `mlir-opt --sparsifier` makes loops of it, LLVM makes them fast
for this processor. The sparsifier makes one thread's code, and adds to its output.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

import tilewright as tw

TOOLS = {name: f"{name}-19" for name in ("mlir-opt", "mlir-translate", "opt", "llc")}
OBJECT = ("--relocation-model=pic", "--filetype=obj")

PROGRAM = """
#CSR = #sparse_tensor.encoding<{{ map = (i, k) -> (i : dense, k : compressed), posWidth = 32, crdWidth = 32 }}>
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


def calls(a: csr_array, b: np.ndarray, out: np.ndarray) -> dict[str, Callable[[], object]]:
    """Return calls of ``out = a @ b``, scalar and with vectors; none where a tool is not installed.

    Args:
        a: in CSR, with int32 indices.
        b: a vector, or a matrix in rows.
        out: which the calls write.
    """
    if not all(map(shutil.which, TOOLS.values())):
        return {}
    maps, kinds = LOOPS[b.ndim]
    columns = f"x{b.shape[1]}" if b.ndim == 2 else ""
    real = {4: "f32", 8: "f64"}[b.itemsize]
    program = PROGRAM.format(i=a.shape[0], k=a.shape[1], j=columns, real=real, maps=maps, kinds=kinds)
    lanes = tw.Target("native").vector_bits // (8 * b.itemsize)
    vectors = f" vl={lanes} reassociate-fp-reductions=true enable-index-optimizations=true"
    arguments = [_memref(array) for array in (a.indptr, a.indices, a.data, b, out)]
    pointers = [ctypes.byref(each) for each in arguments]

    def call(options: str) -> Callable[[], object]:
        function = _compiled(program, options)._mlir_ciface_product
        return lambda: (out.fill(0), function(*pointers))

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
