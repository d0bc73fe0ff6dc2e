"""tvm.transform: the context that builds happen in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from tilewright.compat.tvm.alias import missing

__path__: list[str] = []
__getattr__ = missing("tvm.transform")

__all__ = ["PassContext"]


_open: list[PassContext] = []


class PassContext:
    """Options of what is built inside: Tilewright's pipeline is one, so they are checked and change nothing.

    Raises:
        TypeError: an option asks for something that Tilewright does not do.
    """

    def __init__(
        self,
        opt_level: int = 2,
        required_pass: Sequence[str] | None = None,
        disabled_pass: Sequence[str] | None = None,
        instruments: Sequence[Any] | None = None,
        config: Mapping[str, Any] | None = None,
        trace_stack: Any = None,
        make_traceable: Any = None,
        num_evals: int | None = None,
        tuning_api_database: Any = None,
    ) -> None:
        given = {
            "required_pass": required_pass,
            "disabled_pass": disabled_pass,
            "instruments": instruments,
            "trace_stack": trace_stack,
            "make_traceable": make_traceable,
            "num_evals": num_evals,
            "tuning_api_database": tuning_api_database,
        }
        for name, value in given.items():
            if value:
                raise TypeError(f"Tilewright has no PassContext({name}=...) yet")
        for name in config or {}:
            raise TypeError(f"Tilewright has no option {name!r} of PassContext yet")
        self.opt_level = opt_level
        self.config: dict[str, Any] = {}

    def __enter__(self) -> PassContext:
        _open.append(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _open.pop()

    @staticmethod
    def current() -> PassContext:
        """The innermost context that is open; one with the defaults when none is."""
        return _open[-1] if _open else PassContext()
