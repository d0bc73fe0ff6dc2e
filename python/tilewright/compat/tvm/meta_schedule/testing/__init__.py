"""tvm.meta_schedule.testing."""

from __future__ import annotations

from tilewright.compat.tvm.alias import missing

__getattr__ = missing("tvm.meta_schedule.testing")
