"""tvm.tir.schedule.testing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.compat.tvm.ir.base import Proofs
from tilewright.compat.tvm.tir.schedule.schedule import check_debug_mask
from tilewright.testing import check_same, check_trace
from tilewright.testing.check import without_symbols

__all__ = ["assert_structural_equal_ignore_global_symbol", "verify_trace_roundtrip"]


def assert_structural_equal_ignore_global_symbol(f1: Any, f2: Any, map_free_vars: bool = False) -> None:
    """Compare functions or modules up to the names that they are exported under."""
    if Proofs.mismatch(without_symbols(f1), without_symbols(f2), map_free_vars) is not None:
        check_same(f1, f2, map_free_vars=map_free_vars)


def verify_trace_roundtrip(
    sch: Any,
    mod: Any,
    *,
    debug_mask: str | int = "all",
    text_format: str | Sequence[str] = ("python", "json"),
) -> Any:
    """Replay the trace from its texts on `mod` and compare; return the last replayed schedule.

    `debug_mask` is checked as for a schedule.
    """
    check_debug_mask(debug_mask)
    formats = [text_format] if isinstance(text_format, str) else list(text_format)
    return check_trace(sch, mod, formats)
