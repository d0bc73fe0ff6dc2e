"""Conversion to formats whose coordinates are expressions of those of a nonzero, such as CSC, COO, BSR and SR-BCRS.

A generated kernel evaluates each expression for all nonzeros, in the type of the coordinates if it cannot overflow.
This works for rules whose index map accepts symbolic coordinates, and whose keys are proved to be in range.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright import _core, ir, te
from tilewright.kernel.kernel import Kernel, compile_quietly
from tilewright.sparse.array_kernels import scatter_kernel
from tilewright.sparse.format_rule import FormatRewriteRule, Nonzeros, Rows, SomeFacts, runs_of
from tilewright.sparse.function_identity import made_of
from tilewright.sparse.structure import name_of
from tilewright.support.nodes import nodes_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

#: The least number of nonzeros for which a kernel is compiled; NumPy is faster below.
MANY_NONZEROS = 1 << 14


class NotByNonzeros(Exception):
    """Raised if an index map does not accept symbolic coordinates, or its keys are not proved to be in range."""


class AllNonzeros(Nonzeros):
    """All nonzeros of a tensor, with their properties (row, position, place) in the type of the coordinates."""

    def __init__(self, shape: Sequence[int], coordinates: Sequence[Array], indptr: Array | None) -> None:
        self.shape, self.coordinates, self.column = tuple(shape), tuple(coordinates), coordinates[-1]
        self._rows = math.prod(self.shape[:-1])
        self.indptr = indptr

    @functools.cached_property
    def row(self) -> Array:  # type: ignore[override]
        """Return the row of each nonzero; of a tensor, the linear index of its fiber."""
        row = self.coordinates[0]
        for extent, along in zip(self.shape[1:-1], self.coordinates[1:-1], strict=True):
            row = row.astype("int64") * extent + along
        return row

    @functools.cached_property
    def position(self) -> Array:  # type: ignore[override]
        """Return the number of each nonzero."""
        return np.arange(len(self.column), dtype=self.column.dtype)

    @functools.cached_property
    def _lengths(self) -> Array:
        if self.indptr is not None:
            return np.diff(self.indptr).astype("int64")
        return np.bincount(self.row, minlength=self._rows)

    @functools.cached_property
    def runs(self) -> tuple[Array, Array]:
        """Return for each row with nonzeros where these begin, and their number."""
        if self.indptr is None:
            return runs_of(self.row)
        rows = np.flatnonzero(self._lengths)
        return self.indptr[rows], self._lengths[rows]


class _Symbols(SomeFacts):
    """The symbolic counterpart of :class:`Nonzeros`: each property is a variable instead of an array. What nobody asks
    for has no bound either: a tensor may have more rows than there is memory to count the nonzeros of each."""

    lacks = NotByNonzeros

    def __init__(self, given: Nonzeros, dtype: str) -> None:
        self.shape = given.shape
        self._given, self._dtype = given, dtype
        #: by variable: a function that returns its values, and their exclusive upper bound
        self.facts: dict[ir.Var, tuple[Callable[[], Any], int]] = {}
        self.coordinates = tuple(
            self._variable(f"x{d}", functools.partial(given.coordinates.__getitem__, d), extent)
            for d, extent in enumerate(self.shape)
        )
        self.column = self.coordinates[-1]

    # The functions below must not refer to what holds them: a cycle keeps arrays for a while.

    @functools.cached_property
    def row(self) -> ir.Var:
        """Return the row."""
        return self.coordinates[0] if len(self.shape) == 2 else self._fact("row", self._given._rows)

    @functools.cached_property
    def place(self) -> ir.Var:
        """Return the index within the row."""
        return self._fact("place", self._given.longest)

    @functools.cached_property
    def length(self) -> ir.Var:
        """Return the number of nonzeros of the row."""
        return self._fact("length", self._given.longest + 1)

    @functools.cached_property
    def longest(self) -> ir.Var:
        """Return the largest length."""
        return self._fact("longest", self._given.longest + 1)

    @functools.cached_property
    def position(self) -> ir.Var:
        """Return the number of the nonzero."""
        given = self._given
        end = len(given.column) if type(given) is AllNonzeros else int(given.position.max(initial=-1)) + 1
        return self._fact("position", end)

    def _fact(self, name: str, end: int) -> ir.Var:
        return self._variable(name, functools.partial(getattr, self._given, name), end)

    def _variable(self, name: str, values: Callable[[], Any], end: int) -> ir.Var:
        variable = ir.Var(name, self._dtype)
        self.facts[variable] = functools.cache(values), end
        return variable

    @property
    def fit(self) -> bool:
        """Return whether the type holds the values of all variables."""
        return all(end <= np.iinfo(self._dtype).max for _, end in self.facts.values())

    def analyzer(self) -> _core.Analyzer:
        """Return an analyzer that knows the ranges of the variables."""
        analyzer = _core.Analyzer()
        for variable, (_, end) in self.facts.items():
            ends = (_core.const(0, self._dtype), _core.const(max(end, 1), self._dtype))
            analyzer.bind(variable, _core.Range(*ends))
        return analyzer

    def rank(self, key: Callable[[Rows], Any], window: int | None = None) -> ir.Var:
        """Return the rank of the row."""
        given = self._given
        return self._variable(f"rank{len(self.facts)}", lambda: given.rank(key, window), given._rows)

    def strip_rank(self, height: int) -> ir.Var:
        """Return the rank of the column in its strip."""
        given = self._given
        return self._variable(f"rank{len(self.facts)}", lambda: given.strip_rank(height), self.shape[-1])


class _CoordinateSymbols(SomeFacts):
    """Coordinates of any nonzero of a tensor of a shape, as variables."""

    lacks = NotByNonzeros

    def __init__(self, shape: Sequence[int]) -> None:
        self.shape = tuple(shape)
        self.coordinates = tuple(ir.Var(f"x{d}", "int64") for d in range(len(shape)))
        self.column = self.coordinates[-1]

    def __getattr__(self, name: str) -> Any:
        return self.coordinates[0] if name == "row" and len(self.shape) == 2 else super().__getattr__(name)


#: by what conditions are made of and a shape: whether they hold for all coordinates
_hold: dict[Any, bool] = {}
MOST_CONDITIONS = 1024


def holds_for_coordinates(condition: Callable[[Nonzeros], Any], shape: Sequence[int]) -> bool:
    """Return whether a condition on coordinates alone is proved for any nonzero of a tensor of this shape. The proof is
    made once for conditions that are equal."""
    own = made_of(condition)
    key = (own, tuple(shape))
    if own is condition:
        return _proved_for_coordinates(condition, shape)
    if (known := _hold.get(key)) is None:
        if len(_hold) >= MOST_CONDITIONS:
            _hold.clear()
        known = _hold[key] = _proved_for_coordinates(condition, shape)
    return known


def _proved_for_coordinates(condition: Callable[[Nonzeros], Any], shape: Sequence[int]) -> bool:
    symbols: Any = _CoordinateSymbols(shape)
    analyzer = _core.Analyzer()
    for variable, extent in zip(symbols.coordinates, shape, strict=True):
        analyzer.bind(variable, _core.Range(_core.const(0, "int64"), _core.const(max(extent, 1), "int64")))
    return _is_proved(condition, symbols, analyzer)


def _is_proved(condition: Callable[[Nonzeros], Any], symbols: Any, analyzer: _core.Analyzer) -> bool:
    try:
        holds = condition(symbols)
    except Exception:  # of arrays alone
        return False
    return bool(analyzer.can_prove(holds)) if isinstance(holds, ir.Expr) else holds is True


def always_holds(condition: Callable[[Nonzeros], Any], nonzeros: Nonzeros) -> bool:
    """Return whether a condition is proved for any nonzero of a tensor of this shape and these lengths."""
    symbols: Any = _Symbols(nonzeros, "int64")
    return _is_proved(condition, symbols, symbols.analyzer())


class ByNonzeros:
    """Formulas of a rule for some nonzeros.

    Attributes:
        keys: key of each axis, proved to be in range: an expression or an integer.
        coordinates: coordinate of each axis that stores one other than its key; None for the others.

    Raises:
        NotByNonzeros: There are none.
    """

    def __init__(self, rule: FormatRewriteRule, nonzeros: Nonzeros, dtype: str) -> None:
        self._count = len(nonzeros.column)
        self._known: dict[ir.Expr, Array] = {}
        if dtype == "int64" or not self._evaluate(rule, nonzeros, dtype):
            self._evaluate(rule, nonzeros, "int64")
        for axis, key in zip(rule.axes, self.keys, strict=True):
            in_range = [self._compared(key, _core.GE, 0)]
            if axis.kind == "dense":
                in_range.append(self._compared(key, _core.LT, axis.extent))
            if not all(in_range):
                raise NotByNonzeros(axis.name)

    def __len__(self) -> int:
        return self._count

    def _evaluate(self, rule: FormatRewriteRule, nonzeros: Nonzeros, dtype: str) -> bool:
        """Apply the index map to variables of a type; return whether no formula overflows it."""
        symbols = _Symbols(nonzeros, dtype)
        try:
            entries = rule.entries(symbols)
        except Exception as error:  # a map of arrays alone
            raise NotByNonzeros(str(error)) from error
        self.dtype, self._facts, self._of_tensor = dtype, symbols.facts, symbols.coordinates
        self.keys = [entry[0] if isinstance(entry, tuple) else entry for entry in entries]
        self.coordinates = [entry[1] if isinstance(entry, tuple) else None for entry in entries]
        if not symbols.fit:
            return False
        given = [each for each in (*self.keys, *self.coordinates) if each is not None]
        if not all(isinstance(each, int) or (isinstance(each, ir.Expr) and each.dtype == dtype) for each in given):
            raise NotByNonzeros("keys")
        self._analyzer = symbols.analyzer()
        return all(self.fits(each) for each in given)

    def _compared(self, key: Any, operator: Any, number: int) -> bool:
        if isinstance(key, int):
            return bool(key >= 0 if operator is _core.GE else key < number)
        return self._analyzer.can_prove(operator(key, _core.const(number, self.dtype)))

    def fits(self, formula: Any) -> bool:
        """Return whether no part of a formula exceeds the type of the variables."""
        limits = np.iinfo(self.dtype)
        parts = () if isinstance(formula, int) else nodes_of(formula, ir.Expr)
        bounds: list[Any] = [self._analyzer.const_int_bound(part) for part in parts if part.dtype == self.dtype]
        return all(limits.min < bound.min_value and bound.max_value < limits.max for bound in bounds)

    def tell_apart(self, rule: FormatRewriteRule) -> bool:
        """Return whether nonzeros at one position have the same coordinates: each is a key, or the quotient and the
        remainder of one divisor are, or an axis stores it. As no nonzero occurs twice, none shares a position then."""
        keeps_all = all(
            axis.kind == "dense" or axis.parent in (None, before.name)
            for before, axis in zip(rule.axes, rule.axes[1:], strict=False)
        )
        return keeps_all and all(map(self._is_told, self._of_tensor))

    def _is_told(self, coordinate: ir.Var) -> bool:
        parts: dict[int, set[type]] = {}
        for each in (*self.keys, *self.coordinates):
            if isinstance(each, ir.Var) and each.same_as(coordinate):
                return True
            is_part = isinstance(each, ir.FloorDiv | ir.FloorMod) and isinstance(each.a, ir.Var)
            if is_part and each.a.same_as(coordinate) and isinstance(each.b, ir.IntImm):
                parts.setdefault(int(each.b.value), set()).add(type(each))
        return any(len(found) == 2 for found in parts.values())

    def values(self, formula: Any) -> Array | None:
        """Return the values of a formula for all nonzeros; None if all are 0."""
        if isinstance(formula, int):
            return np.full(self._count, formula, self.dtype) if formula else None
        if formula not in self._known:
            self._known[formula] = self._computed(formula)
        return self._known[formula]

    def _computed(self, formula: ir.Expr) -> Array:
        if isinstance(formula, ir.Var) and formula in self._facts:
            values = self._facts[formula][0]()
            same = values if np.ndim(values) else np.full(self._count, values, self.dtype)
            return np.ascontiguousarray(same, self.dtype)
        variables = list(dict.fromkeys(nodes_of(formula, ir.Var)))
        arrays = [self._facts[variable][0]() for variable in variables]
        types = [str(array.dtype) if isinstance(array, np.ndarray) else "" for array in arrays]
        result = np.empty(self._count, self.dtype)
        _kernel_of(formula, variables, types)(*arrays, result)
        return result


@dataclass(frozen=True)
class Positions:
    """Positions of nonzeros along an axis: base * radix + offset, which are less than count."""

    formulas: ByNonzeros
    base: Array | None
    radix: int
    offset: Any
    count: int

    def below(self, extent: int, key: Any) -> Positions:
        """Return positions along a dense axis below this one."""
        offset = self.offset * extent + key
        return Positions(self.formulas, self.base, self.radix * extent, offset, self.count * extent)

    def along(self, is_compressed: bool, key: Any, dtype: Any) -> tuple[Positions, Array]:
        """Return positions along another axis below this one, and its offsets."""
        size = len(self.formulas)
        positions, indptr = np.empty(size, dtype), np.empty(self.count + 1, dtype)
        keys, offset = self.formulas.values(key), self.formulas.values(self.offset)
        keys = np.zeros(size, dtype) if keys is None else keys
        found, _ = _core.axis_positions(is_compressed, self.base, self.radix, offset, keys, positions, indptr)
        return Positions(self.formulas, positions, 1, 0, found), indptr

    def of_all(self, dtype: Any) -> Array:
        """Return the position of each nonzero."""
        offset = self.formulas.values(self.offset)
        if self.base is None:
            return np.zeros(len(self.formulas), dtype) if offset is None else offset.astype(dtype, copy=False)
        positions: Array = np.multiply(self.base, self.radix, dtype=dtype)
        if offset is not None:
            np.add(positions, offset, out=positions, casting="unsafe")
        return positions

    def store(self, values: Array | None, out: Array, verify: bool) -> bool:
        """Store the values of nonzeros, their numbers if there are none, at their positions. With `verify`, return
        whether none of them is overwritten by another value."""
        if values is not None:
            values = np.ascontiguousarray(values, out.dtype)
        offset = self.formulas.values(self.offset)
        return _core.scatter_values(self.base, self.radix, offset, len(self.formulas), values, verify, out) < 0


class Scattered:
    """How the elements of a part are stored of which most are padding: each nonzero at a position of its own.

    Attributes:
        size: how many elements are stored.
    """

    def __init__(self, positions: Positions, numbers: Array | None, dtype: Any) -> None:
        """`numbers`: those of the nonzeros of the formulas among all nonzeros; None for all."""
        self.size, self._numbers = positions.count, numbers
        self._positions = positions.of_all(dtype)

    def elements(self, of_nonzeros: Array) -> Array:
        """Return the stored elements: those of nonzeros, and 0 for padding."""
        own = of_nonzeros if self._numbers is None else of_nonzeros[self._numbers]
        stored = np.zeros(self.size, of_nonzeros.dtype)
        scatter_kernel(name_of(own.dtype), name_of(self._positions.dtype))(own, self._positions, stored)
        return stored

    def numbers(self) -> Array:
        """Return the number of the nonzero that each stored element is, -1 for padding."""
        source = np.full(self.size, -1, self._positions.dtype)
        source[self._positions] = np.arange(len(self._positions)) if self._numbers is None else self._numbers
        return source


#: kernels by what they compute
_kernels: dict[Any, Kernel] = {}


def _kernel_of(formula: ir.Expr, variables: Sequence[ir.Var], types: Sequence[str]) -> Kernel:
    """Return the kernel that evaluates a formula.

    Args:
        formula: an integer formula.
        variables: the variables in it.
        types: data types of the variables' arrays; "" for a variable that is a number.
    """
    key = (str(formula), formula.dtype, *types)
    if key not in _kernels:
        compiled = compile_quietly(_program(formula, variables, types), schedule=None)
        assert isinstance(compiled, Kernel)
        _kernels[key] = compiled
    return _kernels[key]


def _program(formula: ir.Expr, variables: Sequence[ir.Var], types: Sequence[str]) -> ir.PrimFunc:
    count = te.size_var("count", "int32")
    parameters = [
        te.placeholder((count,), dtype, variable.name) if dtype else variable
        for variable, dtype in zip(variables, types, strict=True)
    ]
    dtype = formula.dtype

    def element(p: Any) -> Any:
        known = {
            variable: _core.cast(dtype, array[p])
            for variable, array in zip(variables, parameters, strict=True)
            if isinstance(array, te.Tensor)
        }
        return _core.substitute(formula, known)

    return te.create_prim_func([*parameters, te.compute((count,), element, name="keys")])
