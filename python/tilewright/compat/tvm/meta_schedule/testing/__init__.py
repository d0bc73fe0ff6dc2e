"""tvm.meta_schedule.testing."""

from __future__ import annotations
