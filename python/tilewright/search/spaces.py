"""Spaces of schedules: functions that sample, bound to the program they schedule."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tilewright import _core
from tilewright.errors import ArgumentError
from tilewright.heuristics import cpu, failures
from tilewright.support import limits, notes
from tilewright.support.machine import is_for_device
from tilewright.support.wrong_arguments import suggests_keywords
from tilewright.task.task import by_buffer

if TYPE_CHECKING:
    from tilewright.ir import Module, PrimFunc
    from tilewright.schedule import Schedule
    from tilewright.task.task import Task


@dataclass(frozen=True, eq=False)
class Space:
    """A program and a function that schedules it, with sampled decisions.

    Attributes:
        program: the program that is scheduled.
        function: takes a fresh :class:`tilewright.Schedule` and transforms it in place.
        reference: what to compare with: a function of the arrays and scalars that the program reads, in the order
            of the parameters, that returns what the program writes, a tuple where that are several arrays.
            ``tilewright tune`` times it, and says when it computes something else: integers exactly, floats beyond what
            another order of sums and other functions explain. It never decides about candidates: these are compared
            with the program as it was written, and that with the interpreter.
        inputs: arguments where random ones make no sense, by the name of the parameter.
        name: name of the space; the function's own by default.
        first: how the first candidate of a search is made, when that is not left to chance; with the decisions that
            `function` samples, in the same order.
        identity: identifies this space, beside its samples.
        is_heuristic: whether `function` and `first` are heuristics of ours: where they fail, the unscheduled program
            takes the place of their schedule.
    """

    program: PrimFunc | Module
    function: Callable[[Schedule], object]
    reference: Callable[..., Any] | None = None
    inputs: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""
    first: Callable[[Schedule], object] | None = None
    identity: str = ""
    is_heuristic: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.program, _core.PrimFunc | _core.Module):
            object.__setattr__(self, "inputs", by_buffer(self.program, self.inputs))

    def __repr__(self) -> str:
        return f"<Space {self.name}>"

    def __call__(self, schedule: Schedule) -> None:
        """Schedule as the function does."""
        self.function(schedule)


@suggests_keywords
def space(
    program: PrimFunc | Module,
    *,
    reference: Callable[..., Any] | None = None,
    inputs: Mapping[str, Any] | None = None,
    name: str | None = None,
) -> Callable[[Callable[[Schedule], None]], Space]:
    """Return a decorator that declares a function to be a space of schedules of `program`.

    >>> @tw.space(matmul, reference=lambda a, b: a @ b)
    ... def tiles(sch: tw.Schedule) -> None:
    ...     i, j, k = sch.get_loops(sch.get_block("C"))
    ...     sch.split(i, sch.sample_perfect_tile(i, n=2))

    ``tilewright tune FILE`` runs every space of FILE.

    Raises:
        tilewright.ArgumentError: `program` is not a program.
    """
    from tilewright import ir

    if not isinstance(program, (ir.PrimFunc, ir.Module)):
        raise ArgumentError.of(
            "space/program",
            f"tw.space takes the program to be scheduled, not {type(program).__name__}",
            "write @tw.space(matmul) with a @T.prim_func, parentheses included",
        )

    limits.kind("reference", reference, Callable | None, "a function of arrays, or None")
    limits.kind("inputs", inputs, Mapping | None, "a dict of arrays by the names of parameters, or None")
    limits.kind("name", name, str | None, "a text, or None for the name of the function")

    def wrap(function: Callable[[Schedule], None]) -> Space:
        return Space(
            program, function, reference, dict(inputs or {}), name or str(getattr(function, "__name__", "space"))
        )

    return wrap


#: the name of the space that rules make of a program
BY_RULES = "by rules"


class CpuRules(_core.FunctionSpace):
    """The space of :func:`tilewright.tune`, as one that can stand beside others in a ``SpaceGeneratorUnion``: schedules
    with the heuristic schedule of CPUs, whose open choices are sampled. Later steps depend on sampled values, so
    strategies that run it anew for each point ("guided", "draft-and-verify", "descent", "replay-func") see all of it;
    those that replay the steps of its first point see only the decisions of these steps.

    Args:
        sizes: what sizes that a program leaves open usually are, by name.
    """

    def __init__(self, sizes: Mapping[str, float] | None = None) -> None:
        def apply(schedule: Schedule, first: bool, target: _core.Target | None) -> None:
            if target is None:
                raise ArgumentError.of(
                    "space/no-target",
                    "CpuRules makes schedules for a processor, and the context has no target",
                    'give it one: ms.TuneContext(program, target="native", space_generator=ms.CpuRules())',
                )
            if first:
                best_for_cpu(schedule, target, sizes)
            else:
                cpu.schedule_for_cpu(schedule, target, best=False, sizes=sizes)

        super().__init__(apply, with_target=True)
        self.schedule_rules, self.postprocs = [], []


#: by the names that strings may say
SPACES: Mapping[str, Callable[[], _core.SpaceGenerator]] = {
    "post-order-apply": _core.PostOrderApply,
    "cpu-rules": CpuRules,
}


def design_spaces(generator: _core.SpaceGenerator, module: Module) -> list[Schedule]:
    """Return the schedules of a generator for a program, one for each alternative.

    Raises:
        tilewright.ArgumentError: the generator returns something else.
    """
    given: Any = generator.generate_design_space(module)
    if isinstance(given, _core.Schedule):
        return [given]
    if given is None:
        return []
    is_list = isinstance(given, list | tuple)
    wrong = [item for item in given if not isinstance(item, _core.Schedule)] if is_list else [given]
    if wrong:
        raise ArgumentError.of(
            "space/answer",
            f"generate_design_space() of a '{type(generator).__name__}' gave a '{type(wrong[0]).__name__}'"
            + (" in its list" if is_list else ""),
            "it gives a list of schedules, such as [tw.Schedule(module)]",
        )
    return list(given)


def space_called(name: str) -> _core.SpaceGenerator:
    """Return the space with a name.

    Raises:
        tilewright.ArgumentError: there is no space with this name.
    """
    if name not in SPACES:
        raise ArgumentError.of("space/name", f"there is no space {name!r}", f"there are {', '.join(map(repr, SPACES))}")
    return SPACES[name]()


def best_for_cpu(schedule: Schedule, target: _core.Target, sizes: Mapping[str, float] | None) -> None:
    """Apply the schedule that the cost model ranks best, in place. If heuristics fail, warn and leave the program
    unscheduled."""
    trial = schedule.copy()  # a failure leaves a schedule half done
    try:
        cpu.schedule_for_cpu(trial, target, best=True, sizes=sizes)
    except Exception as error:
        failures.raise_where_refused(schedule.mod, error)
        failures.raise_in_tests(error)
        functions = schedule.mod.functions.items()
        names = [str(getattr(function, "attrs", {}).get("global_symbol", name)) for name, function in functions]
        notes.warn_of_failed_heuristic(", ".join(names), failures.description(error))
        return
    trial.trace.apply_to_schedule(schedule, remove_postproc=False)


def space_for_cpu(program: PrimFunc | Module, target: _core.Target, sizes: Mapping[str, float] | None = None) -> Space:
    """Return the space of a program without a schedule. Its first candidate is the heuristic schedule, which the model
    of the target ranks best for the sizes of typical calls."""
    return Space(
        program,
        lambda schedule: cpu.schedule_for_cpu(schedule, target, best=False, sizes=sizes),
        name=BY_RULES,
        first=lambda schedule: best_for_cpu(schedule, target, sizes),
        identity=repr((cpu.VERSION, sorted((sizes or {}).items()))),
        is_heuristic=True,
    )


def space_of(
    given: Space | _core.SpaceGenerator | Callable[[Schedule], object] | str | None,
    program: PrimFunc | Module,
    task: Task,
    threads: int,
    target: str,
) -> tuple[Space, _core.SpaceGenerator | None]:
    """Return the space to search, and a generator of its schedules if that is not the space's function."""
    space = space_called(given) if isinstance(given, str) else given
    for_cpu = space is None or (isinstance(space, Space) and space.is_heuristic)
    if for_cpu and is_for_device(target):
        space = space_called("post-order-apply")
    if space is None:
        return space_for_cpu(program, _core.Target(target).with_num_cores(threads), task.sizes), None
    if isinstance(space, _core.SpaceGenerator):
        generator = space.clone()
        return Space(program, lambda schedule: None, name=type(generator).__name__), generator
    if isinstance(space, Space):
        return space, None
    return Space(program, space, name=getattr(space, "__name__", "space")), None
