"""tvm.error: the exception classes."""

from __future__ import annotations

from typing import Any

from tilewright.errors import Error as TVMError
from tilewright.errors import InternalError, ScheduleError
from tilewright.errors import ScriptError as DiagnosticError

__all__ = [
    "DiagnosticError",
    "InternalError",
    "OpAttributeInvalid",
    "OpAttributeRequired",
    "OpAttributeUnImplemented",
    "OpError",
    "OpNotImplemented",
    "OpNotSupported",
    "RPCError",
    "RPCSessionTimeoutError",
    "ScheduleError",
    "TVMError",
    "register_error",
]


class OpError(TVMError):
    """An operator cannot be used as it is."""


class OpNotImplemented(OpError, NotImplementedError):
    """An operator is not there."""


class OpAttributeRequired(OpError, AttributeError):
    """An attribute of an operator is missing."""


class OpAttributeInvalid(OpError, AttributeError):
    """An attribute of an operator has a wrong value."""


class OpAttributeUnImplemented(OpError, NotImplementedError):
    """An attribute of an operator is not there."""


class OpNotSupported(OpError, NotImplementedError):
    """An operator does not work on such operands."""


class RPCError(TVMError):
    """Another machine failed."""


class RPCSessionTimeoutError(RPCError, TimeoutError):
    """Another machine did not answer in time."""


def register_error(func_name: Any = None, cls: type[Exception] | None = None) -> Any:
    """Return the class unchanged: Tilewright's errors need no registration."""
    if cls is not None or isinstance(func_name, type):
        return cls or func_name
    return lambda made: made
