"""Whether a file of records is what SQLite has written: where pages were overwritten, a look-up may find nothing, and
say nothing."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

from tilewright.database.postgres_store import is_server
from tilewright.errors import ResourceError

#: seconds that a look at a file may take; of what takes longer nothing is known
_SECONDS = 20.0

# In a process of its own: closing a file gives up all locks that this process has on it, those of a session, too.
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
    """Refuses a file of records whose pages are damaged; what cannot be looked at passes.

    Raises:
        tilewright.ResourceError: it is damaged.
    """
    text = os.fspath(path)
    if is_server(text) or not Path(text).is_file() or not sys.executable:
        return
    # Without a journal beside it nothing is made there, and nobody is waited for.
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
