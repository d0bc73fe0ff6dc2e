"""tvm.meta_schedule.space_generator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilewright import _core
from tilewright.compat.tvm.alias import Renamed
from tilewright.compat.tvm.meta_schedule import schedule_rule
from tilewright.compat.tvm.meta_schedule.as_tvm import as_tvm
from tilewright.compat.tvm.meta_schedule.delegation import delegates_to, delegating_class, initialize
from tilewright.errors import ScheduleError

__all__ = [
    "MutatorProbType",
    "PostOrderApply",
    "PostprocType",
    "PySpaceGenerator",
    "ScheduleFn",
    "ScheduleFnType",
    "ScheduleRuleType",
    "SpaceGenerator",
    "SpaceGeneratorUnion",
    "create",
]

Parts = Sequence[Any] | Mapping[Any, float] | str | None
ScheduleFnType = Any
ScheduleRuleType = PostprocType = MutatorProbType = Parts


_COMPONENTS: Any = _core


def _defaults(kind: str) -> dict[str, Callable[[str], Any]]:
    """Return the functions that create the lists of a kind, by the name of the parameter."""
    return {
        "sch_rules": schedule_rule.create,
        "postprocs": lambda kind: _COMPONENTS.Postproc.defaults(kind),
        "mutator_probs": lambda kind: dict(_COMPONENTS.Mutator.defaults(kind)),
    }


def _give(generator: _core.SpaceGenerator, **parts: Parts) -> None:
    """Set the parts of a generator; "from-target" parts are filled in when it is initialized."""
    for name, value in parts.items():
        if isinstance(value, str):
            value = None if value == "from-target" else _defaults(value)[name](value)
        setattr(generator, name, value)


class _Named:
    """Attributes of space generators under TVM's names."""

    schedule_rules: Any
    mutators: Any

    @property
    def sch_rules(self) -> Any:
        """Return the rules."""
        return self.schedule_rules

    @sch_rules.setter
    def sch_rules(self, rules: Any) -> None:
        self.schedule_rules = None if rules is None else list(rules)

    @property
    def mutator_probs(self) -> Any:
        """Return the mutators, each with its probability."""
        return None if self.mutators is None else dict(self.mutators)

    @mutator_probs.setter
    def mutator_probs(self, probs: Any) -> None:
        self.mutators = None if probs is None else list(probs.items())


class _Native(_Named):
    """Additional attributes of Tilewright's space generators."""

    _initialize_with_tune_context = initialize

    def generate_design_space(self: Any, mod: Any) -> list[Any]:
        """Return the schedules of a program."""
        try:
            return [as_tvm(sch) for sch in _core.SpaceGenerator.generate_design_space(self, mod)]
        except ScheduleError as error:
            if error.code == "post_order_apply/P1":
                check = "TVMError: Check failed: (block_names_.count(block->name_hint) == 0) is false: "
                error.args = (check + error.message,)
            raise


class ScheduleFn(_Native, _core.ScheduleFn):
    """The space that a function makes of a schedule."""

    def __init__(
        self,
        sch_fn: Callable[[Any], Any],
        sch_rules: Parts = "from-target",
        postprocs: Parts = "from-target",
        mutator_probs: Parts = "from-target",
    ) -> None:
        super().__init__(lambda sch: sch_fn(as_tvm(sch)))
        self.sch_fn = sch_fn
        _give(self, sch_rules=sch_rules, postprocs=postprocs, mutator_probs=mutator_probs)


class PostOrderApply(_Native, _core.PostOrderApply):
    """The space that rules make of the blocks of a program."""

    def __init__(
        self,
        f_block_filter: Callable[[Any], bool] | None = None,
        sch_rules: Parts = "from-target",
        postprocs: Parts = "from-target",
        mutator_probs: Parts = "from-target",
    ) -> None:
        super().__init__(f_block_filter)
        _give(self, sch_rules=sch_rules, postprocs=postprocs, mutator_probs=mutator_probs)


def _member(space: Any) -> _core.SpaceGenerator:
    return space if isinstance(space, _core.SpaceGenerator) else ScheduleFn(space)


class SpaceGeneratorUnion(_Native, _core.SpaceGeneratorUnion):
    """Several spaces, as one."""

    def __init__(
        self,
        space_generators: Sequence[_core.SpaceGenerator | Callable[[Any], Any]] = (),
        sch_rules: Parts = "from-target",
        postprocs: Parts = "from-target",
        mutator_probs: Parts = "from-target",
    ) -> None:
        super().__init__([_member(space) for space in space_generators])
        _give(self, sch_rules=sch_rules, postprocs=postprocs, mutator_probs=mutator_probs)


def create(kind: Any = "post-order-apply", *args: Any, **kwargs: Any) -> _core.SpaceGenerator:
    """Return a generator: of a function, or of the kind with this name."""
    if callable(kind):
        return ScheduleFn(kind, *args, **kwargs)
    if kind == "post-order-apply":
        return PostOrderApply(*args, **kwargs)
    if kind == "union":
        return SpaceGeneratorUnion(*args, **kwargs)
    raise ValueError(f"Unknown SpaceGenerator: {kind}")


class SpaceGenerator(metaclass=Renamed):
    """Where schedules come from."""

    node = _core.SpaceGenerator
    make = _core.SpaceGenerator
    create = staticmethod(create)
    ScheduleFnType = SpaceGeneratorType = Any


_DELEGATED = ("_initialize_with_tune_context", "generate_design_space", "clone")


class _PySpaceGenerator(_Named, delegating_class(_core.SpaceGenerator, *_DELEGATED)):  # type: ignore[misc]
    """The component behind a PySpaceGenerator."""

    def __init__(self, sch_rules: Any, postprocs: Any, mutator_probs: Any) -> None:
        super().__init__()
        _give(self, sch_rules=sch_rules, postprocs=postprocs, mutator_probs=mutator_probs)


@delegates_to(_PySpaceGenerator, "sch_rules", "postprocs", "mutator_probs")
class PySpaceGenerator:
    """The base of generators in Python, to be decorated with derived_object."""

    sch_rules: Parts = None
    postprocs: Parts = None
    mutator_probs: Parts = None

    def _initialize_with_tune_context(self, context: Any) -> None:
        raise NotImplementedError

    def generate_design_space(self, mod: Any) -> list[Any]:
        """Return the schedules of a program."""
        raise NotImplementedError

    def clone(self) -> Any:
        """Return a copy of the generator."""
        raise NotImplementedError
