"""Each test has a scheduler of its own; workers join where it starts some."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.search.conftest import _far_from_the_limits, server  # noqa: F401

from tilewright.cluster.measurer import ClusterMeasurer

from .machines import Machines, QuickMachines


@pytest.fixture(autouse=True)
def _own_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_HOST_FOLDER", str(tmp_path / "host"))


@pytest.fixture(autouse=True)
def _short_finals(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine, finals take turns for at least a second, which no test here is about."""
    begin = ClusterMeasurer.begin_finals

    def begin_short(session: ClusterMeasurer, *kernels: Any) -> None:
        *how, budget_seconds = kernels
        begin(session, *how, min(budget_seconds, 0.1))

    monkeypatch.setattr(ClusterMeasurer, "begin_finals", begin_short)


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Machines]:
    """A scheduler; tests add workers."""
    with contextlib.closing(QuickMachines(tmp_path)) as made:
        made.scheduler()
        yield made
