"""Formats of sparse tensors as rules: where each nonzero goes, along which axes."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, ParamSpec

import numpy as np

from tilewright import _core
from tilewright.errors import ArgumentError, ArgumentTypeError, ScriptError
from tilewright.sparse.structure import offsets_of
from tilewright.support import limits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

_Given = ParamSpec("_Given")
#: numbers for each key up to which keys are sorted by counting
MOST_KEYS_OF_EACH = 16
#: properties that index maps, conditions, and keys of ranks may use
FACTS_OF_NONZEROS = (
    *("shape", "coordinates", "position", "row", "column", "place", "length", "longest"),
    *("rank", "strip_rank", "among"),
)
FACTS_OF_ROWS = ("row", "length")


def unknown_fact(name: str, of: str, facts: Sequence[str]) -> Exception:
    """Return the error for an attribute that nonzeros or rows do not have. Python itself asks for names such as
    ``__deepcopy__``, and expects an AttributeError."""
    if name.startswith("_"):
        return AttributeError(name)
    known = f"they have {', '.join(facts)}"
    close = limits.closest(name, facts)
    hint = f"{close} {known}" if close.startswith("did you mean") else known
    return ArgumentError.of("sparse/index-map", f"{of} have no {name!r}", hint)


class SomeFacts:
    """Base of nonzeros that lack some properties: `lacks` is raised for these."""

    lacks: type[Exception]

    def __getattr__(self, name: str) -> Any:
        raise self.lacks(name) if name in FACTS_OF_NONZEROS else unknown_fact(name, "nonzeros", FACTS_OF_NONZEROS)


@dataclass(frozen=True)
class FormatAxis:
    """One axis of a format. The index map gives the key of each nonzero along the axis, and perhaps a coordinate.

    Attributes:
        name: name of the axis.
        kind: ``"dense"``: as many positions below each of the parent's as `extent`, the key is one of them.
            ``"varied"``: as many as the largest key below the parent's position needs. ``"compressed"``: one for each
            key that occurs, in ascending order.
        extent: extent of a dense axis.
        parent: the name of the axis below whose positions this one stands; None: the axis before it.
    """

    name: str
    kind: Literal["dense", "varied", "compressed"]
    extent: int = 0
    parent: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            message, hint = f"the name of an axis is {self.name!r:.80}", 'name it by a string: dense("I", m)'
            raise ArgumentTypeError.of("sparse/rules", message, hint)


def dense(name: str, extent: int, parent: str | None = None) -> FormatAxis:
    """Return an axis of `extent` positions below each of the parent's."""
    return FormatAxis(name, "dense", limits.whole("extent", extent, 0), parent)


def varied(name: str) -> FormatAxis:
    """Return an axis with as many positions as keys need: 0 to the largest one."""
    return FormatAxis(name, "varied")


def compressed(name: str) -> FormatAxis:
    """Return an axis with a position for each key that occurs."""
    return FormatAxis(name, "compressed")


class Rows:
    """Inputs of a rank's key: for each fiber of the last dimension (row of a matrix), its number and its number of
    nonzeros."""

    def __init__(self, count: int, length: Array) -> None:
        self._count, self.length = count, length

    @functools.cached_property
    def row(self) -> Array:
        """Return the number of each row."""
        return np.arange(self._count)

    def __getattr__(self, name: str) -> Any:
        raise unknown_fact(name, "rows", FACTS_OF_ROWS)


class Nonzeros:
    """Inputs of index maps and conditions, for each nonzero of a sorted tensor, in row-major order.

    Attributes:
        shape: shape of the tensor.
        coordinates: coordinates along each dimension.
        position: position among the nonzeros of the tensor, from 0.
        row: number of the fiber: all coordinates but the last, in row-major order.
        column: the last coordinate.
        place: position among the nonzeros of the row, from 0.
        length: number of nonzeros in the row.
        longest: the largest length, at least 1.
    """

    def __init__(self, shape: Sequence[int], coordinates: Sequence[Array], position: Array, rows: int) -> None:
        self.shape, self.coordinates, self.position = tuple(shape), tuple(coordinates), position
        self._rows = rows
        self.row = coordinates[0]
        for extent, along in zip(shape[1:-1], coordinates[1:-1], strict=True):
            self.row = self.row * extent + along
        self.column = coordinates[-1]

    # Computed when an index map or a condition asks: each is a pass over all nonzeros.

    @functools.cached_property
    def _lengths(self) -> Array:
        return np.bincount(self.row, minlength=self._rows)

    @functools.cached_property
    def runs(self) -> tuple[Array, Array]:
        """Return for each row with nonzeros where these begin, and their number. A tensor may have more rows than there
        is memory for a number of each."""
        return runs_of(self.row)

    @functools.cached_property
    def place(self) -> Array:
        """Return which one in its row each nonzero is."""
        begins, counts = self.runs
        own = self.row.dtype
        place: Array = np.arange(len(self.row), dtype=own) - np.repeat(begins.astype(own), counts)
        return place

    @functools.cached_property
    def length(self) -> Array:
        """Return how many nonzeros the row of each has."""
        _, counts = self.runs
        of_each: Array = np.repeat(counts, counts)
        return of_each

    @functools.cached_property
    def longest(self) -> int:
        """Return the largest length, at least 1."""
        return max(1, int(self.runs[1].max(initial=0)))

    def __getattr__(self, name: str) -> Any:
        raise unknown_fact(name, "nonzeros", FACTS_OF_NONZEROS)

    def rank(self, key: Callable[[Rows], Any], window: int | None = None) -> Array:
        """Return the stable rank of each nonzero's row by a key, among all rows, or within windows of so many rows.

        The first rank of a window is the number of its first row.
        """
        return self._ranks(key, window)[self.row].astype("int64")

    def _ranks(self, key: Callable[[Rows], Any], window: int | None) -> Array:
        order = self._order(key, window)
        ranks = np.empty_like(order)
        ranks[order] = np.arange(self._rows, dtype=order.dtype)
        return ranks

    def _order(self, key: Callable[[Rows], Any], window: int | None) -> Array:
        """Return the rows in the order of their ranks."""
        order = _sorted(np.broadcast_to(key(Rows(self._rows, self._lengths)), (self._rows,)))
        return order if window is None else in_windows(order, window)

    def strip_rank(self, height: int) -> Array:
        """Return the rank of each nonzero's column among the distinct columns of its strip of `height` rows."""
        strip = np.ascontiguousarray(self.row // height)
        column = np.ascontiguousarray(self.column, strip.dtype)
        positions, begins = np.empty_like(column), np.empty(self._rows // height + 2, column.dtype)
        _core.axis_positions(True, None, 1, strip, column, positions, begins)
        ranks: Array = positions - begins[strip]
        return ranks

    def among(self, condition: Any) -> Nonzeros:
        """Return those that fulfill a condition; places and lengths count these alone."""
        kept = np.flatnonzero(np.broadcast_to(condition, self.row.shape))
        if len(kept) == len(self.row):
            return self
        return Nonzeros(self.shape, [along[kept] for along in self.coordinates], self.position[kept], self._rows)


def runs_of(rows: Array) -> tuple[Array, Array]:
    """Return where runs of equal rows begin, and how long they are."""
    begins = np.flatnonzero(np.diff(rows, prepend=-1))
    return begins, np.diff(begins, append=len(rows))


def in_windows(order: Array, window: int) -> Array:
    """Return rows of an order by windows of so many rows, in each in that order."""
    return order[_sorted(order // window)]


def _sorted(keys: Array) -> Array:
    """Return positions sorted stably by keys."""
    if not len(keys):
        return np.zeros(0, "int32")
    if keys.dtype.kind in "biu":
        keys = keys if keys.dtype.itemsize == 8 else keys.astype("int64")
        least, end = int(keys.min()), int(keys.max()) + 1
        if end - least <= MOST_KEYS_OF_EACH * len(keys):  # else counters of all keys would exceed the keys by far
            dtype = "int32" if max(end - least, len(keys)) < np.iinfo("int32").max else "int64"
            return offsets_of((keys - keys.dtype.type(least)).astype(dtype), end - least)[1]
    return np.argsort(keys, kind="stable")


@dataclass(frozen=True)
class FormatRewriteRule:
    """How nonzeros are stored: SparseTIR's rule (arXiv 2207.04606, section 3.2), with an index map that may also use a
    row's length, the place in the row, ranks of rows, and ranks of columns in a strip.

    Attributes:
        name: name of the format.
        axes: axes, outermost first.
        index_map: function from :class:`Nonzeros` to one key for each axis; a pair of key and coordinate if the axis
            stores coordinates. A compressed axis stores its keys by itself. The map must be one to one on the nonzeros
            that the rule takes: no two of them may have the same position.
        conditions: conditions on the nonzeros that the rule takes. Each is applied to the nonzeros that the ones before
            have left, with places and lengths counted again.
        disjoint_rows: the name of a group. No two rules of one group take nonzeros of the same row of a matrix:
            programs rely on it, and conversions check it. "" for none.
        shape: shape of the tensors that the rule is for; None for any. Programs over the format and conversions to it
            refuse other shapes.

    Raises:
        tilewright.ArgumentTypeError: The axes are no axes ("sparse/rules").
        tilewright.ArgumentError: Two axes have the same name ("sparse/rules").
    """

    name: str
    axes: tuple[FormatAxis, ...]
    index_map: Callable[[Nonzeros], Sequence[Any]]
    conditions: tuple[Callable[[Nonzeros], Any], ...] = ()
    disjoint_rows: str = ""
    shape: tuple[int, ...] | None = None
    #: for a rule that a function made: the function, its arguments, and the number of the rule among its rules
    _origin: tuple[Any, ...] | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        axes = self.axes
        if not isinstance(axes, tuple | list) or not axes or not all(isinstance(axis, FormatAxis) for axis in axes):
            message = f"axes of rule {self.name!r} are {axes!r:.80}"
            hint = 'give a tuple of axes: (dense("I", m), compressed("J"))'
            raise ArgumentTypeError.of("sparse/rules", message, hint)
        for function in (self.index_map, *self.conditions):
            if not callable(function):
                message = f"rule {self.name!r} has {function!r:.80} where a function of nonzeros is meant"
                raise ArgumentTypeError.of("sparse/rules", message, "write lambda z: (z.row, z.column)")
        names = [axis.name for axis in self.axes]
        for at, name in enumerate(names):
            if name in names[:at]:
                message = f"two axes of rule {self.name!r} are called {name!r}"
                raise ArgumentError.of("sparse/rules", message, "axes are known by their names: rename one")
            if (parent := self.axes[at].parent) is not None and parent not in names[:at]:
                message = f"axis {name!r} of rule {self.name!r} stands below {parent!r}, which is no axis before it"
                raise ArgumentError.of("sparse/rules", message, f"axes before it are {names[:at]}")
        object.__setattr__(self, "axes", tuple(self.axes))
        if self.shape is not None:
            object.__setattr__(self, "shape", checked_shape(self.shape))

    def when(self, *conditions: Callable[[Nonzeros], Any]) -> FormatRewriteRule:
        """Return the rule for fewer nonzeros, in no group of `disjoint_rows`: several such rules may share rows."""
        return replace(self, conditions=(*self.conditions, *conditions), disjoint_rows="")

    def renamed(self, name: str) -> FormatRewriteRule:
        """Return the rule under another name."""
        made = replace(self, name=name)
        object.__setattr__(made, "_origin", self._origin)
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the rule: as the call that has made it, or by its functions, which pickle knows by their names.

        Raises:
            tilewright.ArgumentTypeError: A function of a rule of one's own has no such name ("sparse/rules").
        """
        if self._origin is not None:
            return _made_again, (*self._origin, self.name)
        functions = {"index map": (self.index_map,), "condition": self.conditions}
        for what, each in ((what, each) for what, all_of_it in functions.items() for each in all_of_it):
            try:
                pickle.dumps(each)
            except Exception as error:  # what pickle raises depends on the object
                message = f"rule {self.name!r} cannot be pickled, because its {what} cannot: {error}"
                hint = "make it a function of a module; lambdas and functions in functions have no name to pickle"
                raise ArgumentTypeError.of("sparse/rules", message, hint) from error
        given = (self.name, self.axes, self.index_map, self.conditions, self.disjoint_rows, self.shape)
        return FormatRewriteRule, given

    def __copy__(self) -> FormatRewriteRule:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> FormatRewriteRule:
        return self

    def entries(self, nonzeros: Any) -> Sequence[Any]:
        """Return what the index map gives: for each axis a key, or a pair of key and coordinate.

        Raises:
            tilewright.ArgumentError: It gives another number of entries, or keys that are no integers
                ("sparse/index-map").
        """
        try:
            given = self.index_map(nonzeros)
        except ScriptError as error:
            if error.code != "ir/integer-division":
                raise
            message = f"the index map of {self.name!r} gives a key of float: it divides by /"
            raise ArgumentTypeError.of(
                "sparse/index-map", message, "give integers: // is the quotient, not /"
            ) from error
        if not isinstance(given, tuple | list):
            message = f"the index map of {self.name!r} gives {type(given).__name__}"
            raise ArgumentTypeError.of("sparse/index-map", message, "it gives a tuple, with one key for each axis")
        if len(given) != len(self.axes):
            message = f"the index map of {self.name!r} gives {len(given)} keys for {len(self.axes)} axes"
            raise ArgumentError.of("sparse/index-map", message, "it gives one for each axis")
        for axis, entry in zip(self.axes, given, strict=True):
            for what, each in zip(("key", "coordinate"), entry if isinstance(entry, tuple) else (entry,), strict=False):
                if not _is_integer(each):
                    dtype = getattr(each, "dtype", type(each).__name__)
                    message = f"the index map of {self.name!r} gives a {what} of {dtype} along axis {axis.name!r}"
                    raise ArgumentTypeError.of("sparse/index-map", message, "give integers: // is the quotient, not /")
        return given

    def taken(self, nonzeros: Nonzeros, known: dict[tuple[Any, ...], Nonzeros] | None = None) -> Nonzeros:
        """Return the nonzeros that the rule takes.

        Args:
            nonzeros: all of them.
            known: what conditions have left, for rules whose first conditions are the same functions.
        """
        known = {} if known is None else known
        for count, condition in enumerate(self.conditions, 1):
            functions = tuple(map(id, self.conditions[:count]))
            left = known[functions] if functions in known else nonzeros.among(condition(nonzeros))
            if count < len(self.conditions):
                known[functions] = left
            nonzeros = left
        return nonzeros


def _made_again(
    make: Callable[..., Any], given: tuple[Any, ...], named: Mapping[str, Any], number: int, name: str
) -> FormatRewriteRule:
    """Return a rule as the function makes it: what a pickled one is read by."""
    rule: FormatRewriteRule = make(*given, **named)[number]
    return rule.renamed(name)


def picklable(make: Callable[_Given, list[FormatRewriteRule]]) -> Callable[_Given, list[FormatRewriteRule]]:
    """Return the function with rules that are pickled as its call: its own functions have no name for pickle.

    Args:
        make: a function of a module, whose arguments can be pickled.
    """

    @functools.wraps(make)
    def made(*given: _Given.args, **named: _Given.kwargs) -> list[FormatRewriteRule]:
        rules = make(*given, **named)
        for number, rule in enumerate(rules):
            object.__setattr__(rule, "_origin", (made, given, named, number))
        return rules

    return made


def _is_integer(given: Any) -> bool:
    """Return whether a key is an integer, an array of them, or an expression that is one."""
    dtype = getattr(given, "dtype", None)
    return isinstance(given, int) if dtype is None else str(dtype).startswith(("int", "uint", "bool"))


def checked_shape(shape: Any) -> tuple[int, ...]:
    """Return a shape as a tuple of numbers.

    Raises:
        tilewright.ArgumentError: It is none ("arguments/number").
    """
    extents = shape if isinstance(shape, Sequence | np.ndarray) and not isinstance(shape, str) else [shape]
    return tuple(int(limits.whole(f"shape[{d}]", extent, 0)) for d, extent in enumerate(extents))


def checked_rules(rules: Any) -> tuple[FormatRewriteRule, ...]:
    """Return rules as a tuple. Of several with the same name, later ones get a number: iterations are named by them.

    Raises:
        tilewright.ArgumentTypeError: They are no list of rules ("sparse/rules").
        tilewright.ArgumentError: They are for different shapes ("sparse/rules").
    """
    if isinstance(rules, FormatRewriteRule):
        raise ArgumentTypeError.of("sparse/rules", f"rules is the rule {rules.name!r}", "give a list of rules: [rule]")
    if isinstance(rules, str) or not isinstance(rules, Sequence):
        hint = "make rules for the shape of the tensor: tw.sparse.formats.csr(m, n)"
        raise ArgumentTypeError.of("sparse/rules", f"rules is {rules!r:.80}", hint)
    for rule in rules:
        if not isinstance(rule, FormatRewriteRule):
            message = f"a rule is of type {type(rule).__name__}"
            hint = "rules are what tw.sparse.formats returns, and tw.sparse.FormatRewriteRule"
            raise ArgumentTypeError.of("sparse/rules", message, hint)
    shape_of(rules)
    return _of_different_names(rules)


def _of_different_names(rules: Sequence[FormatRewriteRule]) -> tuple[FormatRewriteRule, ...]:
    names = {rule.name for rule in rules}
    result: list[FormatRewriteRule] = []
    for rule in rules:
        name, number = rule.name, 1
        while any(name == known.name for known in result) or (number > 1 and name in names):
            name, number = f"{rule.name}_{number}", number + 1
        result.append(rule if name == rule.name else rule.renamed(name))
    return tuple(result)


def shape_of(rules: Sequence[FormatRewriteRule]) -> tuple[int, ...] | None:
    """Return the shape of the tensors that rules are for, None for any."""
    known = [rule for rule in rules if rule.shape is not None]
    for rule in known[1:]:
        if rule.shape != known[0].shape:
            message = (
                f"rule {known[0].name!r} is for the shape {known[0].shape}, and rule {rule.name!r} for {rule.shape}"
            )
            raise ArgumentError.of("sparse/rules", message, "rules divide the nonzeros of one tensor among them")
    return known[0].shape if known else None
