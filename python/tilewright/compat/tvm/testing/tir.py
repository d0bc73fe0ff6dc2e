"""tvm.testing.tir: schedules for GPUs, which files of tests import beside what they use."""

from __future__ import annotations

from tilewright.compat.tvm.alias import absent

__getattr__ = absent("tvm.testing.tir")
