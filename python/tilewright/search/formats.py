"""Tune over sparse formats: successive halving over the formats that a space can choose, with one search per format.

Programs in different formats take different arguments, so each format has its own search: over the schedules of the
program decomposed into that format. After each round, the slower half of the formats is dropped (successive halving,
Jamieson and Talwalkar 2016).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tilewright import _core, ir
from tilewright.database.records import open_database
from tilewright.database.session_notes import RecordedFormat, store_formats
from tilewright.errors import ArgumentError, Error, ResourceError
from tilewright.kernel.kernel import Kernel
from tilewright.kernel.kernel import compile as compile_program
from tilewright.schedule import Schedule
from tilewright.search.spaces import Space
from tilewright.support.nodes import nodes_of
from tilewright.support.other_names import renamed
from tilewright.tables import Table
from tilewright.task.arguments import make_arrays
from tilewright.task.conversions import conversions_of, prefix
from tilewright.task.parameter_names import labels_of
from tilewright.task.task import by_buffer, sizes_of, task_of
from tilewright.timing import format_seconds

if TYPE_CHECKING:
    from tilewright._core import Record
    from tilewright.search.request import SearchRequest
    from tilewright.search.result import TuneResult
    from tilewright.sparse.conversion import ConvertedStructure
    from tilewright.sparse.decompose import DecomposedProgram

#: kind of the trace instruction that decomposes a tensor into a format
DECOMPOSE_STEP = "DecomposeFormat"
#: maximum number of formats
MAX_FORMATS = 32
#: sampling stops after this many consecutive samples without a new format
SAMPLES_WITHOUT_NEW_FORMAT = 12


@dataclass(frozen=True, eq=False)
class FormatChoice:
    """A format that a space has sampled, and what a search found for it.

    Attributes:
        tensor: name of the tensor.
        name: name of the format, a function of :mod:`tilewright.sparse.formats`.
        parameters: parameters of the format, the shape of the tensor first.
        count: number of rules that the program is decomposed into; 0: as many as the format defines.
        schedule: schedule of the original program, up to the decomposing step.
        decisions: sampling decisions of the trace up to the decomposing step.
        result: result of the search over the decomposed program; None if there was none.
        converted: the structure in this format; None if the format cannot store it.
        failure: why no candidate is correct; "" if one is.
    """

    tensor: str
    name: str
    parameters: tuple[int, ...]
    count: int
    schedule: Schedule = field(repr=False)
    decisions: tuple[Any, ...] = field(repr=False)
    result: TuneResult | None = field(default=None, repr=False)
    converted: ConvertedStructure | None = field(default=None, repr=False)
    failure: str = ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self, renamed("tilewright.search.formats.FormatChoice", name))

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.parameters))})"

    @property
    def seconds(self) -> float:
        """Return the seconds of a call of the best candidate; infinity if there is none."""
        return math.inf if self.result is None or self.result.record is None else self.result.record.median

    @property
    def stop_reason(self) -> str:
        """Return why the search of this format ended, as :attr:`TuneResult.stop_reason`; "" if there was no search."""
        return "" if self.result is None else self.result.stop_reason

    @property
    def padding(self) -> float:
        """Return the fraction of stored elements that are padding."""
        parts = () if self.converted is None else self.converted.parts
        stored = sum(part.size for part in parts)
        return sum(part.padding * part.size for part in parts) / stored if stored else 0.0


@dataclass(frozen=True, eq=False)
class FormatsResult:
    """The result of a search over formats.

    Attributes:
        program: the original program.
        choices: the formats that were sampled, the one with the fastest kernel first.
    """

    program: ir.PrimFunc
    choices: tuple[FormatChoice, ...]
    _cache: dict[str, Any] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        return f"<FormatsResult of {len(self.choices)} formats: best {self.best}, {format_seconds(self.best.seconds)}>"

    @property
    def best(self) -> FormatChoice:
        """Return the format with the fastest kernel."""
        return self.choices[0]

    @property
    def stop_reason(self) -> str:
        """Return "canceled" if the search was interrupted, else the stop reason of the best format."""
        reasons = [choice.stop_reason for choice in self.choices]
        return "canceled" if "canceled" in reasons else self.best.stop_reason

    @property
    def result(self) -> TuneResult:
        """Return the result of the search over the program in the best format.

        Raises:
            tilewright.ResourceError: No candidate was correct.
        """
        if self.best.result is None or self.best.result.record is None:
            reasons = "".join(f"\n  {choice}: {choice.failure}" for choice in self.choices)
            hint = "try one of them: apply the space to tw.Schedule(program), and compile it"
            raise ResourceError.of("tune/no-correct-candidate", f"no format has a correct candidate{reasons}", hint)
        return self.best.result

    @property
    def record(self) -> Record:
        """Return the best candidate, as a record of the decomposed program."""
        return self.result.best_record()

    @property
    def decomposition(self) -> DecomposedProgram:
        """Return the program in the best format, with its rules and the conversion of arguments for a structure."""
        found: DecomposedProgram = _conversion_of(self.best).program
        return found

    @property
    def schedule(self) -> Schedule:
        """Return the best schedule of the original program: its trace decomposes the tensor, then applies the best
        schedule of the decomposed program."""
        if "schedule" not in self._cache:
            schedule = Schedule(self.program)
            for each in (self.best.schedule, self.result.schedule):
                each.trace.apply_to_schedule(schedule, remove_postproc=False)
            self._cache["schedule"] = schedule
        found: Schedule = self._cache["schedule"]
        return found

    @property
    def kernel(self) -> Kernel:
        """Return the best schedule, compiled. Its arguments are those of the decomposed program."""
        if "kernel" not in self._cache:
            kernel = compile_program(self.schedule, self.record.target)
            assert isinstance(kernel, Kernel)
            kernel.threads = self.result.threads
            self._cache["kernel"] = kernel
        found: Kernel = self._cache["kernel"]
        return found

    def table(self) -> Table:
        """Return one row per format: time of the best kernel, padding, conversion time, and that time in calls of the
        kernel."""
        rows = []
        for choice in self.choices:
            if choice.converted is None or choice.result is None or math.isinf(choice.seconds):
                rows.append((str(choice), "", "", "", "", choice.failure.partition("\n")[0]))
                continue
            cost = choice.converted.seconds
            calls = f"{cost / choice.seconds:.0f}" if choice.seconds > 0 else ""
            tried = str(choice.result.progress.trials)
            rows.append(
                (
                    str(choice),
                    format_seconds(choice.seconds),
                    f"{choice.padding:.0%}",
                    format_seconds(cost),
                    calls,
                    tried,
                )
            )
        columns = ("format", "best found", "padding", "conversion", "in calls", "trials")
        return Table(f"formats of {self.best.tensor}, the fastest first", columns, tuple(rows))

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


class FormatSchedule:
    """The schedule that a format-choosing space receives while one fixed format is searched.

    Calls before `decompose_format` replay the recorded decisions on the original program. Calls after it go to the
    schedule of the decomposed program.
    """

    def __init__(self, schedule: Schedule, choice: FormatChoice, program: ir.PrimFunc) -> None:
        self._schedule, self._choice = schedule, choice
        self._active = Schedule(program)
        self._active.take_decisions(list(choice.decisions))
        self._original = self._active

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._active, name)
        if self._active is not self._original or not name.startswith("sample_"):
            return found

        def sampled(*args: Any, **kwargs: Any) -> Any:
            given = found(*args, **kwargs)
            if isinstance(given, list | tuple):
                return [self._original.get(each) for each in given]
            return int(self._original.get(given)) if isinstance(given, _core.ExprRV) else given

        return sampled

    def get(self, handle: Any) -> Any:
        """Return the value or node of a handle. Values sampled before the decomposing step are numbers already."""
        return handle if isinstance(handle, int) else self._active.get(handle)

    def decompose_format(self, *args: Any, **kwargs: Any) -> list[Any]:
        """Switch to the decomposed program, and return its sparse iterations."""
        if self._active is not self._original:
            raise ArgumentError.of(
                "space/parameters", "the space decomposes two tensors", "a search over formats is of one tensor"
            )
        conversion = _conversion_of(self._choice)
        known = set(_iterations(self._original.mod))
        self._original.decompose_format(*args, **kwargs)
        self._active = self._schedule
        endings = tuple(f"_{rule.name}" for rule in conversion.program.rules)
        names = [name for name in _iterations(self._original.mod) if name not in known and name.endswith(endings)]
        return [self._schedule.get_sparse_iteration(name) for name in names]


def _iterations(module: ir.Module) -> list[str]:
    """Return the names of sparse iterations in program order."""
    return [each.name_hint for func in module.functions.values() for each in nodes_of(func, ir.SparseIteration)]


def _conversion_of(choice: FormatChoice) -> Any:
    """Return the recorded conversion of a format, which holds the decomposed program."""
    (function,) = choice.schedule.mod.functions
    (conversion,) = conversions_of(choice.schedule, function)
    return conversion


def choices_of(
    space: Space, program: ir.PrimFunc | ir.Module, seed: int, most: int, run: Callable[[Space, Schedule], None]
) -> list[FormatChoice]:
    """Return the formats that a space samples; [] if it does not decompose a tensor.

    Args:
        space: space of the program.
        program: program over sparse axes; others have no formats.
        seed: seed of the samples.
        most: maximum number of formats.
        run: applies the space to a schedule.
    """
    if not isinstance(program, ir.PrimFunc) or not program.axes:
        return []
    found: dict[Any, FormatChoice] = {}
    since = 0
    while since < SAMPLES_WITHOUT_NEW_FORMAT and len(found) < min(most, MAX_FORMATS):
        schedule = Schedule(program, seed=seed + len(found) + since)
        since += 1
        refused = False
        try:
            run(space, schedule)
        except Error:
            # The refusal may come after the decomposing step; then the search of that format reports it.
            refused = True
        kinds = [step.kind.name for step in schedule.trace.insts]
        if DECOMPOSE_STEP not in kinds:
            if not found and not refused:
                return []
            continue
        choice = _choice(schedule, kinds.index(DECOMPOSE_STEP))
        if found.setdefault((choice.tensor, str(choice), choice.count), choice) is choice:
            since = 0
        if not schedule.trace.decisions:
            break
    return list(found.values())


def _choice(schedule: Schedule, at: int) -> FormatChoice:
    step = schedule.trace.insts[at]
    (given,), (tensor, name, count, _) = step.inputs, step.attrs
    parameters = tuple(each if isinstance(each, int) else int(schedule.get(each)) for each in given)
    until = schedule.with_trace(prefix(schedule, at + 1))
    decided = [until.trace.decisions[each] for each in until.trace.insts if each in until.trace.decisions]
    return FormatChoice(str(tensor), str(name), parameters, int(count), until, tuple(decided))


def convert_structure_to(
    choice: FormatChoice, program: ir.PrimFunc, inputs: Mapping[str, Any], sizes: Mapping[str, float], seed: int
) -> tuple[ConvertedStructure, dict[int, Any]]:
    """Convert the structure to a format. Return it with the arguments of the decomposed program that it determines, by
    position.

    Raises:
        tilewright.ArgumentError: The format does not hold the structure.
    """
    known = {**sizes_of(program, inputs), **sizes}
    arrays = make_arrays(task_of(program, known), inputs, seed)
    arguments = [
        arrays[label] if param in program.buffer_map else known.get(label)
        for label, param in zip(labels_of(program), program.params, strict=True)
    ]
    made: Any = _conversion_of(choice).convert(arguments)
    (decomposed,) = choice.schedule.mod.functions.values()
    assert isinstance(decomposed, ir.PrimFunc)
    labels = labels_of(decomposed)
    values = inputs.keys() & {choice.tensor}
    given = {}
    for at, (label, value) in enumerate(zip(labels, made.arguments, strict=True)):
        is_structure = not hasattr(value, "dtype") or value.dtype.kind in "iu"
        if is_structure or label in inputs or (values and at in made.elements_at):
            given[at] = value
    return made.converted, given


Search = Callable[[ir.PrimFunc, Callable[[Any], None], int, "float | None", Mapping[int, Any]], "TuneResult"]


def tune_in_formats(
    program: ir.PrimFunc | ir.Module,
    request: SearchRequest,
    tune: Callable[[ir.PrimFunc, SearchRequest, float], TuneResult],
    run: Callable[[Space, Schedule], None],
) -> FormatsResult | None:
    """Search a space that decomposes a tensor; return None for other spaces.

    Args:
        program: the program.
        request: request of :func:`tilewright.tune`.
        tune: function that searches one program.
        run: function that applies a space to a schedule.
    """
    given = request.space
    if isinstance(given, str | _core.SpaceGenerator) or given is None or not isinstance(program, ir.PrimFunc):
        return None
    space = given if isinstance(given, Space) else Space(program, given, name=getattr(given, "__name__", "space"))
    choices = [] if space.is_heuristic else choices_of(space, program, request.seed + 1, request.trials, run)
    if not choices:
        return None
    store = _core.Database.in_memory() if request.database in (None, "memory") else request.database

    def search(
        func: ir.PrimFunc, function: Callable[[Any], None], trials: int, seconds: float | None, given: Mapping[int, Any]
    ) -> TuneResult:
        own = Space(func, function, name=space.name)
        inputs: Any = by_buffer(func, given)  # type: ignore[arg-type]
        changed = {"space": own, "trials": trials, "seconds": seconds, "inputs": inputs, "sizes": {}, "database": store}
        return tune(func, replace(request, **changed), time.monotonic())

    def convert(choice: FormatChoice) -> tuple[ConvertedStructure, dict[int, Any]]:
        return convert_structure_to(choice, program, request.inputs, request.sizes, request.seed)

    found = _successive_halving(program, space, choices, (request.trials, request.seconds), convert, search)
    _record_formats(store, program, found.choices)
    return found


def _record_formats(store: Any, program: ir.PrimFunc, choices: Sequence[FormatChoice]) -> None:
    """Record in the database which formats the program was tuned in, for a later compilation."""
    found = [
        RecordedFormat(each.tensor, each.name, each.parameters, each.count, each.result.record.workload)
        for each in choices
        if each.result is not None and each.result.record is not None
    ]
    store_formats(store if isinstance(store, _core.Database) else open_database(store), program, found)


@dataclass(frozen=True)
class _Contestant:
    """A format that is still searched.

    Attributes:
        choice: the format, with the result of the last round.
        arguments: arguments of the decomposed program, by position.
        trials_used: number of candidates measured so far.
    """

    choice: FormatChoice
    arguments: Mapping[int, Any]
    trials_used: int = 0


def _seconds_left(end: float, formats: int, rounds: int) -> float | None:
    """Return the time limit of the next search, if each remaining search takes equally long; None without a limit."""
    return None if math.isinf(end) else max((end - time.monotonic()) / (formats * rounds), 0.1)


def _drop_slower_half(contestants: Sequence[_Contestant]) -> tuple[list[_Contestant], list[FormatChoice]]:
    """Return the faster half, the fastest first, and the dropped formats."""
    ordered = sorted(contestants, key=lambda each: each.choice.seconds)
    kept = max(1, (len(ordered) + 1) // 2)
    return ordered[:kept], [each.choice for each in ordered[kept:]]


def _converted_choices(
    choices: Sequence[FormatChoice], convert: Callable[[FormatChoice], tuple[ConvertedStructure, dict[int, Any]]]
) -> tuple[list[_Contestant], list[FormatChoice]]:
    """Return the formats that can store the structure, with its conversion, and the formats that cannot."""
    contestants, failed = [], []
    for choice in choices:
        try:
            structure, arguments = convert(choice)
            contestants.append(_Contestant(replace(choice, converted=structure), arguments))
        except ArgumentError as error:
            failed.append(replace(choice, failure=str(error)))
    return contestants, failed


def _successive_halving(
    program: ir.PrimFunc,
    space: Space,
    choices: Sequence[FormatChoice],
    limits: tuple[int, float | None],
    convert: Callable[[FormatChoice], tuple[ConvertedStructure, dict[int, Any]]],
    search: Search,
) -> FormatsResult:
    """Search in rounds, and drop the slower half of the formats after each.

    Args:
        program: program that the space decomposes.
        space: space of the program.
        choices: the formats.
        limits: number of candidates of all formats together, and time limit in seconds or None.
        convert: function that makes the arguments of a format.
        search: function that searches a decomposed program by a space, up to a total number of trials.
    """
    trials_left, seconds = limits
    end = math.inf if seconds is None else time.monotonic() + seconds
    remaining, dropped = _converted_choices(choices, convert)
    rounds = max(1, math.ceil(math.log2(max(len(remaining), 1))) + 1)
    for number in range(rounds):
        share = trials_left // (rounds - number)
        results: list[_Contestant] = []
        is_canceled = False
        for at, each in enumerate(remaining):
            if is_canceled:
                # A canceled search keeps the results of earlier rounds.
                results.append(each)
                continue
            more = share // len(remaining) + (at < share % len(remaining))
            more = max(more, 1 if number == 0 else 0)
            trials_left -= more
            total = each.trials_used + more
            limit = _seconds_left(end, len(remaining), rounds - number)
            choice = _search_one_format(program, space, each.choice, each.arguments, total, limit, search)
            results.append(_Contestant(choice, each.arguments, total))
            is_canceled = choice.stop_reason == "canceled"
        if number + 1 < rounds:
            remaining, slower = _drop_slower_half(results)
            dropped += slower
        else:
            remaining = results
        if time.monotonic() > end or trials_left <= 0 or is_canceled:
            break
    dropped += [each.choice for each in remaining]
    return FormatsResult(program, tuple(sorted(dropped, key=lambda each: each.seconds)))


def _search_one_format(
    program: ir.PrimFunc,
    space: Space,
    choice: FormatChoice,
    given: Mapping[int, Any],
    trials: int,
    seconds: float | None,
    search: Search,
) -> FormatChoice:
    """Search the best schedule in one format, and return the format with the result."""
    (decomposed,) = choice.schedule.mod.functions.values()
    assert isinstance(decomposed, ir.PrimFunc)

    def in_format(schedule: Any) -> None:
        space.function(FormatSchedule(schedule, choice, program))  # type: ignore[arg-type]

    try:
        result = search(decomposed, in_format, trials, seconds, given)
    except Error as error:
        return replace(choice, failure=str(error))
    return replace(choice, result=result, failure="" if result.record is not None else str(result.without_record()))
