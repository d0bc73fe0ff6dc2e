"""Schedule rules: transform one block."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import tilewright.tensor_intrin.arm_cpu
import tilewright.tensor_intrin.cuda
import tilewright.tensor_intrin.x86  # noqa: F401 (rules name the intrinsics that these modules register)
from tilewright._core import (
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
    ScheduleRule,
    register_custom_rule,
    rule_kind,
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
    "register_custom_rule",
    "rule_kind",
]

PyScheduleRule = ScheduleRule


@dataclass
class ReuseType:
    """Whether a tiled block uses copies of its buffers: "no", "may" or "must", at which tile levels, in which memory.

    Levels count from 1: a copy is made under the last loop of its level.
    """

    req: str
    levels: list[int] = field(default_factory=list)
    scope: str = "global"

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as a dict."""
        return asdict(self)
