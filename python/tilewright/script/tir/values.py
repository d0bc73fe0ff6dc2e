"""Values that exist while parsing only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class MetaVar:
    """Keeps what a name is assigned as a Python value, instead of a variable of the program."""

    value: Any

    def __iter__(self) -> Iterator[MetaVar]:
        return (MetaVar(item) for item in self.value)
