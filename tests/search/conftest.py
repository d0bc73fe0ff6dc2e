"""What holds for all tests of the search."""

import pytest

from tilewright.search import session


@pytest.fixture(autouse=True)
def _far_from_the_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small programs may run at the limits of a machine, which would end their searches early."""
    monkeypatch.setattr(session, "_bound", lambda task, threads: 0.0)
