"""The other side of a benchmark: the same file, run by the Python of an environment with the `apache-tvm` wheel.

Such an environment: `scripts/setup --bench` makes build/peer, of requirements/peer.txt. Both sides measure the same
requests in turn.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable
from typing import Any, TextIO


def serve(measure: Callable[[Any], Any], answers: TextIO | None = None) -> None:
    """The peer's side: a request per line in, its figures out, by default to standard output."""
    print("ready", file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(measure(json.loads(line))), file=answers, flush=True)


class Peer:
    """The other interpreter, which runs FILE --serve; it answers one request at a time."""

    def __init__(self, python: str, file: str) -> None:
        self.process = subprocess.Popen(
            [python, file, "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        if self._answer().strip() != "ready":
            raise SystemExit(f"{python} has no apache-tvm: see benchmarks/peer.py")

    def _answer(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def measure(self, request: object) -> Any:
        """Return the result of the other side's function for a request."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{json.dumps(request)}\n")
        self.process.stdin.flush()
        return json.loads(self._answer())


def quartiles(theirs: Iterable[float], own: Iterable[float]) -> tuple[float, float, float]:
    """Return the quartiles of the ratios of interleaved rounds."""
    low, middle, high = statistics.quantiles(sorted(a / b for a, b in zip(theirs, own, strict=True)), n=4)
    return low, middle, high
