"""The random test as a program: see scripts/fuzz."""

from __future__ import annotations

import argparse
import signal
import sys
from collections import Counter

from fuzz.session import Report, Session
from fuzz.steps import STEPS


def table(counts: Counter[str]) -> str:
    """What was drawn, and for each step how often it was accepted and refused."""
    lines = [f"{counts['programs']} programs, {counts['sequences']} sequences, {counts['kernels']} kernels"]
    for name in sorted(STEPS):
        lines.append(f"  {name:24}{counts[f'{name} accepted']:8} accepted{counts[f'{name} refused']:8} refused")
    rest = {key: count for key, count in counts.items() if ": " in key or key.startswith("refused by")}
    lines += [f"  {count:8}  {key}" for key, count in sorted(rest.items(), key=lambda item: (-item[1], item[0]))]
    return "\n".join(lines)


def summary(result: Report, seed: int) -> str:
    return (
        f"seeds {seed} to {result.next_seed - 1} in {result.seconds:.0f} s: {result.counts['sequences']} sequences, "
        f"{result.counts['findings']} findings; go on with --seed {result.next_seed}"
    )


def main() -> int:
    """Runs for some time; the status says whether something was found."""
    parser = argparse.ArgumentParser(prog="scripts/fuzz", description="Random programs and random schedules.")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to go on (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="the number of the first program (default: %(default)s)")
    parser.add_argument("--findings", type=int, default=10, help="stop after so many (default: %(default)s)")
    parser.add_argument("--minimizing", type=float, default=60.0, help="seconds for each (default: %(default)s)")
    parser.add_argument("--without", nargs="*", choices=STEPS, default=[], help="steps that are not drawn")
    options = parser.parse_args()
    for ending in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ending, signal.default_int_handler)
    session = Session(lambda text: print(text, flush=True), options.minimizing, without=options.without)
    result = session.run(options.seconds, options.seed, options.findings)
    print(table(result.counts))
    print(summary(result, options.seed))
    return 1 if result.counts["findings"] else 0


if __name__ == "__main__":
    sys.exit(main())
