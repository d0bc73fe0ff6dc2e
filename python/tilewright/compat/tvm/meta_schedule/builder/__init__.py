"""tvm.meta_schedule.builder."""

from __future__ import annotations

from tilewright.compat.tvm.alias import missing
from tilewright.compat.tvm.meta_schedule.builder.local_builder import LocalBuilder
from tilewright.meta_schedule.builder import Builder, BuilderInput, BuilderResult, PyBuilder

__getattr__ = missing("tvm.meta_schedule.builder")

__all__ = ["Builder", "BuilderInput", "BuilderResult", "LocalBuilder", "PyBuilder"]
