"""What holds for all tests of the search."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tilewright.search import session


@pytest.fixture(autouse=True)
def _far_from_the_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small programs may run at the limits of a machine, which would end their searches early."""
    monkeypatch.setattr(session, "roofline_bound", lambda task, target: 0.0)


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """A PostgreSQL server of its own, in a folder and on a port."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    assert programs, "apt-get install postgresql"
    # It refuses to run as root.
    as_user: dict[str, Any] = {"user": "nobody"} if os.getuid() == 0 else {}
    folder = Path(tempfile.mkdtemp(prefix="tilewright-postgres-"))
    if as_user:
        os.chown(folder, pwd.getpwnam("nobody").pw_uid, -1)
    with contextlib.closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def run(name: str, *args: str) -> None:
        command = [str(programs[-1] / name), "-D", str(folder / "data"), *args]
        subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL, timeout=60, **as_user)

    try:
        run("initdb", "-A", "trust", "-U", "tuner", "--no-sync")
        options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off"
        run("pg_ctl", "-w", "-l", str(folder / "log"), "-o", options, "start")
        try:
            yield f"postgresql://tuner@127.0.0.1:{port}/postgres"
        finally:
            run("pg_ctl", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
