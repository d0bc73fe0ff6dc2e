"""Lesson 14: a layer of a graph convolutional network, by sparse products, compared with SciPy and PyTorch.

python examples/14_graph_convolution.py

A layer computes ReLU(A (X W)) for a graph with adjacency matrix A, features X of its nodes and weights W (Kipf and
Welling, ICLR 2017). The matrix is taken over once: its structure is validated, and kernels are compiled for it. Then
attention weights for the edges are computed only where the graph has edges, and replace the values of the matrix.
"""

import statistics
import time
from collections.abc import Callable

import numpy as np
import scipy.sparse

import tilewright as tw

NODES, EDGES, FEATURES, HIDDEN = 20_000, 200_000, 64, 32


def graph(nodes: int, edges: int) -> scipy.sparse.csr_array:
    """Generate a graph whose degrees follow a power law, and normalize each row by its degree."""
    random = np.random.default_rng(0)
    targets = np.minimum(nodes * random.random(edges) ** 3, nodes - 1).astype("int32")
    ends = (random.integers(nodes, size=edges), targets)
    adjacency = scipy.sparse.csr_array((np.ones(edges, "float32"), ends), shape=(nodes, nodes))
    adjacency.sum_duplicates()
    degrees = np.maximum(np.diff(adjacency.indptr), 1)
    adjacency.data = (1 / np.repeat(degrees, np.diff(adjacency.indptr))).astype("float32")
    return adjacency


def seconds(call: Callable[[], object]) -> float:
    call()
    times = []
    for _ in range(7):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main() -> None:
    adjacency = graph(NODES, EDGES)
    random = np.random.default_rng(1)
    features = random.standard_normal((NODES, FEATURES)).astype("float32")
    weights = (random.standard_normal((FEATURES, HIDDEN)) / np.sqrt(FEATURES)).astype("float32")

    a = tw.sparse.from_scipy(adjacency)
    print(a)
    hidden = features @ weights
    out = np.maximum(tw.sparse.spmm(a, hidden), 0)
    np.testing.assert_allclose(out, np.maximum(adjacency @ hidden, 0), rtol=1e-4, atol=1e-5)

    # Attention: scores of pairs of nodes, only where there is an edge, and a softmax over the edges of each node.
    scores = tw.sparse.sddmm(a, out, out).values / np.sqrt(np.float32(HIDDEN))
    starts = adjacency.indptr[:-1][np.diff(adjacency.indptr) > 0]
    lengths = np.diff(adjacency.indptr)[np.diff(adjacency.indptr) > 0]
    powers = np.exp(scores - np.repeat(np.maximum.reduceat(scores, starts), lengths))
    attention = a.with_values(powers / np.repeat(np.add.reduceat(powers, starts), lengths))
    attended = tw.sparse.spmm(attention, out)
    np.testing.assert_allclose(attended, attention.to_scipy() @ out, rtol=1e-4, atol=1e-5)

    times = {
        "Tilewright": seconds(lambda: tw.sparse.spmm(a, hidden)),
        "SciPy": seconds(lambda: adjacency @ hidden),
    }
    try:
        import torch
    except ImportError:
        print("PyTorch is not installed")
    else:
        parts = (torch.from_numpy(part) for part in (adjacency.indptr, adjacency.indices, adjacency.data))
        matrix, dense = torch.sparse_csr_tensor(*parts, size=adjacency.shape), torch.from_numpy(hidden)
        np.testing.assert_allclose(torch.relu(matrix @ dense).numpy(), out, rtol=1e-4, atol=1e-5)
        times["PyTorch"] = seconds(lambda: matrix @ dense)
    for who, taken in times.items():
        print(f"{who:10}  A (X W) in {1e3 * taken:6.2f} ms")


if __name__ == "__main__":
    main()
