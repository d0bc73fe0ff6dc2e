"""A block's axes and operands: extents, strides and reuse, which decide how a CPU or GPU computes it best."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright import _core, arith, ir
from tilewright.errors import ScheduleError
from tilewright.heuristics.nested_schedule import NestedSchedule
from tilewright.heuristics.parameters import (
    DIVISION_CYCLES,
    ELEMENTARY_CYCLES,
    REMEMBERED,
    SUBSTITUTED_NAMES,
    TYPICAL_EXTENT,
)
from tilewright.schedule import BlockRV, LoopRV, Schedule
from tilewright.script.core import script
from tilewright.support import limits
from tilewright.support.nodes import nodes_of, uses
from tilewright.support.numpy_dtype import lanes_of, numpy_dtype
from tilewright.task.parameter_names import extents_of, scalars_of

#: operations that one instruction performs for all lanes of a vector
_OPERATIONS = (ir.Add, ir.Sub, ir.Mul, ir.Min, ir.Max, ir.Cast, ir.Select)


@dataclass(frozen=True)
class Axis:
    """An axis of a block, and the loop that it is bound to.

    Attributes:
        is_fixed: whether `extent` is constant; otherwise it is a typical value of a symbolic extent.
        is_part: whether the shared loops around the block go through this axis in parts, of which `extent` is one.
    """

    var: ir.Var
    loop: LoopRV
    extent: int
    is_spatial: bool
    is_fixed: bool = True
    is_part: bool = False


@dataclass(frozen=True)
class Operand:
    """An access to a buffer.

    Attributes:
        strides: for each axis, the distance in elements between two steps of that axis within its period; None if the
            distance is not constant.
    """

    buffer: ir.Buffer
    indices: tuple[Any, ...]
    strides: tuple[int | None, ...]

    @property
    def width(self) -> int:
        """Return the bytes of an element."""
        return width_of(self.buffer.dtype)

    def varies(self, axis: int) -> bool:
        """Return whether different values of the axis access different elements."""
        return self.strides[axis] != 0


@dataclass(frozen=True)
class BlockInfo:
    """A block with one loop for each axis, which stores to one buffer. Axes are numbered.

    In a :class:`NestedSchedule`, it describes one step of the shared loops; axes that are constant during a step are
    omitted.

    Attributes:
        axes: axes in the block's order, which is also the order of the loops unless the schedule refuses to reorder
            them.
        store: the access that the block writes.
        reads: loads from buffers that the block does not store to; the accumulator of a reduction is not included.
        periods: for each axis, the largest number of consecutive steps between two jumps of an index, as 32 for `j //
            32`; 0 if no index jumps.
        residue_axes: axes whose residue modulo a stride determines which terms are zero.
        adds_products: whether the block only adds products of two elements.
        parts: number of parts into which the shared loops divide the axes; 0 if no loops are shared.
    """

    block: BlockRV
    axes: tuple[Axis, ...]
    store: Operand
    reads: tuple[Operand, ...]
    periods: tuple[int, ...]
    residue_axes: tuple[int, ...] = ()
    adds_products: bool = False
    parts: int = 0

    def estimate_key(self) -> Hashable:
        """Return a key of everything that estimates depend on; equal for two schedules of one program."""
        axes = tuple((axis.extent, axis.is_spatial, axis.is_fixed, axis.is_part) for axis in self.axes)
        operands = tuple((operand.buffer.dtype, operand.strides) for operand in (self.store, *self.reads))
        return axes, operands, self.periods, self.residue_axes, self.parts

    @property
    def spatial(self) -> list[int]:
        """Return the axes of the results."""
        return [i for i, axis in enumerate(self.axes) if axis.is_spatial]

    @property
    def reduced(self) -> list[int]:
        """Return the axes of the reduction, residue axes first."""
        reduced = [i for i, axis in enumerate(self.axes) if not axis.is_spatial]
        return sorted(reduced, key=lambda i: i not in self.residue_axes)

    @property
    def is_fixed(self) -> bool:
        """Return whether all extents are constant."""
        return all(axis.is_fixed for axis in self.axes)

    @property
    def work(self) -> int:
        """Return the number of steps of all axes."""
        return self.size(range(len(self.axes)))

    def extent(self, axis: int) -> int:
        """Return the number of steps of an axis, in typical calls."""
        return self.axes[axis].extent

    def size(self, axes: Iterable[int]) -> int:
        """Return the number of steps of several axes."""
        return math.prod(self.axes[i].extent for i in axes)

    def loops(self, axes: Iterable[int]) -> list[LoopRV]:
        """Return the loops of axes."""
        return [self.axes[i].loop for i in axes]

    def lanes(self, target: _core.Target) -> int:
        """Return the number of results in a vector."""
        return target.vector_bits // (8 * self.store.width)

    def contiguous_axes(self, lanes: int) -> list[int]:
        """Return the axes along which results are contiguous and fill at least half of a vector."""
        return [i for i in self.spatial if self.store.strides[i] == 1 and 2 * self.extent(i) >= lanes]

    def varying(self, read: Operand) -> list[int]:
        """Return the axes that an operand varies with."""
        return [i for i in range(len(self.axes)) if read.varies(i)]

    def bytes_read(self, read: Operand) -> int:
        """Return the bytes that the block reads of an operand."""
        return self.size(self.varying(read)) * read.width

    def uses(self, read: Operand) -> int:
        """Return the number of results that need one element of an operand."""
        return self.size(i for i in self.spatial if not read.varies(i))

    def divides(self, size: int, axis: int) -> bool:
        """Return whether `size` steps at a time leave no remainder in any call."""
        return self.axes[axis].is_fixed and self.extent(axis) % size == 0

    def is_common(self, read: Operand) -> bool:
        """Return whether all parts read the same elements of an operand."""
        return bool(self.parts) and not any(axis.is_part and read.varies(i) for i, axis in enumerate(self.axes))

    def is_contraction(self) -> bool:
        """Return whether the block has a reduction and several different loads (`A[i, k] * A[j, k]` has two), one of
        which several results reuse."""
        return bool(
            len(self.reads) > 1
            and self.reduced
            and any(self.extent(i) > 1 and not read.varies(i) for read in self.reads for i in self.spatial)
        )


def width_of(dtype: str) -> int:
    """Return the bytes of an element."""
    return numpy_dtype(dtype).itemsize


def size_of(buffer: ir.Buffer) -> int | None:
    """Return the elements of a buffer; None if its shape is not constant."""
    shape = [constant(extent) for extent in buffer.shape]
    return None if None in shape else math.prod(extent or 1 for extent in shape)


def named_alike(buffers: Sequence[ir.Buffer], buffer: ir.Buffer) -> int | None:
    """Return the position of a buffer in `buffers`: of the buffer itself, or else of the only one with its name, which
    has replaced it."""
    same = [number for number, other in enumerate(buffers) if other.same_as(buffer)]
    same = same or [number for number, other in enumerate(buffers) if other.name == buffer.name]
    return same[0] if len(same) == 1 else None


def number_of_read(schedule: Schedule, block: BlockRV, buffer: ir.Buffer) -> int:
    """Return the position of a buffer among those that a block reads."""
    number = named_alike([region.buffer for region in schedule.get(block).reads], buffer)
    if number is None:
        raise ScheduleError.of(
            "schedule/statement", f"the block does not read '{buffer.name}', or several of that name"
        )
    return number


def constant(value: Any) -> int | None:
    """Return the value of a constant expression; None for other expressions."""
    return int(value.value) if isinstance(value, ir.IntImm) else None


def range_of(dtype: str, extent: int) -> ir.Range:
    """Return a range from 0 in a data type; a Python number beyond int32 would be an int64."""
    return ir.Range(_core.const(0, dtype), _core.const(extent, dtype))


class Sizes:
    """Typical values of the symbolic sizes of a program.

    Args:
        known: sizes by the name of the variable.
        function: the function whose variables are looked up by their labels (as `A.shape[0]`), because several
            functions of the program use the same names.
    """

    def __init__(self, known: Mapping[str, float] | None = None, function: Any = None) -> None:
        self._known = {
            name: size for name, given in (known or {}).items() if (size := limits.index_of(given)) is not None
        }
        labeled = {} if function is None else extents_of(function) | scalars_of(function)
        self._labels = {variable: label for label, variable in labeled.items()}
        #: equal for equal sizes
        self.key: Hashable = tuple(sorted(self._known.items()))

    def value(self, expression: Any) -> int | None:
        """Return the typical value of an extent; None if it depends on data."""
        if isinstance(expression, ir.IntImm):
            return int(expression.value)
        if nodes_of(expression, ir.BufferLoad):
            return None
        variables: dict[ir.Var, Any] = {}
        for inner in nodes_of(expression, ir.Var):
            if inner.dtype != "handle":
                size = self._known.get(self._labels.get(inner, inner.name), TYPICAL_EXTENT)
                most: Any = _core.max_value(inner.dtype)
                variables[inner] = _core.cast(
                    inner.dtype, min(size, int(most)) if isinstance(most, ir.IntImm) else size
                )
        known: Any = _core.substitute(expression, variables)
        return constant(arith.Analyzer().simplify(known))


def epilogue_or_copy(schedule: Schedule, info: BlockInfo, dimensions: int) -> BlockRV:
    """Return the block that moves results to the buffer in which they are read, fused at the end of a tile.

    This is the only consumer if it reads the results in the order of their memory, in `dimensions` loops, and needs no
    other block's results. Otherwise it is a new copy of the results.
    """
    return fusible_epilogue(schedule, info, dimensions) or schedule.cache_write(info.block, 0, "local")


def fusible_epilogue(schedule: Schedule, info: BlockInfo, dimensions: int) -> BlockRV | None:
    """Return the consumer that :func:`epilogue_or_copy` fuses; None if a copy is needed."""
    consumers = schedule.get_consumers(info.block)
    passed = is_parameter(schedule, schedule.get(info.block).writes[0].buffer)
    if len(consumers) == 1 and not passed and is_spatial(schedule.get(consumers[0])):
        loops = schedule.get_loops(consumers[0])
        alone = len(loops) == dimensions and len(schedule.get_producers(consumers[0])) == 1
        if (
            alone
            and is_plain(schedule, loops)
            and _reads_in_memory_order(schedule.get(consumers[0]), info.store.buffer)
        ):
            return consumers[0]
    return None


def _reads_in_memory_order(node: ir.Block, buffer: ir.Buffer) -> bool:
    """Return whether a block reads a buffer in the order of its memory, without transposing it. False for a block with
    loops or blocks inside, whose variables the indices may contain."""
    order = {axis.var: n for n, axis in enumerate(node.iter_vars)}
    loads = [load for load in nodes_of(node.body, ir.BufferLoad) if load.buffer.same_as(buffer)]
    places = [[order.get(index) for index in load.indices if isinstance(index, ir.Var)] for load in loads]
    return all(None not in each and each == sorted(each, key=lambda n: n or 0) for each in places)


def is_parameter(schedule: Schedule, buffer: ir.Buffer) -> bool:
    """Return whether callers pass the buffer, and so decide its layout."""
    name = schedule.func_working_on
    functions = [schedule.mod[name]] if name is not None else [*schedule.mod.functions.values()]
    return any(
        buffer.same_as(given)
        for function in functions
        if isinstance(function, ir.PrimFunc)
        for given in function.buffer_map.values()
    )


def is_plain(schedule: Schedule, loops: list[LoopRV]) -> bool:
    """Return whether the loops are serial and have no annotations."""
    nodes = [schedule.get(loop) for loop in loops]
    return all(node.kind == ir.ForKind.SERIAL and not node.annotations for node in nodes)


def is_spatial(node: ir.Block) -> bool:
    """Return whether a block has no reduction axis."""
    return all(axis.iter_type == ir.IterType.DATA_PAR for axis in node.iter_vars)


def is_argreduce(node: ir.Block) -> bool:
    """Return whether a block with several results replaces all of them or none, as an argmax does."""
    return len(node.writes) > 1 and isinstance(node.body, (ir.LetStmt, ir.IfThenElse))


@functools.cache
def _elementary() -> frozenset[str]:
    """Return the functions that are slower to compute again than to load from a cache: those with such a `cost` in the
    table of intrinsics, and the square root, whose one instruction occupies the divider for about as long as exp
    takes."""
    slow = ("kFunction", "kScalarFunction")
    return frozenset(name for name, *_, cost in script.intrinsics() if cost in slow) | {"sqrt"}


def is_elementary(node: ir.Block) -> bool:
    """Return whether a block computes a function of :func:`_elementary`."""
    return any(_name_of(call) in _elementary() for call in nodes_of(node.body, ir.Call))


def vector_cycles(node: ir.Block) -> float:
    """Return about how many cycles a spatial block takes for a vector. A cycle is two loads or two operations;
    conditions and indices with divisions or bounds cost more."""
    cycles = 0.0

    def look(inner: object) -> None:
        nonlocal cycles
        if isinstance(inner, ir.BufferLoad):
            cycles += 0.5
            for index in inner.indices:
                _core.visit(index, look_at_index)
        elif isinstance(inner, ir.Call):
            name = _name_of(inner)
            cycles += ELEMENTARY_CYCLES if name in _elementary() else 2 if name == "if_then_else" else 0.5
        elif isinstance(inner, (ir.Div, ir.Mod, ir.FloorDiv, ir.FloorMod)):
            cycles += DIVISION_CYCLES
        elif isinstance(inner, _OPERATIONS):
            cycles += 0.5

    def look_at_index(inner: object) -> None:
        nonlocal cycles
        if isinstance(inner, (ir.FloorDiv, ir.FloorMod, ir.Min, ir.Max)):
            cycles += 2

    body = node.body
    _core.visit(body.value if isinstance(body, ir.BufferStore) else body, look)
    return cycles


def is_conditional(node: ir.Block) -> bool:
    """Return whether the value of a block depends on a condition, as in padding."""
    return any(_name_of(call) == "if_then_else" for call in nodes_of(node.body, ir.Call))


def condition_period(node: ir.Block, variable: ir.Var) -> int:
    """Return the number of steps of an axis after which the conditions of a block repeat: n for `variable % n == c`; 1
    if there is no such condition."""
    steps = 1
    for call in nodes_of(node.body, ir.Call):
        for inner in nodes_of(call.args[0], ir.EQ) if _name_of(call) == "if_then_else" else ():
            if isinstance(inner.a, ir.FloorMod):
                modulus = constant(inner.a.b) or 1
                moved = coefficient(inner.a.a, variable)
                if moved is not None and moved % modulus:
                    steps = max(steps, modulus)
    return steps


def _name_of(call: ir.Call) -> str:
    return str(getattr(call.op, "name", "")).removeprefix("tir.")


def loops_of_axes(schedule: Schedule, block: BlockRV) -> list[LoopRV]:
    """Return the loop that each axis of a block is bound to; empty unless each axis is bound to one loop."""
    node, loops = schedule.get(block), schedule.get_loops(block)
    if len(loops) != len(node.iter_vars) or not loops:
        return []
    values = _values_of(schedule, node, loops)
    free = {schedule.get(loop).loop_var: loop for loop in loops}
    found: list[LoopRV | None] = []
    for value in values:
        ours = {var for var in ([value] if isinstance(value, ir.Var) else nodes_of(value, ir.Var)) if var in free}
        found.append(free.pop(ours.pop()) if len(ours) == 1 else None)
    # An axis with one step may be bound to a constant.
    rest = [loop for loop in free.values() if constant(schedule.get(loop).extent) == 1]
    bound = [loop or (rest.pop(0) if rest else None) for loop in found]
    return [loop for loop in bound if loop is not None] if None not in bound else []


def _values_of(schedule: Schedule, node: ir.Block, loops: list[LoopRV]) -> Sequence[Any]:
    """Return the values to which the axes of a block are bound."""
    body = schedule.get(loops[-1]).body
    # Fast path: a search calls this for each candidate, and most bodies are one block.
    realizes = [body] if isinstance(body, ir.BlockRealize) else nodes_of(body, ir.BlockRealize)
    return next((each.iter_values for each in realizes if each.block.same_as(node)), ())


def block_info(
    schedule: Schedule, block: BlockRV, sizes: Sizes | None = None, *, multiple_stores: bool = False
) -> BlockInfo | None:
    """Return the access summary of a block, or None if the block is opaque or nested, has several stores, or has loops
    that never run or do not correspond to its axes.

    With `multiple_stores`, several stores with equal indices (a sum and a sum of squares, an index and a value) count
    as one store to the buffer with the widest type.
    """
    sizes = sizes or Sizes()
    if isinstance(schedule, NestedSchedule) and schedule.contains(block):
        return _info_inside(schedule, block, sizes, multiple_stores)
    node, loops = schedule.get(block), loops_of_axes(schedule, block)
    if not loops or not is_plain(schedule, loops):
        return None
    for axis, loop in zip(node.iter_vars, loops, strict=True):
        if axis.iter_type not in (ir.IterType.DATA_PAR, ir.IterType.COMM_REDUCE):
            return None
        extent = schedule.get(loop).extent
        if not sizes.value(extent) or axis.dom is None or not ir.structural_equal(axis.dom.extent, extent):
            return None
    accesses = _accesses_of(node, sizes, multiple_stores)
    if accesses is None:
        return None
    return BlockInfo(
        block,
        tuple(
            Axis(
                axis.var,
                loop,
                sizes.value(schedule.get(loop).extent) or 0,
                axis.iter_type == ir.IterType.DATA_PAR,
                constant(schedule.get(loop).extent) is not None,
            )
            for axis, loop in zip(node.iter_vars, loops, strict=True)
        ),
        *accesses,
    )


def _info_inside(schedule: NestedSchedule, block: BlockRV, sizes: Sizes, multiple_stores: bool) -> BlockInfo | None:
    """Return the access summary of a block for one step of the shared loops."""
    node, loops = schedule.get(block), schedule.get_loops(block)
    accesses = _accesses_of(node, sizes, multiple_stores)
    if not loops or not is_plain(schedule, loops) or accesses is None or accesses[3]:
        return None
    free = {schedule.get(loop).loop_var: loop for loop in loops}
    axes: dict[int, Axis] = {}
    parts = 1
    for n, (axis, value) in enumerate(zip(node.iter_vars, _values_of(schedule, node, loops), strict=True)):
        ours = {var for var in nodes_of(value, ir.Var) if var in free}
        is_spatial = axis.iter_type == ir.IterType.DATA_PAR
        if not ours and is_spatial:
            continue
        if len(ours) != 1 or not (is_spatial or axis.iter_type == ir.IterType.COMM_REDUCE):
            return None
        variable = ours.pop()
        loop = free.pop(variable)
        extent, whole = constant(schedule.get(loop).extent), constant(axis.dom.extent) if axis.dom is not None else None
        if not extent or whole is None or coefficient(value, variable) != 1:
            return None
        axes[n] = Axis(axis.var, loop, extent, is_spatial, is_part=extent != whole)
        parts *= max(1, whole // extent)
    if free:
        return None
    store, reads, periods, _, adds_products = accesses

    def inside(operand: Operand) -> Operand:
        return Operand(operand.buffer, operand.indices, tuple(operand.strides[n] for n in axes))

    own_reads = tuple(inside(read) for read in reads)
    own_periods = tuple(periods[n] for n in axes)
    return BlockInfo(block, tuple(axes.values()), inside(store), own_reads, own_periods, (), adds_products, parts)


#: the part of a BlockInfo that depends on the block alone, cached because a search needs it for each candidate
_Accesses = tuple[Operand, tuple[Operand, ...], tuple[int, ...], tuple[int, ...], bool]
_known: dict[tuple[ir.Block, Hashable, bool], _Accesses | None] = {}


def _accesses_of(node: ir.Block, sizes: Sizes, multiple_stores: bool) -> _Accesses | None:
    key = (node, sizes.key, multiple_stores)
    with contextlib.suppress(KeyError):
        return _known[key]
    found = _find_accesses(node, sizes, multiple_stores)
    if len(_known) >= REMEMBERED:
        _known.clear()
    _known[key] = found
    return found


def through_lets(body: ir.Stmt) -> ir.Stmt:
    """Return the body of a block with names of index arithmetic (`a = T.max(v - 1, 0)`) substituted by their values, as
    in lowering."""
    values: dict[ir.Var, Any] = {}
    statement: Any = body
    while isinstance(statement, ir.LetStmt):
        value: Any = _core.substitute(statement.value, values) if values else statement.value
        is_index = str(statement.var.dtype).startswith(("int", "bool"))
        if not is_index or len(values) == SUBSTITUTED_NAMES or nodes_of(value, ir.BufferLoad):
            return body
        values[statement.var] = value
        statement = statement.body
    replaced: ir.Stmt = _core.substitute(statement, values) if values else body  # type: ignore[assignment]
    return replaced


def _find_accesses(node: ir.Block, sizes: Sizes, multiple_stores: bool) -> _Accesses | None:
    body = through_lets(node.body)
    loads, stores = nodes_of(body, ir.BufferLoad), nodes_of(body, ir.BufferStore, ir.Block, ir.For, ir.While)
    if not stores or not all(isinstance(store, ir.BufferStore) for store in stores):
        return None
    if len(stores) > 1 and not (multiple_stores and _store_alike(stores)):
        return None
    if any(lanes_of(access.buffer.dtype)[1] > 1 for access in (*stores, *loads)):
        return None
    stores.sort(key=lambda store: -numpy_dtype(store.buffer.dtype).itemsize)
    variables = [axis.var for axis in node.iter_vars]
    analyzer = arith.Analyzer()
    for axis in node.iter_vars:
        extent = constant(axis.dom.extent) if axis.dom is not None else None
        if extent:
            analyzer.bind(axis.var, range_of(axis.var.dtype, extent))
    accesses = [
        (access.buffer, tuple(analyzer.simplify(index) for index in access.indices))
        for access in (stores[0], *loads)
        if access is stores[0] or not any(access.buffer.same_as(store.buffer) for store in stores)
    ]
    accesses = _each_once(accesses)
    periods = tuple(_period([indices for _, indices in accesses], variable) for variable in variables)
    store, *reads = (_operand(buffer, indices, variables, periods, sizes) for buffer, indices in accesses)
    return (
        store,
        tuple(reads),
        periods,
        tuple(i for i, variable in enumerate(variables) if condition_period(node, variable) > 1),
        len(stores) == 1 and _adds_product(stores[0]),
    )


def _each_once(accesses: list[tuple[ir.Buffer, tuple[Any, ...]]]) -> list[tuple[ir.Buffer, tuple[Any, ...]]]:
    """Return the accesses without repeated loads of an element: a square reads its operand twice and loads it once."""
    different: list[tuple[ir.Buffer, tuple[Any, ...]]] = []
    for buffer, indices in accesses:
        if not any(
            buffer.same_as(other) and all(map(ir.structural_equal, indices, others))
            for other, others in different[1:]  # the first access is the store
        ):
            different.append((buffer, indices))
    return different


def _adds_product(store: Any) -> bool:
    """Return whether a store adds the product of two elements, possibly cast, to the stored element."""

    def element(value: Any) -> Any:
        while isinstance(value, ir.Cast):
            value = value.value
        return value if isinstance(value, ir.BufferLoad) else None

    value = store.value
    if not isinstance(value, ir.Add):
        return False
    terms = [term for term in (value.a, value.b) if isinstance(term, ir.Mul)]
    sums = [term for term in (value.a, value.b) if isinstance(term, ir.BufferLoad)]
    if len(terms) != 1 or len(sums) != 1 or not sums[0].buffer.same_as(store.buffer):
        return False
    return element(terms[0].a) is not None and element(terms[0].b) is not None


def _store_alike(stores: list[Any]) -> bool:
    """Return whether the stores write different buffers of equal shape at equal indices."""
    first = stores[0]

    def alike(own: Any, other: Any) -> bool:
        return len(own) == len(other) and all(ir.structural_equal(a, b) for a, b in zip(own, other, strict=True))

    return len({store.buffer for store in stores}) == len(stores) and all(
        alike(store.buffer.shape, first.buffer.shape) and alike(store.indices, first.indices) for store in stores
    )


def _operand(
    buffer: ir.Buffer, indices: tuple[Any, ...], variables: list[ir.Var], periods: tuple[int, ...], sizes: Sizes
) -> Operand:
    steps: list[int | None] = []
    step: int | None = 1
    for extent in reversed(buffer.shape):
        steps.append(step)
        size = sizes.value(extent)
        step = None if step is None or size is None else step * size
    steps.reverse()
    strides = tuple(_stride(indices, steps, *each) for each in zip(variables, periods, strict=True))
    return Operand(buffer, indices, strides)


def _stride(indices: Any, steps: list[int | None], variable: ir.Var, period: int) -> int | None:
    total = 0
    for index, step in zip(indices, steps, strict=True):
        moved = coefficient(index, variable, period)
        if moved is None or (moved and step is None):
            return None
        total += moved * (step or 0)
    return total


def coefficient(index: Any, variable: ir.Var, period: int = 0) -> int | None:
    """Return the change of an index when a variable increases by 1 within a period; 0 if the index does not use the
    variable, None if the change is not constant."""
    if not uses(index, variable):
        return 0
    analyzer = arith.Analyzer()
    place: Any = variable
    if period:
        inside, outside = ir.Var("inside", variable.dtype), ir.Var("outside", variable.dtype)
        analyzer.bind(inside, range_of(variable.dtype, period - 1))
        place = outside * period + inside
    here: Any = _core.substitute(index, {variable: place})
    there: Any = _core.substitute(index, {variable: place + ir.IntImm(variable.dtype, 1)})
    return constant(analyzer.simplify(there - here))


def clamps_or_wraps(operand: Operand, variable: ir.Var) -> bool:
    """Return whether an index along a variable is clamped or wraps: `A[min(i, 9)]`, `A[(i + 1) % 10]`."""
    return any(boundary_handling(index, variable) & {"clamp", "wrap"} for index in operand.indices)


def boundary_handling(index: ir.Expr, variable: ir.Var) -> set[str]:
    """Return how an index along a variable stays inside its buffer: "clamp" by min and max, "wrap" by `%` or a
    condition, "reflect" by an absolute value or a select. Empty for an affine index."""
    found: set[str] = set()

    def look(inner: Any) -> None:
        name = _name_of(inner) if isinstance(inner, ir.Call) else ""
        if isinstance(inner, (ir.Min, ir.Max)):
            how = "clamp"
        elif isinstance(inner, ir.FloorMod) or name == "if_then_else":
            how = "wrap"
        elif isinstance(inner, ir.Select) or name in ("abs", "fabs"):
            how = "reflect"
        else:
            return
        if how not in found and uses(inner, variable) and coefficient(inner, variable) is None:
            found.add(how)

    _core.visit(index, look)
    return found


def has_boundary(node: ir.Block, info: BlockInfo, axis: int) -> bool:
    """Return whether the block handles the ends of an axis specially: an index is clamped or wraps, or a condition of
    padding uses the axis."""
    variable = info.axes[axis].var
    conditions = [call.args[0] for call in nodes_of(node.body, ir.Call) if _name_of(call) == "if_then_else"]
    return any(clamps_or_wraps(read, variable) for read in info.reads) or any(
        uses(each, variable) for each in conditions
    )


def _period(accesses: list[tuple[Any, ...]], variable: ir.Var) -> int:
    parts = (inner for indices in accesses for index in indices for inner in nodes_of(index, ir.FloorDiv, ir.FloorMod))
    return math.gcd(*(constant(inner.b) or 0 for inner in parts if coefficient(inner.a, variable) == 1))
