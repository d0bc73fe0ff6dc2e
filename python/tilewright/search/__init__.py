"""Search: spaces of schedules, and finding the fastest point of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright._core import Record
from tilewright.support.lazy_names import lazy

if TYPE_CHECKING:
    from tilewright.search.formats import FormatChoice, FormatsResult
    from tilewright.search.modules import ModuleResult
    from tilewright.search.result import Progress, TuneResult
    from tilewright.search.session import tune
    from tilewright.search.spaces import Space, space

#: public name -> the module of this package that defines it
_NAMES = {
    "FormatChoice": "formats",
    "FormatsResult": "formats",
    "ModuleResult": "modules",
    "Progress": "result",
    "TuneResult": "result",
    "tune": "session",
    "Space": "spaces",
    "space": "spaces",
}

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

__getattr__ = lazy(__name__, _NAMES, ())
