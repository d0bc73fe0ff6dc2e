"""Specialize a function for some of its calls, with constant sizes, scalars, or layouts of parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilewright import _core, ir
from tilewright.errors import ArgumentError
from tilewright.support.wrong_arguments import explained


@explained
def specialize(function: ir.PrimFunc, values: Mapping[ir.Var, Any]) -> ir.PrimFunc:
    """Return the function with values substituted for variables.

    Args:
        function: the function.
        values: for scalar parameters, symbolic sizes, strides and offsets: numbers or expressions. For buffer
            parameters: a buffer with the new sizes, strides and offset.

    Raises:
        tilewright.ArgumentError: the function does not have a variable, or a buffer does not match its parameter.
    """
    fixed: dict[ir.Var, Any] = {}
    known = [*function.params, *(v for buffer in function.buffer_map.values() for v in _layout(buffer))]
    for variable, value in values.items():
        if not any(variable.same_as(own) for own in known if isinstance(own, ir.Var)):
            raise ArgumentError.of(
                "ir/specialize", f"{variable} is neither a parameter of the function nor a size of one"
            )
        if variable in function.buffer_map:
            _match(function.buffer_map[variable], value, fixed)
        else:
            _fix(fixed, variable, value if isinstance(value, _core.Expr) else _constant(variable, value))
    params = [param for param in function.params if param not in fixed]
    body = _core.substitute(function, fixed)
    assert isinstance(body, ir.PrimFunc)
    for buffer in body.buffer_map.values():
        if any(isinstance(extent, ir.IntImm) and extent.value < 0 for extent in buffer.shape):
            raise ArgumentError.of(
                "ir/specialize", f"{buffer.name} would have the shape {tuple(buffer.shape)}", "extents are at least 0"
            )
    return ir.PrimFunc(
        params, {p: body.buffer_map[p] for p in body.buffer_map}, body.ret_type, body.attrs, body.body, body.axes
    )


def _constant(variable: ir.Var, value: Any) -> ir.Expr:
    if "float" not in variable.dtype and not hasattr(value, "__index__"):
        raise ArgumentError.of("ir/specialize", f"{variable} is {variable.dtype}, and {value!r} is not an integer")
    return _core.const(value, variable.dtype)


def _layout(buffer: ir.Buffer) -> list[Any]:
    return [*buffer.shape, *buffer.strides, buffer.elem_offset]


def _match(old: ir.Buffer, new: Any, fixed: dict[ir.Var, Any]) -> None:
    if not isinstance(new, ir.Buffer):
        raise ArgumentError.of("ir/specialize", f"the parameter {old.name} is a buffer: fix it by a buffer")
    if old.dtype != new.dtype or len(old.shape) != len(new.shape) or len(old.strides) != len(new.strides):
        raise ArgumentError.of("ir/specialize", f"{new.name} has another type or rank than {old.name}")
    for was, now in zip(_layout(old), _layout(new), strict=True):
        if was is None or now is None:
            continue
        if isinstance(was, ir.Var):
            _fix(fixed, was, now)
        elif not ir.structural_equal(was, now):
            raise ArgumentError.of("ir/specialize", f"{new.name} has {now} where {old.name} has {was}")


def _fix(fixed: dict[ir.Var, Any], variable: ir.Var, value: Any) -> None:
    """Note a variable's value. A number and several buffers may all give it, and have to agree."""
    before = fixed.setdefault(variable, value)
    if not ir.structural_equal(before, value):
        raise ArgumentError.of("ir/specialize", f"{variable} is {before} by one value and {value} by another")
