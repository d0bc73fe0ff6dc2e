"""Build IndexMaps from Python functions of indices."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from types import CodeType, FunctionType
from typing import Any

from tilewright import _core
from tilewright.errors import ArgumentError
from tilewright.script.dialect import dialect
from tilewright.script.report import fail


class AxisSeparator:
    """Marker among the results of an index map: the dimensions after it form a separate group in memory (TVM's axis
    separator)."""

    def __repr__(self) -> str:
        return "T.AXIS_SEPARATOR"


AXIS_SEPARATOR = AxisSeparator()


def _index_variables(mapping: Callable[..., Any], ndim: int | None, dtype: str) -> tuple[list[Any], dict[str, Any]]:
    """Return index variables for the parameters of `mapping`: positional ones, and keyword-only ones by name."""
    if not callable(mapping):
        message = f"an index map is made of a function of indices, not of a {type(mapping).__name__}"
        raise fail("script/index-map", message, "such as lambda i, j: (j, i)")
    kinds = inspect.Parameter
    try:
        parameters = list(inspect.signature(mapping).parameters.values())
    except ValueError as error:  # int, max: C functions without a signature
        message = f"Python does not know what '{getattr(mapping, '__name__', mapping)}' takes"
        raise fail(
            "script/index-map", message, "write a function of the indices, such as lambda i, j: (j, i)"
        ) from error
    fixed = sum(p.kind is not kinds.VAR_POSITIONAL for p in parameters)
    if any(p.kind is kinds.VAR_KEYWORD for p in parameters):
        raise fail(
            "script/index-map", "a function of indices takes them one by one", "name each index, or use *indices"
        )
    if fixed < len(parameters) and ndim is None:
        raise fail(
            "script/index-map", "the number of indices of an index map must be fixed", "name each index, or say ndim"
        )
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for p in parameters:
        if p.kind is kinds.VAR_POSITIONAL:
            names = [f"{p.name}{n}" for n in range((ndim or 0) - fixed)]
            positional += [_core.Var(name, _core.PrimType(dtype)) for name in names]
        elif p.kind is kinds.KEYWORD_ONLY:
            named[p.name] = _core.Var(p.name, _core.PrimType(dtype))
        else:
            positional.append(_core.Var(p.name, _core.PrimType(dtype)))
    return positional, named


def _names_in(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names_in(inner)


def _with_names(mapping: Callable[..., Any], sizes: Mapping[str, Any]) -> Callable[..., Any]:
    """Return the function with `T` and `sizes` added to its globals, for names that it uses and nothing defines.
    Printed traces contain such functions."""
    if not isinstance(mapping, FunctionType):
        return mapping
    known, code = mapping.__globals__, mapping.__code__
    missing = {name for name in _names_in(code) if name not in known and (name in sizes or name == "T")}
    if not missing:
        return mapping
    namespace = dialect("tir").names["T"]()
    found = {name: sizes.get(name, namespace) for name in missing}
    made = FunctionType(code, {**known, **found}, mapping.__name__, mapping.__defaults__, mapping.__closure__)
    made.__kwdefaults__ = mapping.__kwdefaults__
    return made


def index_map_with_separators(
    mapping: Callable[..., Any],
    *,
    ndim: int | None = None,
    inverse_index_map: Any = None,
    index_dtype: str = "int32",
    ranges: bool = False,
    sizes: Mapping[str, Any] | None = None,
) -> tuple[Any, list[int]]:
    """Build an IndexMap from a function; return it with the positions of AXIS_SEPARATOR.

    Args:
        mapping: a function of indices that gives new ones: one, or several.
        ndim: the number of indices, for functions that take any.
        inverse_index_map: the way back, as a map or a function.
        index_dtype: the type of the indices.
        ranges: the function gives ranges, each as a pair of a start and an end, or one index alone.
        sizes: what the function may name without that anything around it defines it: printed traces do.
    """
    mapping = _with_names(mapping, sizes or {})
    positional, named = _index_variables(mapping, ndim, index_dtype)
    result = mapping(*positional, **named)
    final: list[Any] = []
    separators: list[int] = []
    items = list(result) if isinstance(result, list | tuple) else [result]
    pairs = ranges and any(isinstance(item, list | tuple) for item in items)
    for item in items:
        if item is AXIS_SEPARATOR:
            separators.append(len(final))
            continue
        values = list(item) if ranges and isinstance(item, list | tuple) else [item, item + 1] if pairs else [item]
        for value in values:
            if not isinstance(value, _core.Expr | int) and not hasattr(value, "__index__"):
                raise ArgumentError.of(
                    "script/index-map", f"a function of indices gives a '{type(value).__name__}': it gives expressions"
                )
        final += values
    if callable(inverse_index_map) and not isinstance(inverse_index_map, _core.Node):
        count = len(final)
        inverse_index_map = index_map(inverse_index_map, ndim=count, index_dtype=index_dtype)
    return _core.IndexMap([*positional, *named.values()], final, inverse_index_map), separators


def index_map(
    mapping: Callable[..., Any], *, ndim: int | None = None, inverse_index_map: Any = None, index_dtype: str = "int32"
) -> Any:
    """Build an IndexMap with indices of type `index_dtype` from a function.

    Args:
        mapping: indices -> new indices; it may take ``*indices``.
        ndim: the number of indices, where the function takes any.
        inverse_index_map: the way back, as a map or a function.
        index_dtype: the type of the indices.

    Returns:
        The IndexMap.
    """
    made, separators = index_map_with_separators(
        mapping, ndim=ndim, inverse_index_map=inverse_index_map, index_dtype=index_dtype
    )
    if separators:
        raise fail("script/index-map", "an axis separator in a map that is of indices alone", "leave it out")
    return made
