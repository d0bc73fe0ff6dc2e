"""Time of the features of a candidate, and in which of them we differ from apache-tvm.

    python benchmarks/features.py [--peer PYTHON] [--rounds 9] [--candidates 64]

A batch of the same candidate goes through the extractor on one thread; a round takes the best of three batches. With
the interpreter of an environment that has `apache-tvm` (see peer.py), rounds of both sides alternate, and the columns
whose values differ by more than a thousandth are listed.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from peer import Peer, quartiles, serve

from schedule import CONV2D, PRODUCT, Side, chain, tile_conv2d, tile_product

CANDIDATES: dict[str, tuple[str, Callable[[Any, Side], None]]] = {
    "product, tiled": (PRODUCT, tile_product),
    "conv2d, tiled": (CONV2D, tile_conv2d),
    "product": (PRODUCT, lambda sch, side: None),
    "conv2d": (CONV2D, lambda sch, side: None),
    "chain of 40": (chain(40), lambda sch, side: None),
}


class Extraction:
    """One side, with what it takes to call an extractor."""

    def __init__(self, *, peer: bool) -> None:
        self.side = Side(peer=peer)
        if peer:
            from tvm.s_tir import meta_schedule as ms
            from tvm.target import Target

            self.candidate = lambda sch: ms.MeasureCandidate(sch, [])
            self.context = ms.TuneContext(target=Target({"kind": "llvm", "num-cores": 1}), num_threads=1)
            self.extractor = ms.feature_extractor.PerStoreFeature()
        else:
            from types import SimpleNamespace

            from tilewright import Target, _core

            self.candidate = lambda sch: SimpleNamespace(sch=sch)
            self.context = _core.TuneContext()
            self.context.target = Target("llvm -num-cores=1")
            self.extractor = _core.PerStoreFeature()

    def measure(self, request: list[Any]) -> dict[str, Any]:
        """Seconds for one of so many candidates, and its features."""
        name, count = request
        text, schedule = CANDIDATES[name]
        sch = self.side.fresh(text)
        schedule(sch, self.side)
        candidates = [self.candidate(sch) for _ in range(count)]
        spent = []
        for _ in range(3):
            start = time.perf_counter()
            matrices = self.extractor.extract_from(self.context, candidates)
            spent.append((time.perf_counter() - start) / count)
        matrix = matrices[0]
        rows = matrix.numpy() if hasattr(matrix, "numpy") else matrix
        return {"seconds": min(spent), "features": rows.tolist()}


def differing(own: list[list[float]], theirs: list[list[float]]) -> str:
    """Which columns differ, and in how many rows."""
    a, b = np.array(own), np.array(theirs)
    if a.shape != b.shape:
        return f"{a.shape[0]} rows, the peer has {b.shape[0]}"
    differs = ~np.isclose(a, b, rtol=1e-3, atol=1e-3)
    columns = ", ".join(f"{column} ({differs[:, column].sum()})" for column in np.nonzero(differs.any(axis=0))[0])
    return columns or "none"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", help="Python of an environment with apache-tvm")
    parser.add_argument("--rounds", type=int, default=9, help="how often each batch is measured (at least 2)")
    parser.add_argument("--candidates", type=int, default=64, help="in a batch")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    extraction = Extraction(peer=options.serve)
    if options.serve:
        serve(extraction.measure)
        return
    other = Peer(options.peer, __file__) if options.peer else None
    heading = f"{'peer us':>12}{'ratio':>8}{'':4}{'half of them':16}columns that differ" if other else ""
    print(f"{'':20}{'us':>8}{heading}")
    for name in CANDIDATES:
        own, theirs, differs = [], [], ""
        for _ in range(options.rounds):
            mine = extraction.measure([name, options.candidates])
            own.append(mine["seconds"])
            if other:
                answer = other.measure([name, options.candidates])
                theirs.append(answer["seconds"])
                differs = differing(mine["features"], answer["features"])
        row = f"{name:20}{statistics.median(own) * 1e6:>8.1f}"
        if other:
            low, middle, high = quartiles(theirs, own)
            half = f"{low:.0f} to {high:.0f}"
            row += f"{statistics.median(theirs) * 1e6:>12.1f}{middle:>8.0f}    {half:16}{differs}"
        print(row, flush=True)


if __name__ == "__main__":
    main()
