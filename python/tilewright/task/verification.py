"""Verify that a scheduled program computes the same as the original, by interpreting both on random arguments."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright import _core, ir
from tilewright.errors import ArgumentError, Error, ResourceError, ScheduleError, ScriptError
from tilewright.support import limits
from tilewright.support.nodes import nodes_of
from tilewright.support.numpy_dtype import numpy_dtype
from tilewright.task.arguments import make_arrays, wrong_values
from tilewright.task.conversions import Conversion, conversions_of, prefix
from tilewright.task.declared_values import distinct_value_constraints, required_sizes
from tilewright.task.parameter_names import extents_of, labels_of, scalars_of
from tilewright.task.reference import (
    CANNOT_RUN,
    difference,
    interpreted,
    interpreted_at,
    sample_points,
    with_hint_on_inputs,
)
from tilewright.task.specialize import specialize
from tilewright.task.task import (
    Parameter,
    Task,
    array_labels_of,
    by_buffer,
    check_inputs,
    check_value,
    task_of,
    with_public_name,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tilewright.schedule import Schedule

    Results = dict[str, NDArray[Any]]

#: values of symbolic sizes in the instances: with tails of most tiles, multiples of many tiles, nearly empty
SIZES = ((13, 17, 5, 11, 7, 3), (32, 16, 48, 64, 16, 32), (1, 2, 1, 3, 1, 2))
#: number of elements of each output that are compared if a complete run takes too long
POINTS = 48


@dataclass(frozen=True)
class Verification:
    """The result of :func:`verify`, for all functions that a schedule has changed.

    Attributes:
        extent: "full" (all results), "sampled" (some elements of programs that take too long to interpret) or
            "unchanged".
        instances: number of argument sets.
        elements: total number of compared results.
        assertions: steps of the trace that rely on a statement of the user instead of a proof.
    """

    extent: str
    instances: int
    elements: int
    assertions: tuple[str, ...]

    def __str__(self) -> str:
        if self.extent == "unchanged":
            return "the program is the original one"
        instances = f"{self.instances} instance{'s' * (self.instances != 1)}"
        text = f"{self.elements} results agree with the original program, in {instances}"
        text += ", sampled" if self.extent == "sampled" else ""
        if self.assertions:
            text += f"; stated, not proved: {', '.join(self.assertions)}"
        return text


@dataclass
class _Call:
    """A call of the original program.

    Attributes:
        arguments: an array or a number for each parameter; None for handles.
        given: the arrays and numbers of the user, by name.
        choice: the chosen sizes and scalars; the caller skips a call with the choice of an earlier one.
    """

    task: Task
    arrays: Results
    labels: tuple[str, ...]
    arguments: list[Any]
    given: Mapping[str, Any]
    choice: tuple[Any, ...]


@dataclass
class _Instance:
    """A call, with the results of the original program: complete, or at some points."""

    call: _Call
    expected: dict[str, Any]
    points: dict[str, list[tuple[int, ...]]] | None

    @property
    def is_known(self) -> bool:
        """Return whether at least some results could be computed in time."""
        return self.points is None or any(self.points.values())

    def at_points(self) -> _Instance:
        """Return an instance with single results sampled from complete ones."""
        generator = np.random.default_rng(5)
        points = {name: sample_points(array.shape, POINTS, generator) for name, array in self.expected.items()}
        expected = {name: [self.expected[name][at] for at in places] for name, places in points.items()}
        return replace(self, expected=expected, points=points)


@dataclass(frozen=True)
class _Compared:
    """The problem of a program, if any, and the number of compared results; whether these are all or a sample."""

    problem: str | None
    elements: int = 0
    is_full: bool = False


def _left(until: float) -> float:
    """Return the seconds until a time, at least a little: the interpreter takes 0 as no limit."""
    return max(until - time.monotonic(), 1e-3)


def verify(schedule: Schedule, inputs: Mapping[str, Any] | None = None, *, seconds: float = 10.0) -> Verification:
    """Compare the program that a schedule has made with the original one, in the reference interpreter.

    Both run on random arguments, several sizes where shapes are symbolic, with all checks of the interpreter: bounds,
    uninitialized memory, races. Programs that take too long are compared at single elements, edges first, each
    computed by a backward slice. Floats may differ by the rounding of sums in another order.

    Args:
        schedule: a schedule, at any step.
        inputs: arrays for some parameters by name, such as indices, whose random values would be out of bounds, and
            numbers for scalars.
        seconds: time limit for both programs and all arguments. Finding the step that caused a difference may take as
            long again.

    Returns:
        What was compared. If nothing could be compared, an error is raised.

    Raises:
        tilewright.ScheduleError: the programs differ, or the scheduled one has undefined behavior; the message names
            the first step of the trace after which this happens.
        tilewright.ResourceError: nothing was compared: one of the programs cannot be interpreted in time, not even
            single elements of it.
        tilewright.ScriptError: the original program has undefined behavior, or the init of one of its reductions is not
            the first step (`verify/init-skipped`). The original program does not run if no step has changed it.
        tilewright.ArgumentError: `inputs` do not fit, or `seconds` is not a positive number.
    """
    seconds = limits.positive("seconds", seconds) or float("inf")
    end = time.monotonic() + seconds
    original, scheduled = schedule.original, schedule.mod
    inputs = by_buffer(original, inputs or {})
    check_inputs(original, inputs)
    _core.verify_inits(original)
    changed: list[tuple[str, ir.PrimFunc]] = []
    for name, function in scheduled.functions.items():
        before = original.functions.get(name)
        if isinstance(function, ir.PrimFunc) and isinstance(before, ir.PrimFunc):
            changed += [] if ir.structural_equal(before, function) else [(name, before)]
    instances = elements = 0
    sampled = False
    for at, (name, before) in enumerate(changed):
        # Time that a function does not use is available to the functions after it.
        until = end - _left(end) * (len(changed) - at - 1) / (len(changed) - at)
        conversions = conversions_of(schedule, name)
        agrees = is_known = False
        unreturned = _unreturned(schedule, name, before)
        unfit: ArgumentError | None = None
        choices = set()
        for seed in range(_number_of_choices(before)):
            if agrees and time.monotonic() > until:
                break
            try:
                call = _call(before, seed, inputs, conversions)
            except ArgumentError as error:
                if not before.axes or inputs:
                    raise
                unfit = error  # no sparse structure has these sizes, or a format cannot store it
                continue
            if call.choice and call.choice in choices:
                continue
            choices.add(call.choice)
            try:
                instance = _run_original(call, until, unreturned)
            except ScriptError as error:
                raise with_hint_on_inputs(error, call.task, call.given, "verify(...)") from error
            compared = _compare(instance, scheduled, name, until, conversions)
            if compared.problem is not None:
                raise _blamed(schedule, name, instance, compared.problem, seconds, conversions)
            is_known |= instance.is_known
            if compared.elements or compared.is_full:
                agrees = True
                instances += 1
                elements += compared.elements
                sampled |= not compared.is_full
        if unfit is not None and not (agrees or is_known):
            raise unfit
        if not agrees:
            raise ResourceError.of(
                "schedule/not-verified",
                f"nothing was compared: the {'scheduled' if is_known else 'original'} program cannot be interpreted in "
                f"{seconds:g} seconds, not even single elements of it",
                "give it more seconds, or schedule a program with smaller or symbolic sizes, and verify that",
            )
    trace = schedule.trace
    stated = tuple(f"{trace.insts[at]} ({reason})" for at, reason in trace.stated.items())
    extent = "unchanged" if not changed else "sampled" if sampled else "full"
    return Verification(extent, instances, elements, stated)


def _scalars_without_shape(program: ir.PrimFunc) -> dict[ir.Var, str]:
    """Return the scalars that are not sizes of a shape, with their labels."""
    params = _by_shapes(program).params
    return {v: name for name, v in scalars_of(program).items() if any(v.same_as(p) for p in params)}


def _number_of_choices(program: ir.PrimFunc) -> int:
    return len(SIZES) if _size_variables(program) or _scalars_without_shape(program) else 2


def _call(program: ir.PrimFunc, number: int, inputs: Mapping[str, Any], conversions: Sequence[Conversion]) -> _Call:
    """Return a call with one choice of sizes and scalars, with arguments that the scheduled program accepts, too.

    Raises:
        tilewright.ArgumentError: no arguments have these sizes, or a step's format cannot store them.
    """
    function, scalars = _by_shapes(program), _scalars_without_shape(program)
    symbols = _size_variables(function)
    numbers = SIZES[number]
    sizes = {v: numbers[at % len(numbers)] for at, v in enumerate(symbols)}
    values = {v: _scalar(v, numbers[at % len(numbers)]) for at, v in enumerate(scalars, len(symbols))}
    for conversion in conversions:
        for chosen in (sizes, values):
            chosen.update({v: size for v, size in conversion.sizes.items() if v in chosen})
    for v, (required, is_only) in required_sizes(program).items():
        known_sizes: dict[ir.Var, Any] = sizes if v in sizes else values
        if v in known_sizes:
            known_sizes[v] = required if is_only else max(required, known_sizes[v])
    sizes |= _given_sizes(program, inputs)
    for v, name in scalars.items():
        if name in inputs:
            values[v] = np.asarray(inputs[name]).item()
            check_value(name, values[v], v, where="inputs")
    _fit_structure(program, sizes, values, {*inputs})
    public = with_public_name(specialize(function, {**sizes, **values}))
    task = task_of(public, labels=array_labels_of(program))
    if public.axes:  # the interpreter reads sparse buffers by coordinates
        task = replace(task, module=ir.Module({task.function: public}))
    labels = labels_of(program)
    given = {key: value for key, value in inputs.items() if key not in scalars.values()}
    arrays = make_arrays(task, given, seed=number)
    known = {**sizes, **values}
    arguments = [
        arrays[label] if param in program.buffer_map else known.get(param)
        for label, param in zip(labels, program.params, strict=True)
    ]
    converted = arguments
    for conversion in conversions:
        try:
            converted = conversion.convert(converted).arguments
        except ArgumentError:
            fitted = {labels[at]: array for at, array in conversion.fitted(converted).items() if at < len(labels)}
            if not fitted or not {*fitted}.isdisjoint(inputs):
                raise
            return _call(program, number, {**inputs, **fitted}, conversions)
    return _Call(task, arrays, labels, arguments, given, (*sizes.values(), *values.values()))


def _fit_structure(program: ir.PrimFunc, sizes: dict[ir.Var, int], values: dict[ir.Var, Any], given: set[str]) -> None:
    """Limit the sizes of a sparse structure: axes have at most as many positions as coordinates below each parent
    position, and lists of distinct values at most as many elements as there are values."""
    bound = {**sizes, **values}

    def number(size: ir.Expr) -> int | None:
        analyzer = _core.Analyzer()
        for variable, value in bound.items():
            analyzer.bind(variable, _core.const(value, variable.dtype))
        known = analyzer.simplify(size)
        return int(known.value) if isinstance(known, ir.IntImm) else None

    for lists, low, end in distinct_value_constraints(program):
        least, limit = number(low), number(end)
        room = None if least is None or limit is None else max(limit - least, 0)
        for at, count in enumerate(lists):
            if room is None or not isinstance(count, ir.Var) or count not in bound or count.name in given:
                continue
            bound[count] = min(bound[count], room // (len(lists) - at))
            (sizes if count in sizes else values)[count] = bound[count]
            room -= bound[count]
    for axis in program.axes:
        count = axis.nnz if axis.indptr is not None else axis.nnz_cols
        if axis.parent is None or not isinstance(count, ir.Var) or count.name in given:
            continue
        parents, length = number(axis.parent.nnz), number(axis.length)
        if parents is None or length is None or count not in bound:
            continue
        most = length * parents if axis.indptr is not None else length
        bound[count] = min(bound[count], most)
        (sizes if count in sizes else values)[count] = bound[count]


def _scalar(variable: ir.Var, number: int) -> int | float:
    """Return a value for a scalar that fits its data type."""
    if variable.dtype == "bool":
        return number % 2
    return number if "int" in variable.dtype else (number - 8) / 4


def _with_scalars(function: ir.PrimFunc, arguments: Sequence[Any]) -> ir.PrimFunc:
    """Return the function with its scalar parameters replaced by values; sizes follow from the shapes of its
    buffers."""
    known = dict(zip(function.params, arguments, strict=True))
    function = _by_shapes(function)
    values = {p: known[p] for p in function.params if p not in function.buffer_map and known[p] is not None}
    return specialize(function, values) if values else function


def _by_shapes(function: ir.PrimFunc) -> ir.PrimFunc:
    """Return the function without the parameters that are sizes of its buffers: the shapes define them."""
    sizes = [extent for buffer in function.buffer_map.values() for extent in buffer.shape if isinstance(extent, ir.Var)]
    params = [param for param in function.params if not any(param.same_as(size) for size in sizes)]
    if len(params) == len(function.params):
        return function
    return ir.PrimFunc(
        params, dict(function.buffer_map), function.ret_type, function.attrs, function.body, function.axes
    )


def _size_variables(function: ir.PrimFunc) -> list[ir.Var]:
    shapes = [extent for buffer in function.buffer_map.values() for extent in buffer.shape]
    return list(dict.fromkeys(extent for extent in shapes if isinstance(extent, ir.Var)))


def _given_sizes(function: ir.PrimFunc, inputs: Mapping[str, Any]) -> dict[ir.Var, int]:
    sizes: dict[ir.Var, int] = {}
    for name, extent in extents_of(function).items():
        if name in inputs:
            check_value(name, inputs[name], extent, least=0, where="inputs")
            sizes[extent] = int(inputs[name])
    for label, param in zip(labels_of(function), function.params, strict=True):
        buffer = function.buffer_map.get(param)
        if buffer is not None and label in inputs:
            shape = np.shape(inputs[label])
            pairs = zip(buffer.shape, shape, strict=False)
            sizes |= {extent: n for extent, n in pairs if isinstance(extent, ir.Var)}
    return sizes


def _unreturned(schedule: Schedule, name: str, before: ir.PrimFunc) -> set[str]:
    """Return the parameters that a step (match_to_alloc) has made internal buffers of the function."""
    function: Any = schedule.mod.functions[name]
    if all(step.kind.name != "MatchToAlloc" for step in schedule.trace.insts):
        return set()
    written = {store.buffer for store in nodes_of(function, ir.BufferStore)}
    kept = {param for param, buffer in function.buffer_map.items() if buffer not in written}
    return {label for label, param in zip(labels_of(before), before.params, strict=True) if param in kept}


def _run_original(call: _Call, until: float, unreturned: Collection[str] = ()) -> _Instance:
    """Run the original program in at most two thirds of the time; the remainder is for the scheduled program."""
    task, arrays = call.task, call.arrays
    outputs = [p for p in task.parameters if p.role != "input" and p.name not in unreturned]
    try:
        results = interpreted(task.module, task.function, arrays, _left(until) / 3)
        return _Instance(call, {p.name: results[p.name] for p in outputs}, None)
    except ResourceError:
        pass
    generator = np.random.default_rng(5)
    wanted = {p.name: sample_points(p.shape, POINTS, generator) for p in outputs}
    known = interpreted_at(task.module, task.function, arrays, wanted, _left(until) / 2)
    points = {name: [at for at, _ in values] for name, values in known.items()}
    found = {name: [value for _, value in values] for name, values in known.items()}
    return _Instance(call, found, points)


class _Scheduled:
    """The scheduled function with the arguments of an instance, as its steps have converted them."""

    def __init__(
        self,
        call: _Call,
        module: ir.Module,
        name: str,
        conversions: Sequence[Conversion],
        before: Mapping[str, NDArray[Any]],
    ) -> None:
        """`before` replaces the contents of outputs."""
        self.name, self.conversions = name, []
        arguments = [before.get(label, given) for label, given in zip(call.labels, call.arguments, strict=True)]
        self._labels = call.labels
        for conversion in conversions:
            self.conversions.append(conversion.convert(arguments))
            arguments = self.conversions[-1].arguments
        function = module.functions[name]
        assert isinstance(function, ir.PrimFunc)
        self._after = labels_of(function)
        called_with = zip(self._after, arguments, function.params, strict=True)
        self._arrays = {label: array for label, array, param in called_with if param in function.buffer_map}
        called = _with_scalars(function, arguments)
        self._module = module if called.same_as(function) else ir.Module({**module.functions, name: called})

    def results(self, seconds: float) -> Results:
        """Return the values of the original function's parameters after the call."""
        after = interpreted(self._module, self.name, self._arrays, seconds)
        back = [after.get(label) for label in self._after]
        for converted in reversed(self.conversions):
            back = converted.results_back(back)
        return {label: array for label, array in zip(self._labels, back, strict=True) if array is not None}

    def results_at(self, points: Mapping[str, Sequence[Any]], seconds: float) -> dict[str, dict[Any, Any]]:
        """Return the elements at points of the original parameters that could be computed, by parameter and point."""
        wanted: dict[str, list[Any]] = {}
        origin: dict[tuple[str, Any], list[tuple[str, Any]]] = {}
        for label, known in points.items():
            for point in known:
                place: tuple[int, Any] | None = self._labels.index(label), point
                for converted in self.conversions:
                    place = None if place is None else converted.element(*place)
                if place is not None:
                    there = self._after[place[0]], place[1]
                    wanted.setdefault(there[0], []).append(there[1])
                    origin.setdefault(there, []).append((label, point))
        values = interpreted_at(self._module, self.name, self._arrays, wanted, seconds)
        result: dict[str, dict[Any, Any]] = {label: {} for label in points}
        for parameter, found in values.items():
            for at, value in found:
                for label, point in origin[parameter, at]:
                    result[label][point] = value
        return result


def _compare(
    instance: _Instance, module: ir.Module, name: str, until: float, conversions: Sequence[Conversion]
) -> _Compared:
    task = instance.call.task
    before = _before(instance)
    scheduled = _Scheduled(instance.call, module, name, conversions, before)
    try:
        if instance.points is None:
            try:
                return _compare_all(instance, scheduled, before, 0.75 * _left(until))
            except ResourceError:
                return _compare(instance.at_points(), module, name, until, conversions)
        if not instance.is_known:
            return _Compared(None)
        values = scheduled.results_at(instance.points, _left(until))
    except (ScriptError, ArgumentError) as error:
        if error.code in CANNOT_RUN:
            raise
        return _Compared(str(error))
    count = 0
    for parameter in task.parameters:
        got_at = values.get(parameter.name, {})
        expected = zip(instance.points.get(parameter.name, ()), instance.expected.get(parameter.name, ()), strict=True)
        known = [(at, want, got_at[at]) for at, want in expected if at in got_at]
        if not known:
            continue
        dtype = numpy_dtype(parameter.dtype)
        want, got = np.array([k[1] for k in known], dtype), np.array([k[2] for k in known], dtype)
        if problem := difference(task, parameter, want, got):
            different = next(known[i][0] for i in range(len(known)) if _is_wrong(parameter, want, got, i, task))
            return _Compared(f"{problem} (counting the sampled results, of which {list(different)} differs)")
        count += len(known)
    return _Compared(None, count)


def _before(instance: _Instance) -> Results:
    """Return contents of outputs before the call of the scheduled program that are wrong results, as far as all results
    are known."""
    if instance.points is not None:
        return {}
    outputs = [p for p in instance.call.task.parameters if p.role == "output" and not p.partly]
    return {p.name: wrong_values(p.dtype, instance.expected[p.name]) for p in outputs if p.name in instance.expected}


def _compare_all(instance: _Instance, scheduled: _Scheduled, before: Results, seconds: float) -> _Compared:
    """Compare all results, and inputs with what they were.

    Raises:
        tilewright.ResourceError: the scheduled program cannot be interpreted in time.
    """
    call, expected = instance.call, instance.expected
    task = call.task
    results = scheduled.results(seconds)

    def problem_with(expected: Mapping[str, NDArray[Any]]) -> str:
        found = (difference(task, p, expected[p.name], results[p.name]) for p in task.parameters if p.name in expected)
        return next(filter(None, found), "")

    problem = problem_with(expected)
    if problem and before:
        # Elements that the original program leaves as they are have other contents now. Its first call ended in time,
        # so this one needs no limit.
        after = interpreted(task.module, task.function, {**call.arrays, **before}, float("inf"))
        problem = problem_with({name: after[name] for name in expected})
    inputs = [] if problem or scheduled.conversions else [p.name for p in task.parameters if p.role == "input"]
    for name in inputs:
        if name in results and results[name].tobytes() != call.arrays[name].tobytes():
            return _Compared(f"it writes to {name}, which the original only reads")
    return _Compared(problem) if problem else _Compared(None, sum(array.size for array in expected.values()), True)


def _is_wrong(parameter: Parameter, want: NDArray[Any], got: NDArray[Any], element: int, task: Task) -> bool:
    """Return whether an element differs by more than is allowed among these results."""
    one = want.copy()
    one[element] = got[element]
    return bool(difference(task, parameter, want, one))


def _blamed(
    schedule: Schedule, name: str, instance: _Instance, problem: str, seconds: float, conversions: Sequence[Conversion]
) -> ScheduleError:
    """Return the error, with the first step after which the program is wrong."""
    steps = schedule.trace.insts
    end = time.monotonic() + seconds
    replayed = type(schedule)(schedule.original, seed=1)
    for count in range(1, len(steps) + 1):
        if time.monotonic() > end:
            return _difference_error(problem, "which step did it was not found in time")
        previous = replayed.mod
        replayed = type(schedule)(schedule.original, seed=1)
        try:
            prefix(schedule, count).apply_to_schedule(replayed)
        except Error:
            break
        if ir.structural_equal(previous, replayed.mod):
            continue
        known = [conversion for conversion in conversions if conversion.step < count]
        compared = _compare(instance, replayed.mod, name, end, known)
        if compared.problem is None and not compared.elements:
            return _difference_error(problem, "which step did it was not found in time")
        if compared.problem is not None:
            line = schedule.trace.as_python()[count - 1]
            kind = schedule.trace.insts[count - 1].kind.name
            finds_another = kind == "RFactor" and _core.selects_pairs(previous)
            why = _INTRINSIC if kind == "Tensorize" else _TIES if finds_another else ""
            return _difference_error(problem, f"it differs first after step {count - 1} of the trace: {line}", why)
    return _difference_error(problem, "which step did it is not known")


_INTRINSIC = "the implementation of that intrinsic does something else than its description, if it is one of your own"
_TIES = (
    "of equal elements, the first one in the new order of steps is found: factor the outermost loop of the reduction, "
    "or let the smaller index decide between equal elements"
)
_STATED = "if that step states something (unsafe_..., assume_...), that does not hold"


def _difference_error(problem: str, step: str, why: str = "") -> ScheduleError:
    return ScheduleError.of(
        "schedule/verify",
        f"the scheduled program does not compute what the original does: {problem}\n  {step}",
        f"{why or _STATED}; otherwise this is a defect of Tilewright, please report it with the script and the trace",
    )
