"""Writes the file of the newest schema: the records of the schema before, brought up to date.

python -m tests.search.databases.record
"""

from __future__ import annotations

import contextlib
import sqlite3
import sys
import tempfile
from pathlib import Path

from tilewright.database.records import open_database

FOLDER = Path(__file__).parent
#: what a dump does not say, and how it is written
_FACTS = {"application_id": "{:#x}", "user_version": "{}"}


def main(folder: Path = FOLDER) -> int:
    """Write `sqlite-N.sql` into the folder for the schema N of now; returns the exit status."""
    newest = max(folder.glob("sqlite-*.sql"), key=lambda file: int(file.stem.partition("-")[2]))
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "records.db"
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.executescript(newest.read_text())
        open_database(path).close()
        with contextlib.closing(sqlite3.connect(path)) as connection:
            facts = {name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in _FACTS}
            tables = "\n".join(connection.iterdump())
    written = folder / f"sqlite-{facts['user_version']}.sql"
    if written.exists():
        print(f"{written.name} is already there: the schema has no new version")
        return 1
    head = "".join(f"PRAGMA {name} = {_FACTS[name].format(value)};\n" for name, value in facts.items())
    written.write_text(f"{head}{tables}\n")
    print(f"wrote {written.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
