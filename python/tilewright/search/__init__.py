"""Search: spaces of schedules, and finding the fastest point of one."""

from __future__ import annotations

from tilewright._core import Record
from tilewright.search.formats import FormatChoice, FormatsResult
from tilewright.search.modules import ModuleResult
from tilewright.search.result import Progress, TuneResult
from tilewright.search.session import tune
from tilewright.search.space import Space, space

__all__ = [
    "FormatChoice",
    "FormatsResult",
    "ModuleResult",
    "Progress",
    "Record",
    "Space",
    "TuneResult",
    "space",
    "tune",
]
