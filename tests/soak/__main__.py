"""The soak as a program: see scripts/soak."""

from __future__ import annotations

import argparse
import contextlib
import sys
from pathlib import Path

from soak.cluster import ClusterSoak
from soak.gpu import GpuSoak
from soak.soak import Soak


def main() -> int:
    """Runs for some time; the status says whether something was found."""
    parser = argparse.ArgumentParser(prog="scripts/soak", description="Searches while everything around them fails.")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to go on (default: %(default)s)")
    parser.add_argument("--folder", type=Path, default=Path("out/soak"), help="goes on there (default: %(default)s)")
    parser.add_argument("--cluster", action="store_true", help="on workers that are killed, stopped, without a disk")
    parser.add_argument("--gpu", action="store_true", help="no searches: random kernels for GPUs, and who judges them")
    options = parser.parse_args()
    soak = (ClusterSoak if options.cluster else GpuSoak if options.gpu else Soak)(options.folder)
    first = soak.next_round
    with contextlib.closing(soak):
        soak.run(options.seconds)
    for name, count in sorted(soak.counts.items()):
        print(f"{count:8}  {name}")
    print("\n".join(soak.summary()))
    print(f"rounds {first} to {soak.next_round - 1}; {soak.records} records, {len(soak.findings)} findings")
    print(f"{soak.seconds / 3600:.2f} hours in this folder")
    print("\n".join(soak.findings))
    return 1 if soak.findings else 0


if __name__ == "__main__":
    sys.exit(main())
