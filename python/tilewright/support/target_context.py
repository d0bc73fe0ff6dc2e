"""Targets in a ``with``, as scripts of TVM have them: refused, since here nothing depends on a current target."""

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


# The class is the core's; both names are looked up before either is called.
setattr(Target, "__enter__", _refuse)  # noqa: B010
setattr(Target, "__exit__", _refuse)  # noqa: B010
