"""Formulas in scripts: ``C = T.compute((n, m), lambda i, j: A[i, j] + B[j, i])``, and reductions over axes.

A formula becomes a nest of loops around one block. The same code builds the programs of :mod:`tilewright.te`.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import math
import operator
import re
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, SupportsIndex

from tilewright import _core
from tilewright.errors import ArgumentError, ArgumentTypeError
from tilewright.script.core import script as _script
from tilewright.script.parser import active_parser
from tilewright.script.report import did_you_mean
from tilewright.script.tir import frames as _frames
from tilewright.script.tir.dtypes import DTYPES
from tilewright.support.nodes import nodes_of
from tilewright.support.wrong_arguments import explained

_DATA_PAR = _core.IterType.DATA_PAR
_COMM_REDUCE = _core.IterType.COMM_REDUCE


@dataclass(frozen=True)
class Reduction:
    """The reduction of values over all points of some axes. It must be the whole value of a formula."""

    reducer: _core.CommReducer
    values: tuple[_core.Expr, ...]
    axes: tuple[_core.IterVar, ...]
    condition: _core.Expr | None
    initial: tuple[_core.Expr, ...] | None

    def _refuse(self, *other: Any) -> Any:
        """Raise an error: a reduction cannot be an operand inside a formula."""
        raise ArgumentTypeError.of(
            "te/reduction",
            "a reduction stands for the whole value of a formula, so nothing can be computed with it there",
            "give the reduction a tensor of its own, and compute with its elements in the next one",
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __neg__ = __abs__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __getitem__ = _refuse

    def start(self) -> tuple[_core.Expr, ...]:
        """Return the initial value of the reduction."""
        return self.initial if self.initial is not None else builtins.tuple(self.reducer.identity_element)


@dataclass(frozen=True)
class Formula:
    """The values at a point of the axes."""

    axes: tuple[_core.IterVar, ...]
    body: Reduction | tuple[_core.Expr, ...]

    @property
    def values(self) -> tuple[_core.Expr, ...]:
        """Return the values, one for each tensor."""
        return self.body.values if isinstance(self.body, Reduction) else self.body

    def expressions(self) -> list[_core.Expr]:
        """Return all expressions that are computed."""
        if not isinstance(self.body, Reduction):
            return list(self.body)
        condition = [] if self.body.condition is None else [self.body.condition]
        domains = [bound for axis in self.body.axes for bound in bounds(axis)]
        return [*self.body.values, *self.body.start(), *condition, *domains]


#: where an axis runs: from begin to end, or from 0 to before one number
Domain = _core.Range | _core.Expr | int | tuple[_core.Expr | int, _core.Expr | int] | list[_core.Expr | int]


def as_shape(shape: Any) -> list[Any]:
    """Return the extents of a shape, which may be one number.

    Raises:
        tilewright.ArgumentTypeError: an extent is neither a number nor an expression.
        tilewright.ArgumentError: an extent is negative.
    """
    extents = list(shape) if isinstance(shape, list | tuple) else [shape]
    for extent in extents:
        if not isinstance(extent, _core.Expr | SupportsIndex) or isinstance(extent, bool):
            what = "None" if extent is None else f"a value of type {type(extent).__name__}"
            raise ArgumentTypeError.of(
                "te/shape", f"{what} in a shape", "a shape is a tuple of numbers and variables, such as (128, n)"
            )
    made = [extent if isinstance(extent, _core.Expr) else operator.index(extent) for extent in extents]
    for number, extent in enumerate(made):
        if isinstance(extent, int | _core.IntImm) and int(extent) < 0:
            raise ArgumentError.of(
                "te/shape",
                f"the extent of dimension {number} is {int(extent)}",
                "an extent is at least 0, or a variable",
            )
    return made


def as_dtype(dtype: Any) -> Any:
    """Return the data type of elements; NumPy's types are accepted.

    Raises:
        tilewright.ArgumentError: the data type does not exist.
    """
    name = dtype if isinstance(dtype, str) else getattr(dtype, "__name__", str(dtype)).removeprefix("torch.")
    if not _core.is_dtype(name):
        raise ArgumentError.of(
            "te/dtype", f"'{name}' is not a data type", did_you_mean(name, DTYPES) or "for instance float32"
        )
    return name


def reduce_axis(dom: Domain, name: str = "rv") -> _core.IterVar:
    """Return a reduction axis over ``(begin, end)`` or a range.

    Args:
        dom: ``(begin, end)``, a Range, or the end of a range from 0.
        name: name of its variable.

    Returns:
        The axis: an index of what ``te.sum(..., axis=...)`` and its like add up.
    """
    if dom is None:
        raise ArgumentTypeError.of("te/axis", "the domain of an axis is missing", 'te.reduce_axis((0, n), name="k")')
    domain = _frames._range(tuple(dom) if isinstance(dom, list) else dom)
    variable = _core.Var(name, domain.extent.dtype)
    if _script.IRBuilder.is_in_scope():
        variable = _script.fresh_var(variable.type_annotation)
    return _core.IterVar(domain, variable, _COMM_REDUCE, "")


def constant(value: Any, dtype: str | None) -> _core.Expr:
    """Return a number as an expression. If `dtype` is None, the type is that of a number alone (docs/types.md).

    Raises:
        tilewright.ArgumentError: the type does not hold it.
    """
    number = value.item() if hasattr(value, "item") else value
    kind = re.match(r"(u?int)(\d*)$", dtype or "")
    if kind is not None and not isinstance(number, bool) and (isinstance(number, int) or not math.isfinite(number)):
        bits = int(kind[2] or 32)
        low, high = (0, 2**bits - 1) if kind[1] == "uint" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        if not low <= number <= high:
            raise ArgumentError.of("te/constant", f"{number} is no {dtype}", f"these are from {low} to {high}")
    return _core.const(value, dtype)


def _as_expr(value: Any, dtype: str | None = None) -> _core.Expr:
    if isinstance(value, _core.Expr):
        return value
    if isinstance(value, _core.IterVar):
        return value.var
    if isinstance(value, int | float) or (hasattr(value, "item") and getattr(value, "ndim", None) == 0):
        return constant(value, dtype)
    hint = "index it: A[i, j]" if hasattr(value, "shape") else "an expression of the indices, such as A[i, j] + 1.0"
    raise ArgumentTypeError.of(
        "te/value", f"a value of type {type(value).__name__} where a formula needs an expression", hint
    )


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, list | tuple) else (value,)


def _is_axis(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return bool(value) and all(_is_axis(item) for item in value)
    return isinstance(value, _core.IterVar)


def comm_reducer(
    fcombine: Callable[..., Any], fidentity: Callable[..., Any], name: str = "reduce"
) -> Callable[..., Any]:
    """Return a user-defined reducer.

    Args:
        fcombine: two values -> their combination; for tuples two tuples -> a tuple.
        fidentity: the dtype of the value, or those of the tuple's -> the identity.
        name: name of the returned function.

    Returns:
        A function ``(expr, axis, where=None, init=None)`` whose result is the value of a formula. Called with values
        only, it combines them.
    """

    for function in (fcombine, fidentity):
        if not callable(function):
            raise ArgumentTypeError.of(
                "te/reducer",
                f"a reducer is made of two functions, not of a {type(function).__name__}",
                "te.comm_reducer(lambda x, y: x + y, lambda dtype: te.const(0, dtype))",
            )

    def reduce(expr: Any, axis: Any = None, where: Any = None, init: Any = None, *more: Any) -> Any:
        if not _is_axis(axis):
            if isinstance(expr, _core.Buffer | _core.BufferRegion):
                buffer = expr.buffer if isinstance(expr, _core.BufferRegion) else expr
                raise ArgumentTypeError.of(
                    "te/value",
                    f"{name} of a region of '{buffer.name}', which is not an expression",
                    "reduce in a block: vk = T.axis.reduce(n, k), with T.init(): B[vi] = 0, then "
                    "B[vi] = B[vi] + A[vi, vk]",
                )
            result, given = expr, [item for item in (axis, where, init, *more) if item is not None]
            try:
                for item in given:
                    result = fcombine(result, item)
            except TypeError as error:
                kinds = ", ".join(type(item).__name__ for item in (expr, *given))
                hint = f"give an expression and an axis: te.{name}(A[i, k], axis=k)"
                raise ArgumentTypeError.of("te/value", f"{name} cannot take ({kinds})", hint) from error
            return result
        if len({*_as_tuple(axis)}) < len(_as_tuple(axis)):
            names = ", ".join(used.var.name_hint for used in _as_tuple(axis))
            raise ArgumentError.of(
                "te/axis", f"an axis stands twice among those to reduce over ({names})", "name each axis once"
            )
        for used in _as_tuple(axis):
            if used.iter_type != _COMM_REDUCE:
                raise ArgumentError.of(
                    "te/axis",
                    f"'{used.var.name_hint}' is not an axis to reduce over",
                    'te.reduce_axis((0, n), name="k")',
                )
        values = tuple(_as_expr(value) for value in _as_tuple(expr))
        dtypes = [value.dtype for value in values]
        many = len(values) > 1
        lhs, rhs = (
            [_core.Var(f"{letter}{i}" if many else letter, dtype) for i, dtype in enumerate(dtypes)] for letter in "xy"
        )
        try:
            combined = fcombine(tuple(lhs), tuple(rhs)) if many else (fcombine(lhs[0], rhs[0]),)
        except TypeError as error:
            what = f"pairs of {len(values)} values" if many else "two values"
            raise ArgumentTypeError.of(
                "te/reducer",
                f"'{name}' does not combine {what}: {error}",
                "reduce as many values as its function takes: a tuple of two where it is one of pairs",
            ) from error
        identity = [_as_expr(item, dtype) for item, dtype in zip(_as_tuple(fidentity(*dtypes)), dtypes, strict=True)]
        initial = None
        if init is not None:
            initial = tuple(_as_expr(item, dtype) for item, dtype in zip(_as_tuple(init), dtypes, strict=True))
        reducer = _core.CommReducer(lhs, rhs, list(combined), identity)
        return Reduction(reducer, values, _as_tuple(axis), None if where is None else _as_expr(where), initial)

    if not isinstance(name, str):
        raise ArgumentTypeError.of(
            "te/reducer", f"name is {name!r:.80}; it is the name of the reducer", 'pass a text: name="maximum"'
        )
    reduce.__name__ = reduce.__qualname__ = name
    reduce.__doc__ = f"""The {name} of `expr` over `axis`: the value of a formula.

    Args:
        expr: the value at a point, or a tuple of them.
        axis: from reduce_axis, or a list of them; without axes, all arguments are combined.
        where: a condition: only points where it holds count.
        init: what to start from, instead of the identity (of `max` and `min` the least and the largest finite number:
            where all values of floats are infinite, start from te.infinity, or its negative).
    """
    checked: Callable[..., Any] = explained(reduce)
    return checked


def _start(number: int, name: str) -> Callable[[str], _core.Expr]:
    """Return the identity element of a sum or a product, by type."""

    def identity(dtype: str) -> _core.Expr:
        if dtype.startswith("bool"):
            raise ArgumentError.of(
                "te/bool-reduction",
                f"te.{name} over values of type bool, whose arithmetic is modulo 2",
                f'cast them: te.{name}(value.astype("int32"), axis=k); te.max says whether one of them holds, te.min '
                "whether all do",
            )
        return _core.const(number, dtype)

    return identity


sum = comm_reducer(lambda x, y: x + y, _start(0, "sum"), "sum")
prod = comm_reducer(lambda x, y: x * y, _start(1, "prod"), "prod")
max = comm_reducer(_core.max, _core.min_value, "max")
min = comm_reducer(_core.min, _core.max_value, "min")


def _axis_names(function: Callable[..., Any], count: int) -> list[str]:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except ValueError as error:  # int, max: code of C that does not say what it takes
        message = f"Python does not know what '{getattr(function, '__name__', function)}' takes"
        raise ArgumentError.of(
            "te/formula", message, "write a function of the indices, such as lambda *i: ..."
        ) from error
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        names += [f"i{i}" for i in range(len(names), count)]
    if len(names) != count:
        raise ArgumentError.of(
            "te/formula",
            f"a formula takes as many indices as its tensor has dimensions: {count}, not {len(names)}",
            f"lambda {', '.join(['i', 'j', 'k', 'l', 'm', 'n'][:count]) or '*i'}: ...",
        )
    return names


def formula(shape: list[Any], function: Callable[..., Any], names: Sequence[str] | None = None) -> Formula:
    """Return the formula that a function of the indices computes.

    Args:
        shape: the extents.
        function: indices -> value, tuple of values, or a reduction.
        names: names of the indices; by default those of the function's parameters.

    Raises:
        tilewright.ArgumentError: the function takes another number of indices, or gives no values.
    """
    if not callable(function):
        raise ArgumentTypeError.of(
            "te/formula",
            f"a formula is a function of the indices, not a value of type {type(function).__name__}",
            "lambda i, j: A[i, j] + 1.0",
        )
    own = _axis_names(function, len(shape)) if names is None else list(names)
    if len(own) != len(shape):
        raise ArgumentError.of(
            "te/formula", f"there are {len(own)} names for {len(shape)} indices", "give one name for each dimension"
        )
    axes = []
    for name, extent in zip(own, shape, strict=True):
        domain = _frames._range(extent)
        axes.append(_core.IterVar(domain, _core.Var(name, domain.extent.dtype), _DATA_PAR, ""))
    indices = [axis.var for axis in axes]
    _core.enter_formula(indices)
    try:
        body = function(*indices)
    except TypeError as error:
        if type(error) is not TypeError or not _wants_numbers(str(error)):
            raise
        raise ArgumentTypeError.of(
            "te/formula",
            str(error),
            "functions of math and NumPy take numbers; te.sqrt, te.exp and the others of tilewright.te, or those of T, "
            "take expressions",
        ) from error
    finally:
        _core.leave_formula()
    if isinstance(body, Reduction):
        return Formula(tuple(axes), body)
    items = _as_tuple(body)
    if any(isinstance(item, Reduction) for item in items):
        raise ArgumentError.of(
            "te/reduction",
            "a reduction stands for the whole value of a formula, not for a part of it",
            "reduce tuples by one reducer",
        )
    if not items or any(item is None for item in items):
        raise ArgumentError.of("te/formula", "the function of a formula returns no value", "lambda i: A[i] + 1.0")
    return Formula(tuple(axes), tuple(_as_expr(item) for item in items))


def _wants_numbers(text: str) -> bool:
    """Return whether a message of Python or NumPy complains about an expression where it needs a number."""
    if "number" not in text and "ufunc" not in text:
        return False
    named = (getattr(_core, word, None) for word in re.findall(r"\w+", text))
    return any(isinstance(item, type) and issubclass(item, _core.Expr) for item in named)


def emit(what: Formula, names: Sequence[str], buffers: Sequence[Any], attrs: dict[str, Any]) -> None:
    """Add the loops and blocks that compute `buffers` to the program of the current builder.

    Args:
        what: the formula.
        names: names of the blocks: one for each value, all the same for a reduction.
        buffers: where the values go.
        attrs: annotations of the blocks.
    """
    with ExitStack() as loops:
        if isinstance(what.body, Reduction):
            groups = _groups(what)
            if len(groups) > 1:
                _emit_ragged(what.body, groups, names[0], buffers, attrs)
                return
            axes = [*what.axes, *what.body.axes]
            variables = _open_loops(loops, axes, {})
            with _script.block(names[0]):
                indices, mapping = _block_axes(axes, variables, {}, attrs)
                _emit_start(what.body, buffers, indices[: len(what.axes)], mapping)
                _emit_step(what.body, buffers, indices[: len(what.axes)], mapping)
            return
        variables = _open_loops(loops, what.axes, {})
        for name, buffer, value in zip(names, buffers, what.values, strict=True):
            with _script.block(name):
                indices, mapping = _block_axes(what.axes, variables, {}, attrs)
                _script.buffer_store(buffer, _core.substitute(value, mapping), indices)


def _groups(what: Formula) -> list[list[_core.IterVar]]:
    """Return the axes in the order of their loops, in groups: the bounds of an axis use only axes of earlier groups.

    There is one group where all bounds are known beforehand.
    """
    assert isinstance(what.body, Reduction)
    level = {axis.var: 0 for axis in what.axes}
    own = {axis.var for axis in (*what.axes, *what.body.axes)}
    groups = [list(what.axes)]
    waiting = list(what.body.axes)
    if not any(used in own for axis in waiting for used in _variables(bounds(axis))):
        return [[*what.axes, *waiting]]
    while waiting:
        names = {axis.var for axis in waiting}
        ready = [axis for axis in waiting if not any(used in names for used in _variables(bounds(axis)))]
        for axis in ready:
            number = builtins.max([level[used] for used in _variables(bounds(axis)) if used in level], default=0) + 1
            groups += [[] for _ in range(number + 1 - len(groups))]
            groups[number].append(axis)
        level.update({axis.var: number for number, group in enumerate(groups) for axis in group})
        waiting = [axis for axis in waiting if axis.var not in level]
    return groups


def bounds(axis: _core.IterVar) -> list[_core.Expr]:
    """Return the expressions for the begin and the extent of an axis."""
    return [] if axis.dom is None else [axis.dom.min, axis.dom.extent]


def _bounds_in(axis: _core.IterVar, mapping: dict[Any, Any]) -> list[Any]:
    """Return the bounds, with the formula's axes replaced by those of the blocks."""
    return [_core.substitute(bound, mapping) for bound in bounds(axis)]


def _variables(expressions: Sequence[_core.Expr]) -> list[_core.Var]:
    return [var for expression in expressions for var in nodes_of(expression, _core.Var)]


def _emit_ragged(
    reduction: Reduction,
    groups: Sequence[Sequence[_core.IterVar]],
    name: str,
    buffers: Sequence[Any],
    attrs: dict[str, Any],
) -> None:
    """Emit a reduction over axes whose bounds use other axes: nested blocks, one for each group.

    A range may be empty, so a block of its own stores what the reduction starts from: no step does.
    """
    last = len(groups) - 1
    mapping: dict[Any, Any] = {}
    indices: tuple[Any, ...] = ()
    with ExitStack() as opened:
        for number, axes in enumerate(groups):
            variables = _open_loops(opened, axes, mapping)
            inner = axes[0].var.name_hint if axes else ""
            own = name if number == 0 else f"{name}_update" if number == last else f"{name}_{inner}"
            opened.enter_context(_script.block(own))
            added, new = _block_axes(axes, variables, mapping, attrs if number == 0 else {})
            mapping = {**mapping, **new}
            if number == 0:
                indices = added
                with _script.block(f"{name}_init"):
                    _store_start(reduction, buffers, indices, mapping)
        _emit_step(reduction, buffers, indices, mapping)


def _open_loops(opened: ExitStack, axes: Sequence[_core.IterVar], mapping: dict[Any, Any]) -> list[Any]:
    """Open a loop for each axis; return their variables."""
    loops = []
    for axis in axes:
        begin, extent = _bounds_in(axis, mapping)
        frame = _script.serial(begin, begin + extent)
        loops.append(_script.IRBuilder.name(axis.var.name_hint, opened.enter_context(frame)))
    return loops


def _block_axes(
    axes: Sequence[_core.IterVar], loops: Sequence[Any], mapping: dict[Any, Any], attrs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[Any, Any]]:
    """Define the axes of the block. Return them as indices of its stores, and as replacements of the formula's axes."""
    own = []
    for axis, loop in zip(axes, loops, strict=True):
        domain = _core.Range(*_bounds_in(axis, mapping))
        variable = _script.axis(int(axis.iter_type), domain, loop, axis.var.dtype)
        own.append(_script.IRBuilder.name(f"v_{axis.var.name_hint}", variable))
    if attrs:
        _script.block_attr(attrs)
    return tuple(own), {axis.var: new for axis, new in zip(axes, own, strict=True)}


def _emit_start(reduction: Reduction, buffers: Sequence[Any], indices: tuple[Any, ...], mapping: Any) -> None:
    with _script.init():
        _store_start(reduction, buffers, indices, mapping)


def _store_start(reduction: Reduction, buffers: Sequence[Any], indices: tuple[Any, ...], mapping: Any) -> None:
    for buffer, value in zip(buffers, reduction.start(), strict=True):
        _script.buffer_store(buffer, _core.substitute(value, mapping), indices)


def _emit_step(reduction: Reduction, buffers: Sequence[Any], indices: tuple[Any, ...], mapping: Any) -> None:
    reducer = reduction.reducer
    results: list[Any]
    before = [buffer[indices] for buffer in buffers]
    here = [_core.substitute(value, mapping) for value in reduction.values]
    combine = dict(zip([*reducer.lhs, *reducer.rhs], [*before, *here], strict=True))
    results = [_core.substitute(result, combine) for result in reducer.result]
    with ExitStack() as opened:
        if reduction.condition is not None:
            opened.enter_context(_script.if_(_core.substitute(reduction.condition, mapping)))
            opened.enter_context(_script.then_())
        if len(results) > 1:  # each one sees what was there before the step
            variables = []
            for buffer, result in zip(buffers, results, strict=True):
                variable = opened.enter_context(_script.let(result))
                variables.append(_script.IRBuilder.name(f"v_{buffer.name}", variable))
            results = variables
        for buffer, value in zip(buffers, results, strict=True):
            _script.buffer_store(buffer, value, indices)


def compute(shape: Any, fcompute: Callable[..., Any], name: str | None = None, out: Any = None) -> Any:
    """Compute a buffer by a formula inside the script; a formula with a tuple of values yields as many buffers.

    With `out` there is no result.

    Args:
        shape: the extents.
        fcompute: a function of the indices that gives the value, a tuple of values, or a reduction.
        name: name of the block; by default that of the variable which the result is assigned to.
        out: an existing buffer to compute, or a list of them; by default they are allocated.
    """
    extents = as_shape(shape)
    what = formula(extents, fcompute)
    count = len(what.values)
    if out is not None:
        buffers = list(_as_tuple(out))
        if len(buffers) != count:
            raise ArgumentError.of(
                "te/formula",
                f"a formula with {count} values computes {len(buffers)} buffers",
                "pass one buffer for each value",
            )
        name = name or buffers[0].name
    else:
        buffers = [_script.alloc_buffer(extents, value.dtype) for value in what.values]
        name = name or _assigned_name()
    names = [name] * count if isinstance(what.body, Reduction) or count == 1 else [f"{name}_{i}" for i in range(count)]
    emit(what, names, buffers, {})
    if out is not None:
        return None
    return buffers[0] if count == 1 else buffers


def _assigned_name() -> str:
    """Return the name that the current statement assigns to."""
    parser = active_parser()
    statement = parser.statement if parser else None
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
        return statement.targets[0].id
    return "compute"
