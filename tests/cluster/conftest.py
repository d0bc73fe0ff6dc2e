"""Each test has a scheduler of its own; workers join where it starts some."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.search.conftest import _far_from_the_limits, server  # noqa: F401

from .machines import Machines, QuickMachines


@pytest.fixture(autouse=True)
def _own_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_HOST_FOLDER", str(tmp_path / "host"))


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Machines]:
    """A scheduler; tests add workers."""
    with contextlib.closing(QuickMachines(tmp_path)) as made:
        made.scheduler()
        yield made
