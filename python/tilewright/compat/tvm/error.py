"""tvm.error: the exception classes."""

from __future__ import annotations

from tilewright.compat.tvm.alias import missing
from tilewright.errors import Error as TVMError
from tilewright.errors import InternalError, ScheduleError
from tilewright.errors import ScriptError as DiagnosticError

__path__: list[str] = []
__getattr__ = missing("tvm.error")

__all__ = ["DiagnosticError", "InternalError", "ScheduleError", "TVMError"]
