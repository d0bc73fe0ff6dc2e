"""tvm.tir.schedule.transform: names that files import beside what they use; each use of one raises."""

from __future__ import annotations

from tilewright.compat.tvm.alias import absent

__path__: list[str] = []
__getattr__ = absent("tvm.tir.schedule.transform")
