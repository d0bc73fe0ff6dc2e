"""Sparse programs over the formats of a tensor: one iteration for each rule (SparseTIR, section 3.2).

Axes of a format become dense ones: `dense_fixed`, or `dense_varied` below the axis in front. Along them, each stored
element has coordinates of its own, also where a row is cut and where several elements are padding. The coordinates of
the tensor are formulas of those, or are read from arrays.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright import _core, ir
from tilewright.errors import ArgumentError, ArgumentTypeError
from tilewright.sparse.conversion import ConvertedStructure, StoredPart
from tilewright.sparse.decompose_iterations import decomposed, refusal, variables_of
from tilewright.sparse.fill import RowNonzero
from tilewright.sparse.format_rule import FormatRewriteRule, checked_rules, shape_of
from tilewright.sparse.specialize import require_function
from tilewright.support.changed_nodes import with_fields
from tilewright.task.declared_values import DISJOINT, DOMAINS, SIZES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]


def _array(name: str, dtype: str, shape: Sequence[Any], axes: Sequence[Any] = ()) -> ir.Buffer:
    """Return a buffer behind a parameter, as the parser makes it: its offset has the type of its extents."""
    data = ir.Var(f"{name}_data", ir.PointerType(ir.PrimType(dtype), "global"))
    return ir.Buffer(data, dtype, shape, elem_offset=_core.IntImm(shape[0].dtype, 0), name=name, axes=axes)


@dataclass(frozen=True, eq=False)
class DecomposedProgram:
    """A program over formats.

    Attributes:
        function: the program. Its parameters are those of the original one without the tensor, followed for each rule
            by what :meth:`arguments` returns.
        rules: rules by which it was decomposed.
        tensors: the buffers of the original program that are stored in other formats.
    """

    function: ir.PrimFunc
    rules: tuple[FormatRewriteRule, ...]
    tensors: tuple[ir.Buffer, ...]
    _formats: tuple[Format, ...]

    @property
    def tensor(self) -> ir.Buffer:
        """Return the buffer of the original program, the first one of several, that is stored in other formats."""
        return self.tensors[0]

    def arguments(self, converted: ConvertedStructure, *stored: Sequence[Array]) -> list[Any]:
        """Return the arguments for a structure: offsets of axes, coordinates, elements, and numbers of positions.

        Args:
            converted: the structure, by the same rules.
            stored: for each tensor the elements of each part, as ``converted.convert_values`` gives them. Where the
                program writes a tensor, ``converted.values_back`` makes values of them afterwards.

        Raises:
            tilewright.ArgumentError: The structure is converted by other rules, or has another shape than the program
                is for; or elements are not those of its parts.
        """
        self._check_structure(converted)
        if len(stored) != len(self.tensors):
            names = ", ".join(tensor.name for tensor in self.tensors)
            message = f"elements of {len(stored)} tensors, and the program is over formats of {names}"
            raise ArgumentError.of("sparse/values", message, "give those of each tensor, in this order")
        for of_tensor in stored:
            self._check_elements(converted, of_tensor)
        given: list[Any] = []
        for each, part, *elements in zip(self._formats, converted.parts, *stored, strict=True):
            given += each.arguments(part, elements)
        return given

    @staticmethod
    def _check_elements(converted: ConvertedStructure, stored: Sequence[Array]) -> None:
        if isinstance(stored, np.ndarray) or len(stored) != len(converted.parts):
            message = f"{len(stored)} arrays of elements for {len(converted.parts)} parts"
            if isinstance(stored, np.ndarray):
                message = f"stored is one array of shape {stored.shape}"
            hint = "give a list with one array for each rule, in their order: converted.convert_values(values)"
            raise ArgumentError.of("sparse/values", message, hint)
        for part, elements in zip(converted.parts, stored, strict=True):
            if (count := math.prod(np.shape(elements))) != part.size:
                message = f"{count} elements for rule {part.rule.name!r}, which stores {part.size}"
                raise ArgumentError.of("sparse/values", message, "give them as converted.convert_values does")

    def _check_structure(self, converted: ConvertedStructure) -> None:
        if not isinstance(converted, ConvertedStructure):
            hint = "convert it: tw.sparse.convert_structure(program.rules, shape, coordinates)"
            raise ArgumentTypeError.of("sparse/arrays", f"converted is of type {type(converted).__name__}", hint)
        lengths = [int(e.value) if isinstance(e := axis.length, ir.IntImm) else None for axis in self.tensor.axes]
        shape = tuple(shape_of(self.rules) or lengths)
        fits = [own in (None, extent) for own, extent in zip(shape, converted.shape, strict=False)]
        if len(shape) != len(converted.shape) or not all(fits):
            message = f"the structure has the shape {converted.shape}, and the program is for {shape}"
            raise ArgumentError.of("sparse/shape", message, "decompose the program for the shape of this structure")
        others = [part.rule for part in converted.parts]
        if [_axes_of(rule) for rule in others] != [_axes_of(rule) for rule in self.rules]:
            of, own = (", ".join(rule.name for rule in rules) for rules in (others, self.rules))
            message = f"the structure is stored by the rules {of}, and the program is over {own}"
            if of == own:
                message = f"the rules {of} of the structure have other axes than those of the program"
            hint = "convert it by the rules of the program: tw.sparse.convert_structure(program.rules, ...)"
            raise ArgumentError.of("sparse/rules", message, hint)

    def positions_of_elements(self) -> list[int]:
        """Return for each rule the position of the parameter that holds its elements of the first tensor."""
        buffers = [self.function.buffer_map.get(param) for param in self.function.params]
        elements = [each.elements[self.tensor] for each in self._formats]
        return [next(i for i, b in enumerate(buffers) if b is each) for each in elements]


def decompose_format(
    func: ir.PrimFunc, name: str | Sequence[str], rules: Sequence[FormatRewriteRule]
) -> DecomposedProgram:
    """Rewrite a sparse program so that a tensor, or several tensors over the same axes, are stored in other formats.

    Each iteration over the tensor becomes one for each rule, over the axes of that format. What the rules update
    together is initialized once, by an iteration in front of them. Padding is skipped.

    Args:
        func: the program. Iterations access the tensor by their own variables, and are not nested.
        name: name of the tensor, or a list of names.
        rules: rules that divide its nonzeros among them.

    Raises:
        tilewright.ArgumentError: The program has no such tensor, or accesses it in another way; or an axis of a rule
            stands below several others; or the rules are for another shape.
    """
    require_function(func, "sparse/decompose")
    rules = checked_rules(rules)
    if not rules:
        raise refusal("there is no rule", "give at least one: tw.sparse.formats.csr(m, n)")
    found = _tensors(func, [name] if isinstance(name, str) else list(name))
    tensors = tuple(found.values())
    required = _required_sizes(tensors[0], rules)
    formats = tuple(Format(rule, tensors) for rule in rules)
    root = func.body.block if isinstance(func.body, ir.BlockRealize) and not func.body.iter_values else None
    inside = func.body if root is None else root.body
    statements = list(inside.seq) if isinstance(inside, ir.SeqStmt) else [inside]
    rewritten: list[Any] = []
    for statement in statements:
        made: Any = _core.at_span_of(statement, partial(decomposed, statement, tensors, formats))
        rewritten += made
    buffers = {handle: buffer for handle, buffer in func.buffer_map.items() if handle not in found}
    params, axes = [each for each in func.params if each not in found], list(func.axes)
    for each in formats:
        params += each.params
        buffers |= each.buffers
        axes += each.axes
    body: Any = rewritten[0] if len(rewritten) == 1 else ir.SeqStmt(rewritten)
    domains = [domain for each in formats for domain in each.domains()]
    body = _declaring(body, root, {DOMAINS: domains, DISJOINT: _disjoint_lists(formats), SIZES: required})
    function = ir.PrimFunc(params, buffers, func.ret_type, func.attrs, body, axes)
    _core.verify(_core.as_module(function), "sparse")
    return DecomposedProgram(function, rules, tensors, formats)


def _tensors(func: ir.PrimFunc, names: Sequence[Any]) -> dict[ir.Var, ir.Buffer]:
    """Return the parameters of the tensors with these names, and their buffers.

    Raises:
        tilewright.ArgumentError: There is no such tensor, or they have different axes ("sparse/decompose").
    """
    found: dict[ir.Var, ir.Buffer] = {}
    for name in names:
        for param, buffer in func.buffer_map.items():
            is_sparse = any(axis.indptr is not None or axis.indices is not None for axis in buffer.axes)
            if buffer.name == name and is_sparse and param not in found:
                found[param] = buffer
                break
        else:
            raise refusal(
                f"the program has no sparse buffer {name!r}", "name one that has axes with offsets or indices"
            )
    if not found:
        raise refusal("no tensor is named", 'name at least one: "A", or ["A", "C"]')
    first, *others = found.values()
    for other in others:
        if list(other.axes) != list(first.axes):
            message = f"{first.name!r} and {other.name!r} have different axes"
            raise refusal(message, "tensors that are decomposed together share their structure")
    return found


def _declaring(body: Any, root: ir.Block | None, declared: dict[str, list[Any]]) -> Any:
    """Return the body in the root block of the function, which declares the properties of the coordinate arrays."""
    if root is None and not any(declared.values()):
        return body
    block = ir.Block(name_hint="root", body=body) if root is None else with_fields(root, body=body)
    annotations = dict(block.annotations.items())
    for key, more in declared.items():
        if more:
            annotations[key] = [*annotations.get(key, ()), *more]
    return ir.BlockRealize([], _core.const(True, "bool"), with_fields(block, annotations=annotations))


def _axes_of(rule: FormatRewriteRule) -> tuple[Any, ...]:
    """Return a key of the arrays of a rule: its name and its axes."""
    return rule.name, rule.axes


def _required_sizes(tensor: ir.Buffer, rules: Sequence[FormatRewriteRule]) -> list[list[Any]]:
    """Return the conditions of calls under which the coordinates of a format are coordinates of the tensor: conditions
    on lengths of its axes, messages and hints. Rules without a shape still limit the keys of dense axes.

    Raises:
        tilewright.ArgumentError: The tensor has another shape ("sparse/shape").
    """
    shape = shape_of(rules)
    if shape is not None and len(shape) != len(tensor.axes):
        message = f"{tensor.name!r} has {len(tensor.axes)} axes, and the rules are for the shape {shape}"
        raise ArgumentError.of("sparse/shape", message, "make the format for the shape of the tensor")
    required: list[list[Any]] = []
    for d, axis in enumerate(tensor.axes):
        extent = shape[d] if shape is not None else max(_least_extent(rule, d, len(tensor.axes)) for rule in rules)
        if extent == 0 and shape is None:
            continue
        number = _core.IntImm(axis.length.dtype, extent)
        holds = axis.length == number if shape is not None else axis.length >= number
        length = str(axis.length)
        if isinstance(axis.length, ir.IntImm):
            if not (int(axis.length.value) == extent if shape is not None else int(axis.length.value) >= extent):
                message = (
                    f"axis {axis.name!r} of {tensor.name!r} has the length {length}, and the rules are for {extent}"
                )
                raise ArgumentError.of("sparse/shape", message, "make the format for the shape of the tensor")
            continue
        what = f"of shape {shape}" if shape is not None else f"with {extent} or more along axis {axis.name!r}"
        relation = "is not" if shape is not None else "is less than"
        message = f"{length} {relation} {extent}: {tensor.name!r} is stored in a format for tensors {what}"
        required.append([holds, message, "decompose the program for the shape of this tensor, and convert it anew"])
    return required


def _least_extent(rule: FormatRewriteRule, dimension: int, dimensions: int) -> int:
    """Return the minimum extent of the dimension, if dense axes give its coordinates: they reach into the last
    block."""
    known = _coordinates(rule, dimensions)[dimension]
    axes = [rule.axes[at] for at in known.keys]
    if known.formula is None or not axes or any(axis.kind != "dense" or not axis.extent for axis in axes):
        return 0
    # Of quotient and remainder, in this order: the last block may have one row only.
    at_most = {at: axis.extent - 1 for at, axis in zip(known.keys, axes, strict=True)}
    at_most |= dict.fromkeys(known.keys[1:], 0)
    return int(known.formula([at_most.get(at, 0) for at in range(len(rule.axes))])) + 1


def _disjoint_lists(formats: Sequence[Format]) -> list[list[Any]]:
    """Return the lists of rows of rules that take no nonzeros of the same row, by groups."""
    groups: dict[str, list[Any]] = {}
    for each in formats:
        if (rows := each.row_list()) is not None and each.rule.disjoint_rows:
            groups.setdefault(each.rule.disjoint_rows, []).append(each.whole(rows))
    return [group for group in groups.values() if len(group) > 1]


@dataclass
class _Coordinate:
    """How a coordinate of the tensor follows from those of a format.

    Attributes:
        formula: from the keys along the axes, or None.
        reads: the compressed axes among those that it is made of, whose keys are stored.
        axis: the name of the axis that stores it, or None: there is an array for all stored elements.
        keys: the axes whose keys alone it is made of: itself, or quotient and remainder; different keys, different
            coordinates. Empty where other coordinates are part of it.
        divisor: divisor of quotient and remainder, or 0.
        rank: the rank of a row from the keys, where a list gives the row of each key (`formula` is None), or None.
    """

    formula: Any = None
    reads: Sequence[int] = ()
    axis: str | None = None
    keys: Sequence[int] = ()
    divisor: int = 0
    rank: Any = None


class Format:
    """The axes, buffers and parameters of a rule."""

    def __init__(self, rule: FormatRewriteRule, tensors: Sequence[ir.Buffer]) -> None:
        self.rule, self.tensor = rule, tensors[0]
        tensor = self.tensor
        self.params: list[ir.Var] = []
        self.buffers: dict[ir.Var, ir.Buffer] = {}
        self.axes: list[Any] = []  # with a root of one position in front where the first axis is not dense
        self.idtype = str(tensor.axes[-1].idtype)
        self._counts: list[ir.Var] = []
        self._numbers: dict[str, int] = {}
        for number, axis in enumerate(rule.axes):
            self._add_axis(number, axis)
        self.variables = [ir.Var(axis.name.lower(), self.idtype) for axis in self.axes]
        self._known = _coordinates(rule, len(tensor.axes))
        whole = list(range(len(rule.axes)))
        self._arrays: list[Any] = []
        for d, coordinate in enumerate(self._known):
            along = whole if coordinate.axis is None else self._chain(coordinate.axis)
            if coordinate.rank is not None:
                self._arrays.append(self._list_of_rows(coordinate))
            else:
                made = None if coordinate.formula else self._buffer(f"{tensor.name}_{d}", self.idtype, along)
                self._arrays.append(made)
        stored = {at for known in self._known for at in known.reads}
        self._read = {
            at: self._buffer(f"{rule.axes[at].name}_key", self.idtype, self._chain_at(at)) for at in sorted(stored)
        }
        #: marks padding among stored elements, if no array of coordinates does
        self._marks = [d for d, array in enumerate(self._arrays) if array is not None and self._covers_all(d)]
        self._present = None if self._marks else self._buffer(f"{tensor.name}_present", "int8", whole)
        self.elements = {each: self._buffer(each.name, each.dtype, whole) for each in tensors}
        self.params += self._counts

    def _add_axis(self, number: int, axis: Any) -> None:
        name, dtype = f"{axis.name}_{self.rule.name}", self.idtype
        if axis.kind == "dense":
            extent = _core.IntImm(dtype, axis.extent)
            self._numbers[axis.name] = len(self.axes)
            self.axes.append(ir.Axis(name, None, extent, extent, extent, idtype=dtype))
            return
        before = self.rule.axes[:number]
        if any(each.kind == "dense" for each in before[1:]):
            message = f"axis {axis.name!r} of rule {self.rule.name!r} stands below several dense axes"
            raise refusal(message, "merge these axes: axes of SparseTIR have one parent")
        if not before:
            one = _core.IntImm(dtype, 1)
            self.axes.append(ir.Axis(f"{name}_root", None, one, one, one, idtype=dtype))
        parent = self.axes[-1]
        count = ir.Var(f"{name}_nnz", dtype)
        self._counts.append(count)
        indptr = self._take(_array(f"{name}_indptr", dtype, [parent.nnz + 1]))
        self._numbers[axis.name] = len(self.axes)
        longest = _core.max_value(dtype)
        self.axes.append(ir.Axis(name, parent, longest, count, None, indptr, idtype=dtype))

    def _take(self, buffer: ir.Buffer) -> ir.Buffer:
        handle = ir.Var(f"{buffer.name}_handle", "handle")
        self.params.append(handle)
        self.buffers[handle] = buffer
        return buffer

    def _chain(self, name: str) -> list[int]:
        return self._chain_at([axis.name for axis in self.rule.axes].index(name))

    def _chain_at(self, at: int) -> list[int]:
        """Return the axes that count the positions of one."""
        parent = self.rule.axes[at].parent
        return [*(range(at) if parent is None else self._chain(parent)), at]

    def _covers_all(self, d: int) -> bool:
        axis = self._known[d].axis
        if self._known[d].rank is not None:
            return False
        return axis is None or len(self._chain(axis)) == len(self.rule.axes)

    def _shape(self, along: Sequence[int]) -> list[Any]:
        """Return the shape of an array over these axes: the positions of the last one that is not dense, and the
        extents behind it."""
        axes = [self.rule.axes[at] for at in along]
        last = max((at for at, axis in enumerate(axes) if axis.kind != "dense"), default=-1)
        counted = [self.axes[self._numbers[axes[last].name]].nnz] if last >= 0 else []
        return counted + [_core.IntImm(self.idtype, axis.extent) for axis in axes[last + 1 :]]

    def _list_of_rows(self, coordinate: _Coordinate) -> ir.Buffer:
        """Return the rows in the order of their ranks: an array without axes, of one dimension."""
        name = f"{self.rule.axes[coordinate.keys[0]].name}_rows_{self.rule.name}"
        return self._take(_array(name, self.idtype, [_core.IntImm(self.idtype, self._ranks_of(coordinate))]))

    def _ranks_of(self, coordinate: _Coordinate) -> int:
        """Return how many ranks the keys can be."""
        return math.prod(self.rule.axes[at].extent for at in coordinate.keys)

    @property
    def has_root(self) -> bool:
        """Return whether an axis of one position stands in front of those of the rule."""
        return self._numbers[self.rule.axes[0].name] == 1

    def _of_axes(self, along: Sequence[int]) -> list[int]:
        numbers = [self._numbers[self.rule.axes[at].name] for at in along]
        return [0, *numbers] if numbers and self.has_root else numbers

    def _buffer(self, name: str, dtype: str, along: Sequence[int]) -> ir.Buffer:
        axes = [self.axes[number] for number in self._of_axes(along)]
        return self._take(_array(f"{name}_{self.rule.name}", dtype, self._shape(along), axes))

    def _load(self, buffer: ir.Buffer, along: Sequence[int]) -> Any:
        return ir.BufferLoad(buffer, [self.variables[number] for number in self._of_axes(along)])

    def coordinates(self) -> list[Any]:
        """Return the coordinates of the tensor as expressions."""
        whole = list(range(len(self.rule.axes)))
        variables = [
            self._load(self._read[at], self._chain_at(at))
            if at in self._read
            else self.variables[self._numbers[axis.name]]
            for at, axis in enumerate(self.rule.axes)
        ]
        result = []
        for known, array in zip(self._known, self._arrays, strict=True):
            along = whole if known.axis is None else self._chain(known.axis)
            if known.rank is not None:
                result.append(ir.BufferLoad(array, [known.rank(variables)]))
            else:
                result.append(known.formula(variables) if array is None else self._load(array, along))
        return result

    def domains(self) -> list[list[Any]]:
        """Return what is declared of arrays of coordinates: those of the tensor, and -1 where it marks padding."""
        result = []
        for d, (known, array) in enumerate(zip(self._known, self._arrays, strict=True)):
            if array is None:
                continue
            if known.rank is not None:
                # Ranks that no row has stand for numbers behind the rows, so that all differ.
                end = max(self._ranks_of(known), self._extent(d))
                result.append(self._domain(array, _core.IntImm(self.idtype, end), 0, "distinct"))
                continue
            # Padding that is not marked is coordinate 0, which a dimension of extent 0 does not have.
            has_padding = known.axis is None or any(
                self.rule.axes[at].kind != "compressed" for at in self._chain(known.axis)
            )
            if self._is_mark(d) or not has_padding or self._extent(d):
                result.append(self._domain(array, self._length(d), -1 if self._is_mark(d) else 0))
        for d, known in enumerate(self._known):
            ends = [self._length(d)]
            if known.divisor:
                divisor = _core.IntImm(self.idtype, known.divisor)
                ends = [_core.floordiv(ends[0] + (known.divisor - 1), divisor), divisor]
            for at, end in zip(known.keys, ends, strict=False):
                if at in self._read:
                    result.append(self._domain(self._read[at], end, 0, "increasing" if at == 0 else ""))
        return result

    def _is_list(self, known: _Coordinate) -> bool:
        """Return whether a list gives the coordinate: the keys of the first axis, which are compressed, and perhaps of
        dense axes, for the rows of a block."""
        kinds = [self.rule.axes[at].kind for at in known.keys]
        return list(known.keys[:1]) == [0] and kinds[0] == "compressed" and set(kinds[1:]) <= {"dense"}

    def _is_mark(self, d: int) -> bool:
        """Return whether the array of this coordinate is -1 where a stored element is padding."""
        return self._marks[:1] == [d]

    def _extent(self, d: int) -> int:
        """Return how long the dimension of the tensor is, 0 where the rule is for any."""
        return 0 if self.rule.shape is None else self.rule.shape[d]

    def _length(self, d: int) -> Any:
        return _core.cast(self.idtype, self.tensor.axes[d].length)

    def _domain(self, array: ir.Buffer, end: Any, least: int, order: str = "") -> list[Any]:
        return [self.whole(array), _core.IntImm(self.idtype, least), end, order]

    def whole(self, array: ir.Buffer) -> Any:
        """Return all of an array as a region."""
        return ir.BufferRegion(array, [ir.Range(_core.IntImm(self.idtype, 0), extent) for extent in array.shape])

    def row_list(self) -> ir.Buffer | None:
        """Return the array of one dimension that holds rows of a matrix, whose domain is declared; None without one."""
        row = self._known[0]
        if len(self._known) != 2:
            return None
        if list(row.keys) == [0] and 0 in self._read:
            return self._read[0]
        is_first = row.axis == self.rule.axes[0].name and self.rule.axes[0].kind == "compressed"
        return self._arrays[0] if is_first and not self._covers_all(0) else None

    def spatial_axes(self, spatial: Sequence[bool]) -> set[int]:
        """Return the axes along which different positions have different coordinates.

        Args:
            spatial: for each coordinate of the tensor, whether it is wanted.
        """
        found: set[int] = set()
        for known, is_wanted in zip(self._known, spatial, strict=True):
            kinds = [self.rule.axes[at].kind for at in known.keys]
            is_list = self._is_list(known)
            if is_wanted and kinds and (is_list or all(kind == "dense" for kind in kinds)):
                found |= {self._numbers[self.rule.axes[at].name] for at in known.keys}
                found |= {0} if is_list else set()  # the root in front of it
        return found

    def ranked_axes(self) -> list[int]:
        """Return the axes whose keys are the rank of a row."""
        return [
            self._numbers[self.rule.axes[at].name]
            for known in self._known
            if known.rank is not None
            for at in known.keys
        ]

    def is_present(self) -> Any:
        """Return the condition that a stored element is no padding. Coordinates that are formulas are compared with the
        lengths of the tensor where positions may be outside, as those of a last block that is not full."""
        whole, coordinates = list(range(len(self.rule.axes))), self.coordinates()
        if self._present is not None:
            holds = self._load(self._present, whole) != _core.IntImm("int8", 0)
        else:
            holds = coordinates[self._marks[0]] >= 0
        for d, (known, coordinate) in enumerate(zip(self._known, coordinates, strict=True)):
            if known.rank is not None and self._ranks_of(known) > self._extent(d):
                holds = _core.And(coordinate < self._length(d), holds)  # first, since it is the same for a whole row
            if known.formula is None or self._is_inside(d, known):
                continue
            if not known.keys:
                holds = _core.And(holds, coordinate >= 0)
            holds = _core.And(holds, coordinate < self._length(d))
        return holds

    def _is_inside(self, d: int, known: _Coordinate) -> bool:
        """Return whether a formula gives coordinates of the tensor at all positions."""
        axes = [self.rule.axes[at] for at in known.keys]
        if not axes or any(axis.kind == "varied" for axis in axes):
            return False
        if not known.divisor:
            return True
        quotient, remainder = axes
        is_whole = self._extent(d) % known.divisor == 0 and self._extent(d) > 0
        fits = quotient.kind != "dense" or quotient.extent * known.divisor <= self._extent(d)
        return is_whole and fits and (remainder.kind != "dense" or remainder.extent == known.divisor)

    def arguments(self, part: StoredPart, elements: Sequence[Array]) -> list[Any]:
        """Return the arguments of this format. `elements`: those of each tensor.

        Raises:
            tilewright.ArgumentError: Coordinates or offsets exceed the type of the axes ("sparse/index-type").
        """
        dtype = part.source.dtype
        counts = [axis.count for axis in part.axes.values() if axis.indptr is not None]
        offsets = [axis.indptr for axis in part.axes.values() if axis.indptr is not None]
        given: list[Any] = [self._in_type(each) for each in offsets]
        is_padding = part.source < 0
        for d, (known, array) in enumerate(zip(self._known, self._arrays, strict=True)):
            if array is None:
                continue
            if known.rank is not None:
                given.append(self._in_type(self._rows_by_rank(part, known)))
                continue
            if known.axis is not None:
                along, stored = self._chain(known.axis), part.axes[known.axis].indices
                assert stored is not None
            else:
                along = list(range(len(self.rule.axes)))
                stored = np.zeros(part.size, dtype)
                stored[~is_padding] = part.coordinates[d][part.source[~is_padding]]
            if self._covers_all(d):
                stored = np.where(is_padding, np.asarray(-1 if self._is_mark(d) else 0, dtype), stored.astype(dtype))
            given.append(self._in_type(stored).reshape(self._sizes(part, along)))
        for at in self._read:
            keys = part.axes[self.rule.axes[at].name].indices
            assert keys is not None
            given.append(self._in_type(keys).reshape(self._sizes(part, self._chain_at(at))))
        whole = self._sizes(part, range(len(self.rule.axes)))
        if self._present is not None:
            given.append((~is_padding).astype("int8").reshape(whole))
        return [*given, *(each.reshape(whole) for each in elements), *counts]

    def _rows_by_rank(self, part: StoredPart, known: _Coordinate) -> Array:
        """Return the row of each rank. Ranks of rows without nonzeros get the rows that are left, and numbers behind
        them."""
        elements = np.flatnonzero(part.source >= 0)
        keys = part.keys(elements)
        ranks = np.asarray(known.rank([keys[axis.name] for axis in self.rule.axes]))
        rows = np.full(self._ranks_of(known), -1, "int64")
        rows[ranks] = part.coordinates[0][part.source[elements]]
        unknown = np.flatnonzero(rows < 0)
        rows[unknown] = np.setdiff1d(np.arange(len(rows)), rows)[: len(unknown)]
        return rows

    def _in_type(self, array: Array) -> Array:
        """Convert an array of the structure to the index type of the axes."""
        if array.size and int(array.max()) > np.iinfo(self.idtype).max:
            message = (
                f"a coordinate or an offset is {int(array.max())}, and axes of {self.tensor.name!r} are {self.idtype}"
            )
            raise ArgumentError.of("sparse/index-type", message, 'declare the axes with idtype="int64"')
        return array.astype(self.idtype, copy=False)

    def _sizes(self, part: StoredPart, along: Sequence[int]) -> list[int]:
        axes = [part.axes[self.rule.axes[at].name] for at in along]
        last = max((at for at, each in enumerate(axes) if each.indptr is not None), default=-1)
        return ([axes[last].count] if last >= 0 else []) + [each.axis.extent for each in axes[last + 1 :]]


def _coordinates(rule: FormatRewriteRule, dimensions: int) -> list[_Coordinate]:
    """Return the coordinates from the index map, applied to variables; if the map reads more than these, each axis is
    analyzed separately."""
    names = ["row", "column"] if dimensions == 2 else [f"x{d}" for d in range(dimensions)]
    variables = [ir.Var(name, "int64") for name in names]
    place, length, position = (ir.Var(name, "int64") for name in ("place", "length", "position"))
    nonzero = _AnyNonzero(variables, place, length, position)
    try:
        entries = rule.entries(nonzero)
    except ArgumentError:
        raise
    except Exception:  # a map of arrays alone: all coordinates are read
        return [_Coordinate() for _ in variables]
    # Along a compressed axis that stores another coordinate, nobody knows the key.
    known: list[Any] = [
        entry if not isinstance(entry, tuple) else None if axis.kind == "compressed" else entry[0]
        for axis, entry in zip(rule.axes, entries, strict=True)
    ]
    result = []
    for variable in variables:
        formula, used, divisor = _formula(variable, known)
        stored = [
            axis.name
            for axis, entry in zip(rule.axes, entries, strict=True)
            if isinstance(entry, tuple) and entry[1] is variable
        ]
        if formula is None and not stored and variable is variables[0] and dimensions == 2:
            result.append(_by_rank(rule, nonzero.ranks, known))
            continue
        reads = [at for at in used if rule.axes[at].kind == "compressed"]
        result.append(_Coordinate(formula, reads, stored[0] if stored and formula is None else None, used, divisor))
    for d, variable in enumerate(variables):
        if result[d].formula is None and result[d].axis is None:
            others = {v: r.formula for v, r in zip(variables, result, strict=True) if r.formula is not None}
            formula, used = _difference(variable, known, others)
            result[d].formula, result[d].reads = formula, [at for at in used if rule.axes[at].kind == "compressed"]
    return result


def _by_rank(rule: FormatRewriteRule, ranks: Sequence[ir.Var], keys: Sequence[Any]) -> _Coordinate:
    """Return the row coordinate, computed from a rank that keys along dense axes give: a rank identifies a row. Return
    an empty coordinate if there is no such rank."""
    for rank in ranks:
        formula, used, _ = _formula(rank, keys)
        if formula is not None and all(rule.axes[at].kind == "dense" for at in used):
            return _Coordinate(keys=used, rank=formula)
    return _Coordinate()


def _difference(variable: ir.Var, keys: Sequence[Any], others: dict[ir.Var, Any]) -> tuple[Any, list[int]]:
    """Return a key minus other coordinates, if it is their sum with this one (such as a diagonal and the row); and its
    axis."""
    analyzer = _core.Analyzer()
    for at, key in enumerate(keys):
        if not isinstance(key, ir.Expr):
            continue
        step: Any = _core.substitute(key, {variable: variable + 1})
        used = {v for v in variables_of(key) if not v.same_as(variable)}
        if used <= {*others} and analyzer.can_prove_equal(step - key, _core.IntImm("int64", 1)):
            rest: Any = _core.substitute(key, {variable: _core.IntImm("int64", 0)})

            def formula(values: Sequence[Any], at: int = at, rest: Any = rest) -> Any:
                known = {v: _core.cast("int64", of(values)) for v, of in others.items()}
                others_here: Any = _core.substitute(rest, known)
                return values[at] - _core.cast(values[at].dtype, others_here)

            return formula, [at]
    return None, []


class _AnyNonzero(RowNonzero):
    """A nonzero of a tensor of any number of dimensions, whose other facts are variables."""

    def __init__(self, coordinates: Sequence[Any], place: Any, length: Any, position: Any) -> None:
        row = coordinates[0] if len(coordinates) == 2 else ir.Var("row", "int64")
        #: variables of the ranks of rows that the map reads
        self.ranks: list[ir.Var] = []
        super().__init__((row, coordinates[-1], place, length, position, ir.Var("longest", "int64")), self._new_rank)
        self.coordinates = tuple(coordinates)

    def _new_rank(self, number: int) -> ir.Var:
        self.ranks.append(ir.Var("rank", "int64"))
        return self.ranks[-1]

    def strip_rank(self, height: int) -> Any:
        """Return any number."""
        return ir.Var("strip_rank", "int64")


def _formula(variable: ir.Var, keys: Sequence[Any]) -> tuple[Any, list[int], int]:
    """Return a key that is the coordinate itself, or its quotient and remainder along two axes; with these axes and the
    divisor."""
    for at, key in enumerate(keys):
        if isinstance(key, ir.Var) and key.same_as(variable):
            return lambda values, at=at: values[at], [at], 0
    parts: dict[int, dict[type, int]] = {}
    for at, key in enumerate(keys):
        if not isinstance(key, ir.FloorDiv | ir.FloorMod) or not isinstance(key.b, ir.IntImm):
            continue
        if isinstance(key.a, ir.Var) and key.a.same_as(variable):
            parts.setdefault(int(key.b.value), {})[type(key)] = at
    for divisor, found in parts.items():
        if len(found) == 2:
            two = [found[ir.FloorDiv], found[ir.FloorMod]]
            return lambda values, divisor=divisor, two=two: values[two[0]] * divisor + values[two[1]], two, divisor
    return None, [], 0
