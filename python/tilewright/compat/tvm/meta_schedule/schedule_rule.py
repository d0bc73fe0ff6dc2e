"""tvm.meta_schedule.schedule_rule."""

from __future__ import annotations

from typing import Any

from tilewright import _core
from tilewright.compat.tvm.alias import Renamed
from tilewright.compat.tvm.meta_schedule.delegation import delegates_to, supported
from tilewright.meta_schedule.schedule_rule import (
    AddRFactor,
    ApplyCustomRule,
    AutoBind,
    AutoInline,
    CrossThreadReduction,
    InlineConstantScalars,
    MultiLevelTiling,
    MultiLevelTilingTensorCore,
    MultiLevelTilingWideVector,
    MultiLevelTilingWithIntrin,
    ParallelizeVectorizeUnroll,
    RandomComputeLocation,
    ReuseType,
)

__all__ = [
    "AddRFactor",
    "ApplyCustomRule",
    "AutoBind",
    "AutoInline",
    "CrossThreadReduction",
    "InlineConstantScalars",
    "MultiLevelTiling",
    "MultiLevelTilingTensorCore",
    "MultiLevelTilingWideVector",
    "MultiLevelTilingWithIntrin",
    "ParallelizeVectorizeUnroll",
    "PyScheduleRule",
    "RandomComputeLocation",
    "ReuseType",
    "ScheduleRule",
    "create",
]


def create(kind: str) -> list[_core.ScheduleRule]:
    """Return the default rules of a kind of target."""
    return _core.ScheduleRule.defaults(supported(kind, "schedule rule"))


class ScheduleRule(metaclass=Renamed):
    """A rule."""

    node = _core.ScheduleRule
    make = _core.ScheduleRule
    create = staticmethod(create)


@delegates_to(_core.ScheduleRule)
class PyScheduleRule:
    """The base of rules in Python, to be decorated with derived_object."""

    def _initialize_with_tune_context(self, context: Any) -> None:
        raise NotImplementedError

    def apply(self, sch: Any, block: Any) -> list[Any]:
        """Return the schedules that the rule derives from one."""
        raise NotImplementedError

    def clone(self) -> Any:
        """Return a copy of the rule."""
        raise NotImplementedError
