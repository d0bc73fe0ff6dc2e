"""Refuse targets in a ``with`` statement, as in scripts of TVM: nothing depends on a current target here."""

from __future__ import annotations

from typing import Any, NoReturn

from tilewright._core import Target
from tilewright.errors import ArgumentTypeError

__all__ = ["Target"]


def _refuse(self: Target, *ignored: Any) -> NoReturn:
    raise ArgumentTypeError.of(
        "target/context",
        "a target is not a context: nothing is compiled or tuned for a current one",
        "pass it: tw.compile(program, target=...), tw.tune(program, target=...); tvm.target.Target, after "
        "`import tilewright.compat.tvm`, is a context",
    )


# The class belongs to the core. Python looks up both methods before it calls one.
setattr(Target, "__enter__", _refuse)  # noqa: B010
setattr(Target, "__exit__", _refuse)  # noqa: B010
