"""Sparse structures for benchmarks: those that Debian packages ship, and generated ones.

| name | structure | from |
|---|---|---|
| 4elt, copter2, mdual | finite-element meshes: 2 to 44 nonzeros a row, mdual 3 to 4 | libmetis-doc |
| wordnet | a word graph: most rows short, the longest one 673 | wordnet-base |
| rmat16 | a power-law graph of 2^16 nodes (R-MAT) | generated |
| blockmask | a mask of sparse attention, 32 x 32 blocks | generated |
| uniform1, uniform5 | independent nonzeros at densities 0.0125 and 0.05 | generated |

A structure whose package is not installed is omitted. Generated structures are the same in every run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

MESHES = Path("/usr/share/doc/libmetis-dev/examples/graphs")
WORDNET = Path("/usr/share/wordnet")


def from_pairs(rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]) -> csr_array:
    """Return a CSR matrix with a nonzero at each (row, column) pair, without duplicates, with sorted int32 indices."""
    keys = np.unique(rows.astype("int64") * shape[1] + columns)
    indptr = np.searchsorted(keys, np.arange(shape[0] + 1, dtype="int64") * shape[1]).astype("int32")
    values = np.random.default_rng(0).uniform(-1, 1, len(keys))
    return csr_array((values, (keys % shape[1]).astype("int32"), indptr), shape=shape)


def mesh(name: str) -> csr_array | None:
    """Read a graph in the format of METIS: a line with the neighbors of each node, counted from 1."""
    file = MESHES / f"{name}.graph"
    if not file.exists():
        return None
    header, *lines = (line for line in file.read_text().splitlines() if not line.startswith("%"))
    nodes = int(header.split()[0])
    neighbors = [np.array(line.split(), "int64") for line in lines[:nodes]]
    rows = np.repeat(np.arange(nodes), [len(each) for each in neighbors])
    return from_pairs(rows, np.concatenate(neighbors) - 1, (nodes, nodes))


def wordnet() -> csr_array | None:
    """Read the relations between WordNet's sets of synonyms."""
    parts = {"n": "noun", "v": "verb", "a": "adj", "s": "adj", "r": "adv"}
    files = {name: WORDNET / f"data.{name}" for name in sorted(set(parts.values()))}
    if not all(file.exists() for file in files.values()):
        return None
    numbers: dict[tuple[str, str], int] = {}
    relations: list[tuple[int, str, str]] = []
    for name, file in files.items():
        for line in file.read_text(encoding="latin-1").splitlines():
            if line.startswith(" "):
                continue
            words = line.split(" | ")[0].split()
            number = numbers.setdefault((name, words[0]), len(numbers))
            pointers = words[4 + 2 * int(words[3], 16) :]
            for i in range(int(pointers[0])):
                _, offset, part, _ = pointers[1 + 4 * i : 5 + 4 * i]
                relations.append((number, parts[part], offset))
    rows = np.array([row for row, _, _ in relations])
    columns = np.array([numbers[part, offset] for _, part, offset in relations])
    return from_pairs(rows, columns, (len(numbers), len(numbers)))


def rmat(scale: int, edges: int, quarters: tuple[float, float, float] = (0.57, 0.19, 0.19)) -> csr_array:
    """Generate a power-law graph by choosing a quarter of the matrix `scale` times for each edge (Chakrabarti, Zhan
    and Faloutsos, SDM 2004)."""
    random = np.random.default_rng(16)
    rows = columns = np.zeros(edges, "int64")
    a, b, c = quarters
    for _ in range(scale):
        draw = random.random(edges)
        rows = 2 * rows + (draw >= a + b)
        columns = 2 * columns + (((draw >= a) & (draw < a + b)) | (draw >= a + b + c))
    return from_pairs(rows, columns, (2**scale, 2**scale))


def block_mask(length: int, block: int) -> csr_array:
    """Generate a mask of sparse attention: a band of three blocks, two global blocks, and three random ones a row."""
    count = length // block
    random = np.random.default_rng(7)
    places = {(i, j) for i in range(count) for j in (i - 1, i, i + 1) if 0 <= j < count}
    places |= {(i, j) for i in range(count) for j in (0, 1)} | {(j, i) for i in range(count) for j in (0, 1)}
    places |= {(i, int(j)) for i in range(count) for j in random.integers(count, size=3)}
    blocks = np.array(sorted(places))
    inside = np.indices((block, block)).reshape(2, -1)
    rows, columns = (blocks[:, d, None] * block + inside[d] for d in (0, 1))
    return from_pairs(rows.ravel(), columns.ravel(), (length, length))


def uniform(size: int, density: float) -> csr_array:
    """Generate a square matrix of independent nonzeros."""
    places = np.flatnonzero(np.random.default_rng(5).random(size * size) < density)
    return from_pairs(places // size, places % size, (size, size))


MAKERS: dict[str, Callable[[], csr_array | None]] = {
    "4elt": lambda: mesh("4elt"),
    "copter2": lambda: mesh("copter2"),
    "mdual": lambda: mesh("mdual"),
    "wordnet": wordnet,
    "rmat16": lambda: rmat(16, 2_000_000),
    "blockmask": lambda: block_mask(2048, 32),
    "uniform1": lambda: uniform(4096, 0.0125),
    "uniform5": lambda: uniform(2048, 0.05),
}


def structures(names: list[str]) -> Iterator[tuple[str, csr_array]]:
    """Generate the named structures, or all if no name is given. Print the name of each one that is omitted."""
    for name in names or MAKERS:
        matrix = MAKERS[name]()
        if matrix is None:
            print(f"{name}: omitted, its package is not installed (see benchmarks/structures.py)")
        else:
            yield name, matrix
