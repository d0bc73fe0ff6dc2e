"""tvm.tir.transform.function_pass: passes from function to function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.compat.tvm.tir.transform.statements import with_functions
from tilewright.compat.tvm.transform import Pass, pass_decorator

__all__ = ["PrimFuncPass", "prim_func_pass"]

PrimFuncPass = Pass


def prim_func_pass(
    pass_func: Any = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Sequence[str] | None = None,
    traceable: bool = False,
) -> Any:
    """Decorate a function of a function, a module and a context as a pass; of a class, its method
    ``transform_function``."""

    def function(transform: Any) -> Any:
        return lambda mod, context: with_functions(mod, lambda value: transform(value, mod, context))

    return pass_decorator(pass_func, opt_level or 0, name, required, function, "transform_function")
