"""How TVM spells programs and traces, for what runs its scripts: the runner and the plugin of pytest.

Where the alias is only imported, texts stay Tilewright's own; ``with written_in(AS_TVM)`` asks for TVM's.
"""

from __future__ import annotations

from tilewright import _core
from tilewright.script.wording import Wording, written_in

__all__ = ["AS_TVM", "written_in"]


def _trace(trace: _core.Trace) -> str:
    """Return the trace as the source of a function that takes a schedule."""
    lines = trace.as_python() or ["pass"]
    return "# from tvm import tir\ndef apply_trace(sch: tir.Schedule) -> None:\n" + "\n".join(f"  {x}" for x in lines)


AS_TVM = Wording(package="tvm", trace=_trace, whole=True)
