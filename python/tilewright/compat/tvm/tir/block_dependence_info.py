"""tvm.tir.block_dependence_info."""

from __future__ import annotations

from typing import Any

from tilewright import _core
from tilewright.compat.tvm.alias import Renamed

__all__ = ["BlockDependenceInfo"]


class BlockDependenceInfo(metaclass=Renamed):
    """The dependences between the blocks of a module."""

    node = _core.ScheduleState

    @staticmethod
    def make(mod: Any) -> Any:
        """Return the block information: get_sref() and get_block_scope()."""
        return _core.Schedule(mod).state
