"""Lesson 15: a layer of a graph convolutional network, written over axes, scheduled, in other formats, called from C.

python examples/15_graph_layer_over_axes.py [FOLDER]

The layer computes ReLU(A X) for a graph with adjacency matrix A and features X of its nodes. The program says what is
stored by axes, and computes with coordinates. The same program then runs over hyb, ELL in buckets (SparseTIR, arXiv
2207.04606, section 4.1), without a change. FOLDER (by default the current one) gets a picture of a small graph in four
formats, ``formats.svg``, and the layer as a library for C.
"""

import subprocess
import sys
from pathlib import Path

import numpy as np
import scipy.sparse

import tilewright as tw
from tilewright.script import tir as T
from tilewright.sparse import FormatRewriteRule, convert_structure, decompose_format, formats

NODES, EDGES, FEATURES = 4000, 24_000, 32


@T.prim_func
def layer(a: T.handle, x: T.handle, y: T.handle, indptr: T.handle, indices: T.handle, n: T.int32, nnz: T.int32):
    I = T.sp.dense_fixed(n)
    J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices))
    V = T.sp.dense_fixed(n)
    K = T.sp.dense_fixed(FEATURES)
    A = T.sp.match_buffer(a, (I, J), "float32")
    X = T.sp.match_buffer(x, (V, K), "float32")
    Y = T.sp.match_buffer(y, (I, K), "float32")
    with T.sp.iteration([I, J, K], "SRS", "sum") as [i, j, k]:
        with T.init():
            Y[i, k] = T.float32(0)
        Y[i, k] += A[i, j] * X[j, k]
    with T.sp.iteration([I, K], "SS", "relu") as [i, k]:
        Y[i, k] = T.max(Y[i, k], T.float32(0))


def scheduled() -> tw.Schedule:
    """Rows run in parallel, with about as many nonzeros for each thread, and features in vectors."""
    sch = tw.Schedule(layer)
    sch.lower_sparse_iter()
    rows = sch.get_loops("sum0")[0]
    sch.parallel(rows)
    sch.balance(rows, "sum0", "indptr_data")
    sch.parallel(sch.get_loops("relu0")[0])
    for block in ("sum_init", "sum1", "relu0"):
        sch.vectorize(sch.get_loops(block)[-1])
    sch.verify()
    return sch


def graph(nodes: int, edges: int) -> scipy.sparse.csr_array:
    """Generate a graph whose degrees follow a power law, with weights 1 / degree."""
    random = np.random.default_rng(0)
    sources = np.minimum(nodes * random.random(edges) ** 3, nodes - 1).astype("int32")
    ends = (sources, random.integers(nodes, size=edges, dtype="int32"))
    adjacency = scipy.sparse.csr_array((np.ones(edges, "float32"), ends), shape=(nodes, nodes))
    adjacency.sum_duplicates()
    degrees = np.diff(adjacency.indptr)
    adjacency.data = np.repeat(1 / np.maximum(degrees, 1), degrees).astype("float32")
    return adjacency


def coordinates(matrix: scipy.sparse.csr_array) -> tuple[np.ndarray, ...]:
    return tuple(along.astype("int32") for along in matrix.tocoo().coords)


def run_in_buckets(matrix: scipy.sparse.csr_array, x: np.ndarray, y: np.ndarray) -> float:
    """Run the layer on a matrix in the format hyb. Return the fraction of stored elements that are padding."""
    rules = formats.hyb(*matrix.shape, parts=1, widest=4)
    program = decompose_format(layer, "A", rules)
    converted = convert_structure(rules, matrix.shape, coordinates(matrix))
    more = program.arguments(converted, converted.convert_values(matrix.data))
    tw.compile(program.function)(x, y, matrix.indptr, matrix.indices, len(y), matrix.nnz, *more)
    return 1 - matrix.nnz / sum(len(part.source) for part in converted.parts)


CELL, GAP = 9, 24


def picture(matrix: scipy.sparse.csr_array, stored_in: dict[str, list[FormatRewriteRule]]) -> str:
    """Return a picture of a matrix and of what formats store: nonzeros in the color of their row, padding empty."""
    m, n = matrix.shape
    rows = coordinates(matrix)[0]
    color = [f"hsl({360 * row // m}, 60%, 55%)" for row in range(m)]
    shapes: list[str] = []

    def add_cell(left: int, top: int, fill: str) -> None:
        box = f'x="{left}" y="{top}" width="{CELL - 1}" height="{CELL - 1}"'
        shapes.append(f'<rect {box} fill="{fill}" stroke="#999" stroke-width="0.5"/>')

    shapes.append(f'<text x="0" y="12">{m} x {n}, {matrix.nnz} nonzeros</text>')
    for row, column in zip(*coordinates(matrix), strict=True):
        add_cell(int(column) * CELL, GAP + int(row) * CELL, color[row])
    left, height = n * CELL + GAP, m * CELL
    for name, rules in stored_in.items():
        shapes.append(f'<text x="{left}" y="12">{name}</text>')
        top, widest = GAP, 0
        for part in convert_structure(rules, matrix.shape, coordinates(matrix)).parts:
            width = part.rule.axes[-1].extent or 16
            for at, source in enumerate(part.source):
                fill = "none" if source < 0 else color[rows[source]]
                add_cell(left + at % width * CELL, top + at // width * CELL, fill)
            top += (-(-len(part.source) // width) + 1) * CELL if len(part.source) else 0
            widest = max(widest, width)
        left, height = left + max(widest * CELL, 60) + GAP, max(height, top)
    size, font = f'width="{left}" height="{height + GAP}"', 'font-size="11" font-family="sans-serif"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {font}>{"".join(shapes)}</svg>'


CALLER = """
#include <stdio.h>

#include "layer.h"

int main(void) {
  int32_t indptr[] = {0, 2, 2, 3}, indices[] = {0, 2, 1};
  float a[] = {1, 2, -3}, x[3 * 32], y[3 * 32];
  for (int i = 0; i < 3 * 32; ++i) x[i] = (float)(i / 32 + 1);
  int status = layer_arrays(a, x, y, indptr, indices, 3, 3);
  if (status) return printf("%s\\n", layer_last_error()), 1;
  printf("from C: %g %g %g\\n", (double)y[0], (double)y[32], (double)y[64]);
  return 0;
}
"""


def call_from_c(kernel: tw.Kernel, folder: Path) -> str:
    """Export the layer, and call it from a program in C, for a graph of three nodes."""
    library = kernel.export(folder, "layer").library
    (folder / "caller.c").write_text(CALLER)
    link = [str(library), f"-Wl,-rpath,{folder.resolve()}"]
    subprocess.run(["cc", "-std=c11", "-I", folder, folder / "caller.c", *link, "-o", folder / "caller"], check=True)
    return subprocess.run([folder.resolve() / "caller"], check=True, capture_output=True, text=True).stdout


def main(folder: Path) -> None:
    adjacency = graph(NODES, EDGES)
    x = np.random.default_rng(1).standard_normal((NODES, FEATURES)).astype("float32")
    y = np.empty_like(x)
    kernel = tw.compile(scheduled())
    kernel(adjacency.data, x, y, adjacency.indptr, adjacency.indices, NODES, adjacency.nnz)
    want = np.maximum(adjacency @ x, 0)
    np.testing.assert_allclose(y, want, rtol=1e-4, atol=1e-5)
    try:
        import torch
    except ImportError:
        print("PyTorch is not installed")
    else:
        parts = (torch.from_numpy(part) for part in (adjacency.indptr, adjacency.indices, adjacency.data))
        there = torch.relu(torch.sparse_csr_tensor(*parts, size=adjacency.shape) @ torch.from_numpy(x))
        np.testing.assert_allclose(y, there.numpy(), rtol=1e-4, atol=1e-5)
    print(f"CSR: {adjacency.nnz} nonzeros, as SciPy has it")
    padding = run_in_buckets(adjacency, x, y)
    np.testing.assert_allclose(y, want, rtol=1e-4, atol=1e-5)
    print(f"hyb: {padding:.0%} padding, the same result")

    small = graph(24, 60)
    shown = {
        "CSR": formats.csr(24, 24),
        "ELL": formats.ell(24, 24, int(np.diff(small.indptr).max())),
        "hyb": formats.hyb(24, 24, 1, 2),
        "SELL-8": formats.sell(24, 24, 8),
    }
    (folder / "formats.svg").write_text(picture(small, shown))
    print(call_from_c(kernel, folder), end="")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
