"""The part of the core that only scripts call: builders, frames, spans."""

from __future__ import annotations

from typing import Any

from tilewright import _core

script: Any = vars(_core)["_script"]
#: ids of functions whose first argument is a condition; those of the core have no attributes that could say so
TAKES_CONDITION: set[int] = set()
