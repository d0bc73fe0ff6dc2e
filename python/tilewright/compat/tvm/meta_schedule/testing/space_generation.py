"""tvm.meta_schedule.testing.space_generation: the sketches that rules make, compared with expected ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright import _core
from tilewright.compat.tvm.ir import IRModule
from tilewright.compat.tvm.ir.base import Proofs
from tilewright.compat.tvm.meta_schedule import schedule_rule
from tilewright.compat.tvm.meta_schedule.space_generator import PostOrderApply
from tilewright.compat.tvm.meta_schedule.tune_context import TuneContext
from tilewright.compat.tvm.tir.schedule.schedule import Schedule
from tilewright.compat.tvm.tir.schedule.testing import verify_trace_roundtrip
from tilewright.testing.check import without_symbols

__all__ = ["check_sketches", "generate_design_space", "get_rules", "print_sketches", "structural_equal_no_gs"]

Decisions = Sequence[tuple[str, Any]]


def get_rules(kind: str, types: type | tuple[type, ...]) -> list[_core.ScheduleRule]:
    """Return the default rules of a kind of target that are of these types."""
    return [rule for rule in schedule_rule.create(kind) if isinstance(rule, types)]


def generate_design_space(
    kind: str,
    mod: Any,
    target: Any,
    types: type | tuple[type, ...] | None,
    sch_rules: Sequence[_core.ScheduleRule] | None = None,
) -> list[Any]:
    """Return the schedules that rules derive from a program."""
    if sch_rules is None:
        if types is None:
            raise ValueError("either types or sch_rules says which rules there are")
        sch_rules = get_rules(kind, types)
    elif types is not None:
        raise ValueError("types say nothing where there are sch_rules")
    space = PostOrderApply(sch_rules=sch_rules, postprocs=[], mutator_probs={})
    context = TuneContext(mod=mod, target=target, space_generator=space, task_name="test")
    return context.generate_design_space()


def _with_decisions(mod: Any, sketch: Any, decisions: Decisions) -> Any:
    """Return the sketch with these decisions; None if its sampling instructions are of other kinds."""
    steps = [step for step in sketch.trace.insts if step.kind.name.startswith("Sample")]
    taken: dict[Any, Any] = {}
    expected = iter(decisions)
    following = next(expected, None)
    for step in steps:
        if following is not None and step.kind.name == following[0]:
            taken[step] = following[1]
            following = next(expected, None)
    if following is not None or len(taken) != len(decisions):
        return None
    sch = Schedule.make(mod)
    type(sketch.trace)(sketch.trace.insts, taken).apply_to_schedule(sch, remove_postproc=True)
    return sch


def structural_equal_no_gs(mod1: Any, mod2: Any) -> bool:
    """Return whether modules are equal up to the names of functions and the form of indices."""
    return Proofs.mismatch(without_symbols(mod1), without_symbols(mod2), False) is None


def check_sketches(
    mod: Any,
    sketches: Sequence[Any],
    expected_mods: Sequence[Any],
    expected_decisions: Sequence[Decisions],
    *,
    debug_mask: str | int = "all",
) -> None:
    """Assert that the sketches are exactly the expected programs, with the expected decisions."""
    assert len(expected_mods) == len(expected_decisions), "there are as many programs as lists of decisions"
    assert len(sketches) == len(expected_mods), f"{len(sketches)} sketches, {len(expected_mods)} were expected"
    left = list(sketches)
    for number, (expected, decisions) in enumerate(zip(expected_mods, expected_decisions, strict=True)):
        program = expected if isinstance(expected, IRModule) else _core.Module({"main": expected}, {})
        for sketch in left:
            made = _with_decisions(mod, sketch, decisions)
            if made is not None and structural_equal_no_gs(made.mod, program):
                verify_trace_roundtrip(sch=made, mod=mod, debug_mask=debug_mask, text_format="json")
                left.remove(sketch)
                break
        else:
            raise AssertionError(f"Expected sketch #{number} doesn't exist in the generated sketches.")


def print_sketches(sketches: Sequence[Any]) -> None:
    """Print the programs and their sampling decisions."""
    for number, sketch in enumerate(sketches):
        print(f"###### {number}")
        print(sketch.mod.script())
        for step, decision in sketch.trace.decisions.items():
            print((step.kind.name, decision))
