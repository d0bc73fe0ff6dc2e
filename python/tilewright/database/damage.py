"""Check whether the pages of an SQLite file are intact: on overwritten pages, a query may return nothing without an
error."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

from tilewright.database.postgres_store import is_server
from tilewright.errors import ResourceError

#: time limit of the check in seconds; a file that takes longer passes
_SECONDS = 20.0

# Runs in a child process: closing a file releases all locks that a process has on it, including those of a session.
_LOOK = """
import sqlite3, sys
try:
    print(sqlite3.connect(sys.argv[1], uri=True).execute("PRAGMA integrity_check(1)").fetchone()[0])
except sqlite3.OperationalError:
    print("ok")
except sqlite3.DatabaseError as error:
    print(error)
"""


def check_intact(path: str | os.PathLike[str]) -> None:
    """Refuse a database file with damaged pages; a file that cannot be checked passes.

    Raises:
        tilewright.ResourceError: the file is damaged.
    """
    text = os.fspath(path)
    if is_server(text) or not Path(text).is_file() or not sys.executable:
        return
    # `immutable` creates no journal and takes no locks; it is valid only while there is no journal.
    how = "mode=ro" if Path(f"{text}-wal").exists() else "immutable=1"
    command = [sys.executable, "-I", "-c", _LOOK, f"{Path(text).absolute().as_uri()}?{how}"]
    found = ""
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=True)
        found = done.stdout.strip()
    if found not in ("", "ok"):
        why = found.splitlines()[-1]
        raise ResourceError.of(
            "database/damaged",
            f"{text}: the database is damaged: {why}",
            "keep a copy of the file; `sqlite3 FILE .recover` saves what can be read",
        )
