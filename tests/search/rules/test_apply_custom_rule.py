"""ApplyCustomRule: blocks that name their rule."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import tilewright as tw
from tilewright import _core, te
from tilewright import meta_schedule as ms

from .sketches import annotations, check, made_by, sketches


def _named(rule: str) -> Any:
    a = te.placeholder((4, 6), name="A")
    b = te.compute((4, 6), lambda i, j: a[i, j] + 1.0, name="B", attrs={"schedule_rule": rule})
    return te.create_prim_func([a, b], name="main")


def _halves(sch: Any, block: Any) -> Any:
    other = sch.copy()
    sch.split(sch.get_loops(block)[0], [2, 2])
    return [sch, other]


@pytest.fixture
def halves() -> Iterator[None]:
    ms.register_custom_rule("meta_schedule.cpu.halves", _halves, replace=True)
    yield


@pytest.mark.usefixtures("halves")
def test_the_rule_of_the_target() -> None:
    function = _named("halves")
    made = sketches(function, ms.ApplyCustomRule())
    assert sorted(len(sch.get_loops(sch.get_block("B"))) for sch in made) == [2, 3]
    check(function, made)
    (sch,) = sketches(function, ms.ApplyCustomRule(), target="cuda")  # has no such rule
    assert annotations(sch, "B") == {}


@pytest.mark.parametrize(
    ("target", "count"), [("llvm -keys=arm_cpu,cpu", 2), ("llvm -device=arm_cpu", 2), ("llvm -keys=mine", 1)]
)
def test_keys_that_the_target_names(target: str, count: int) -> None:
    ms.register_custom_rule("meta_schedule.arm_cpu.halves_there", _halves, replace=True)
    assert len(sketches(_named("halves_there"), ms.ApplyCustomRule(), target=target)) == count


def test_other_rules_leave_the_block_alone() -> None:
    inline = ms.AutoInline(False, True, True, False, False, False)
    (sch,) = sketches(_named("None"), ms.ApplyCustomRule(), inline)
    assert annotations(sch, "B") == {"schedule_rule": "None"}


@pytest.mark.usefixtures("halves")
def test_a_name_is_taken_once() -> None:
    with pytest.raises(tw.ArgumentError) as error:
        ms.register_custom_rule("meta_schedule.cpu.halves", _halves)
    assert error.value.code == "custom_rule/taken"


def test_what_a_rule_raises_is_raised() -> None:
    def fails(sch: Any, block: Any) -> Any:
        raise KeyError("nothing of the kind")

    ms.register_custom_rule("meta_schedule.cpu.fails", fails, replace=True)
    with pytest.raises(KeyError, match="nothing of the kind"):
        sketches(_named("fails"), ms.ApplyCustomRule())


def test_what_a_rule_raises_on_one_of_several_is_told(caplog: pytest.LogCaptureFixture) -> None:
    def fails_on_c(sch: Any, block: Any) -> Any:
        sch.split(sch.get_loops(block)[0], [2, 2])
        if sch.get(block).name_hint == "C":
            raise KeyError("not this one")
        return [sch]

    ms.register_custom_rule("meta_schedule.cpu.fails_on_c", fails_on_c, replace=True)
    attrs: Any = {"schedule_rule": "fails_on_c"}
    a = te.placeholder((4, 6), name="A")
    b = te.compute((4, 6), lambda i, j: a[i, j] + 1.0, name="B", attrs=attrs)
    c = te.compute((4, 6), lambda i, j: b[i, j] * 2.0, name="C", attrs=attrs)
    (sch,), space = made_by(te.create_prim_func([a, c], name="main"), ms.ApplyCustomRule())
    assert [len(sch.get_loops(name)) for name in ("B", "C")] == [3, 2]
    assert space.refusals == {"space/exception": 1}
    assert "ApplyCustomRule fails on block 'C', which stays as it was: KeyError: 'not this one'" in caplog.text
    assert "test_apply_custom_rule.py" in caplog.text and "Traceback" not in caplog.text


def test_a_rule_that_nobody_has_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        inline = ms.AutoInline(False, True, True, False, False, False)
        (sch,) = sketches(_named("of_nobody"), ms.ApplyCustomRule(), inline)
        assert annotations(sch, "B") == {}
        assert caplog.text.count("block 'B' asks for the rule 'of_nobody', of which there is none") == 1
        assert "with the keys cpu: the other rules have it" in caplog.text
        caplog.clear()  # the next space is another one
    (sch,) = sketches(_named("None"), ms.ApplyCustomRule())
    assert caplog.text == ""


def test_it_needs_a_target() -> None:
    with pytest.raises(tw.ArgumentError) as error:
        ms.ApplyCustomRule().initialize(_core.TuneContext())
    assert error.value.code == "custom_rule/target"


@pytest.mark.parametrize("name", ["mine", "meta_schedule.mine", "meta_schedule..mine", "meta_schedule.cpu."])
def test_names_that_no_block_would_find(name):
    with pytest.raises(tw.ArgumentError, match=r"meta_schedule\.KEY\.NAME") as error:
        ms.register_custom_rule(name, _halves)
    assert error.value.code == "custom_rule/name"
