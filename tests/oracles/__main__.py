"""Record digests, compare them, show the text of one: see scripts/oracles."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from oracles import digests


def main(arguments: list[str] | None = None) -> int:
    """The command line; gives the exit status."""
    parser = argparse.ArgumentParser(prog="scripts/oracles")
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record", help="write the digests of now")
    recording.add_argument("folder", nargs="?", type=Path, default=digests.TRACKED)
    comparing = commands.add_parser("compare", help="say what differs")
    comparing.add_argument("before", nargs="?", type=Path, default=digests.TRACKED)
    comparing.add_argument("after", nargs="?", type=Path, help="by default what is computed now")
    for each in (recording, comparing):
        each.add_argument("--only", nargs="+", choices=digests.KINDS, default=list(digests.KINDS))
    showing = commands.add_parser("show", help="the whole text of one entry")
    showing.add_argument("kind", choices=digests.KINDS)
    showing.add_argument("name")
    options = parser.parse_args(arguments)
    if options.command == "show":
        print(digests.text_of((options.kind, options.name)))
        return 0
    now = {} if getattr(options, "after", None) else digests.computed(digests.entries_of(options.only))
    if options.command == "record":
        digests.write(options.folder, now)
        print(f"{len(now)} digests in {options.folder}")
        return 0
    before = digests.read(options.before, options.only)
    found = [*digests.differences(before, now or digests.read(options.after, options.only))]
    print("\n".join([*found, f"{len(found)} of {len(before)} digests differ"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
