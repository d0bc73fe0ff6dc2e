"""The wording of printed programs and traces: Tilewright's own, or that of another package."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tilewright._core import Trace


@dataclass(frozen=True)
class Wording:
    """How another package, which Tilewright's programs are written for, spells what Tilewright prints.

    Attributes:
        package: package whose imports the first lines of a program show.
        trace: the text of a trace.
        whole: whether the repr of a program is its script, not one line.
    """

    package: str
    trace: Callable[[Trace], str]
    whole: bool = False


_present: ContextVar[Wording | None] = ContextVar("tilewright.script.wording", default=None)


def present() -> Wording | None:
    """Return the wording of texts in this context; None for Tilewright's own."""
    return _present.get()


def enter(wording: Wording) -> None:
    """Set the wording of all texts in this context from now on."""
    _present.set(wording)


@contextmanager
def written_in(wording: Wording | None) -> Iterator[None]:
    """Set the wording of texts inside a ``with`` statement; None for Tilewright's own."""
    token = _present.set(wording)
    try:
        yield
    finally:
        _present.reset(token)
