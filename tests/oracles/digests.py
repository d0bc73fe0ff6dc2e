"""Digests of texts by their names, in files of a line for each."""

from __future__ import annotations

import hashlib
import logging
import multiprocessing
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from oracles import candidates, heuristics, lowered
from tilewright.errors import Error

#: those of the repository
TRACKED = Path(__file__).with_name("digests")
KINDS = {"heuristics": heuristics, "lowered": lowered, "candidates": candidates}

#: an entry: its kind and its name
Entry = tuple[str, str]


def text_of(entry: Entry) -> str:
    """What the digest is of. A refusal is a result like any other."""
    kind, name = entry
    try:
        return KINDS[kind].text(name)
    except Error as error:
        return f"{type(error).__name__} {error.code}"


def digest_of(entry: Entry) -> str:
    """The beginning of its SHA-256."""
    return hashlib.sha256(text_of(entry).encode()).hexdigest()[:16]


def entries_of(kinds: Sequence[str]) -> list[Entry]:
    """All entries of these kinds."""
    return [(kind, name) for kind in kinds for name in KINDS[kind].names()]


def computed(entries: Sequence[Entry]) -> dict[Entry, str]:
    """Their digests now, by several processes, none of which has the state of this one, or logs how searches go."""
    spawned = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(len(os.sched_getaffinity(0)), spawned, logging.disable, (logging.WARNING,)) as pool:
        return dict(zip(entries, pool.map(digest_of, entries, chunksize=4), strict=True))


def write(folder: Path, digests: dict[Entry, str]) -> None:
    """A file for each kind."""
    folder.mkdir(parents=True, exist_ok=True)
    for kind in dict.fromkeys(kind for kind, _ in digests):
        lines = [f"{digest} {name}\n" for (of, name), digest in digests.items() if of == kind]
        (folder / f"{kind}.txt").write_text("".join(lines))


def read(folder: Path, kinds: Sequence[str]) -> dict[Entry, str]:
    """What was written."""
    found = {}
    for kind in kinds:
        for line in (folder / f"{kind}.txt").read_text().splitlines():
            digest, _, name = line.partition(" ")
            found[kind, name] = digest
    return found


def differences(before: dict[Entry, str], after: dict[Entry, str]) -> Iterator[str]:
    """A line for each entry that is not the same in both."""
    for kind, name in before | after:
        entry = (kind, name)
        if before.get(entry) != after.get(entry):
            what = "new" if entry not in before else "gone" if entry not in after else "changed"
            yield f"{what}: {kind} {name!r}"
