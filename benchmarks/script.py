"""Parse, print, structural hash and structural equality, all cold, on programs of 10 to 5,000 lines.

    python benchmarks/script.py [--peer PYTHON] [--lines 10 5000] [--rounds 9]

With the interpreter of an environment that has the `apache-tvm` wheel (see peer.py), the same programs run there too,
in turn with ours, and the ratios are printed. Cold: each operation is timed on a program that nothing has looked at
yet, so neither side answers from what it remembered. Rounds of both sides alternate; printed are the medians of the
rounds, and the ratio with the middle half of its values; `us/line` shows whether an operation is linear.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

from peer import Peer, quartiles, serve

LINES = (10, 50, 200, 1000, 5000)
OPERATIONS = ("parse", "print", "hash", "equal")

#: `{block}` is what the dialect of the side calls a block.
NEST = """\
    for i{k}, j{k} in T.grid(16, 16):
        with T.{block}("B{k}"):
            vi, vj = T.axis.remap("SS", [i{k}, j{k}])
            T.reads(A[vi, vj], B[vi, vj])
            T.writes(B[vi, vj])
            B[vi, vj] = B[vi, vj] + A[vi, vj] * T.float32(2) + T.exp(A[vi, vj])
"""


def text_of(lines: int, block: str, decorator: str) -> str:
    head = f'@{decorator}\ndef main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32")):\n'
    nests = max(1, (lines - 2) // NEST.count("\n"))
    return head + "".join(NEST.format(k=k, block=block) for k in range(nests))


def timed(work: Callable[..., Any], *args: Any) -> tuple[float, Any]:
    start = time.perf_counter()
    result = work(*args)
    return time.perf_counter() - start, result


def measure(side: dict[str, Any], lines: int) -> dict[str, float]:
    """Seconds of each operation: the median over some programs if they are small, each looked at once."""
    text = text_of(lines, side["block"], side["decorator"])
    spent: dict[str, list[float]] = {name: [] for name in OPERATIONS}
    for _ in range(max(1, 200 // lines)):
        seconds, program = timed(side["parse"], text)
        spent["parse"].append(seconds)
        spent["print"].append(timed(program.script)[0])
        fresh, other = side["parse"](text), side["parse"](text)
        spent["hash"].append(timed(side["hash"], fresh)[0])
        again = side["parse"](text)
        seconds, same = timed(side["equal"], other, again)
        assert same
        spent["equal"].append(seconds)
    return {name: statistics.median(values) for name, values in spent.items()}


def ours() -> dict[str, Any]:
    import tilewright as tw
    from tilewright import ir

    return {
        "block": "block",
        "decorator": "T.prim_func",
        "parse": tw.script.from_source,
        "hash": ir.structural_hash,
        "equal": ir.structural_equal,
    }


def peer() -> dict[str, Any]:
    import tvm_ffi
    from tvm.script import from_source

    return {
        "block": "sblock",
        "decorator": "T.prim_func(s_tir=True)",
        "parse": from_source,
        "hash": tvm_ffi.structural_hash,
        "equal": tvm_ffi.structural_equal,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", help="Python of an environment with apache-tvm")
    parser.add_argument("--lines", type=int, nargs="*", default=LINES, help="sizes of the programs")
    parser.add_argument("--rounds", type=int, default=9, help="how often each size is measured (at least 2)")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        theirs_side = peer()
        serve(lambda lines: measure(theirs_side, lines))
        return
    side = ours()
    other = Peer(options.peer, __file__) if options.peer else None
    print(
        f"{'lines':>6} {'':8}{'ms':>10}{'us/line':>10}"
        + (f"{'peer ms':>12}{'ratio':>8}{'':4}half of them" if other else "")
    )
    for lines in options.lines:
        measure(side, lines)  # the first of its kind also imports and allocates
        if other:
            other.measure(lines)
        own, theirs = [], []
        for _ in range(options.rounds):
            own.append(measure(side, lines))
            if other:
                theirs.append(other.measure(lines))
        for name in OPERATIONS:
            spent = statistics.median(each[name] for each in own)
            row = f"{lines:>6} {name:8}{spent * 1e3:>10.3f}{spent / lines * 1e6:>10.3f}"
            if other:
                low, middle, high = quartiles([each[name] for each in theirs], [each[name] for each in own])
                theirs_spent = statistics.median(each[name] for each in theirs)
                row += f"{theirs_spent * 1e3:>12.3f}{middle:>8.1f}    {low:.1f} to {high:.1f}"
            print(row, flush=True)


if __name__ == "__main__":
    main()
