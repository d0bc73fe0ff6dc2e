"""What tw.compile does where nobody has scheduled, and who is left as he is."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from tests.heuristics.cpu.programs import PROGRAMS, elementwise, product, scheduled

import tilewright as tw
from tilewright import te
from tilewright.heuristics import by_target, cpu
from tilewright.script import tir as T
from tilewright.support.notes import Note
from tilewright.testing import everyday


def columns_first(schedule, target, *, best):
    """Worse than what it begins with."""
    i, j = schedule.get_loops("C")
    schedule.reorder(j, i)
    schedule.unroll(schedule.split(i, [None, 4])[1])


def test_by_default_a_program_is_compiled_as_written_where_that_seems_faster(monkeypatch):
    monkeypatch.setattr(cpu, "schedule_for_cpu", columns_first)
    program = elementwise(512, 512)
    module = tw.ir.Module({n: elementwise(512, 512).with_attr("global_symbol", n) for n in ("one", "two")})
    assert tw.compile(program).schedule == "as written"
    assert {kernel.schedule for kernel in tw.compile(module).values()} == {"as written"}
    assert tw.compile(program, schedule="by rules").schedule == "by rules"


@pytest.fixture(scope="module")
def compiled():
    """All programs of the heuristics' tests, compiled by default: kernels and warnings, by name."""
    kernels = {}
    for name, program in PROGRAMS.items():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            kernels[name] = tw.compile(program), [str(warning.message) for warning in caught]
    return kernels


def test_by_default_the_rules_are_trusted_on_all_they_were_made_for(compiled):
    for name, program in PROGRAMS.items():
        if by_target.heuristic_schedules(tw.ir.Module({"main": program}), tw.Target("native"))[1]:
            assert compiled[name][0].schedule == "by rules", name


def test_by_default_schedules_and_checked_programs_are_taken_as_they_are():
    program = product(20, 30, 10)
    assert tw.compile(tw.Schedule(program)).schedule == "as written"
    assert tw.compile(program, check_bounds=True).schedule == "as written"
    assert tw.compile(program, "interpreter").schedule == "as written"
    assert tw.compile(scheduled(program).mod).schedule == "as written"


def test_what_the_rules_cannot_make_is_compiled_as_written(monkeypatch):
    def too_large(schedule, target, *, best):
        copy = schedule.cache_write(schedule.get_block("C"), 0, "local")
        schedule.reverse_compute_at(copy, schedule.get_loops("C")[0])
        raise tw.ScheduleError("no rule for this")

    monkeypatch.delenv("TILEWRIGHT_RAISE_HEURISTIC_FAILURES")
    monkeypatch.setattr(cpu, "schedule_for_cpu", too_large)
    kernel = tw.compile(product(8, 9, 10))
    assert kernel.schedule == "as written"
    np.testing.assert_array_equal(kernel(np.ones((1, 8, 10), "float32"), np.ones((1, 10, 9), "float32")), 10)


def test_what_no_rule_knows_is_noted(compiled):
    @T.prim_func
    def opaque(V: T.Buffer((32, 64), "float32"), more: T.Buffer((32, 64), "float32")):
        for i, k in T.grid(32, 64):
            with T.block("more"):
                vi = T.axis.opaque(32, i)
                vk = T.axis.spatial(64, k)
                more[vi, vk] = V[vi, vk] + T.float32(1)

    module = tw.ir.Module({"opaque": opaque, "open": elementwise(50, 60).with_attr("global_symbol", "open")})
    kernel = tw.compile(module)["opaque"]
    assert kernel.schedule == "as written"
    (note,) = [note for note in kernel.notes if note.code == "compile/no-rule"]
    assert note.function == "opaque" and not note.is_requested
    assert not [note for note in tw.compile(opaque, schedule="as written").notes if note.code == "compile/no-rule"]
    # Neither where there is nothing to be fast, nor where a program is expected to be faster as it is written.
    small = elementwise(1, 1)
    assert not tw.compile(small).notes
    for name, (kernel, _) in compiled.items():
        if not any(note.code == "compile/no-rule" for note in kernel.notes):
            continue
        assert not by_target.heuristic_schedules(tw.ir.Module({"main": PROGRAMS[name]}), tw.Target("native"))[1], name


def test_what_no_rule_knows_may_be_fast_all_the_same():
    """Sums down the columns are vectors along the rows: a note must not say that nothing is done."""
    kernel = tw.compile(everyday.running_sums_down(64, 64))
    (note,) = [note for note in kernel.notes if note.code == "compile/no-rule"]
    assert re.search(r"<\d+ x float>", kernel.inspect("llvm"))
    assert note.message == "no rule knows this kind of computation: its loops stay as they are, apart from vectors"


def test_the_table_of_notes_has_every_code():
    table = (Path(__file__).parents[2] / "docs/compiling.md").read_text()
    assert Note.__doc__ is not None
    codes = re.findall(r'``"([a-z]+/[a-z-]+)"``', Note.__doc__)
    assert len(codes) >= 9 and "compile/no-rule" in codes
    assert [code for code in codes if f"| `{code}` |" not in table] == []


def test_formulas_get_rules_too():
    a, k = te.placeholder((64, 64), name="A"), te.reduce_axis((0, 64), name="k")
    square = te.compute((64, 64), lambda i, j: te.sum(a[i, k] * a[k, j], [k]), name="B")
    for formulas in (square, [a, square]):
        assert tw.compile(formulas).schedule == "by rules"
        assert tw.compile(formulas, schedule="as written").schedule == "as written"


def test_nobody_is_warned_of_what_the_rules_ask_for(compiled):
    assert {name: caught for name, (_, caught) in compiled.items() if caught} == {}


def test_functions_of_a_module_say_each_for_itself():
    done = scheduled(product(16, 32, 8)).mod.functions["main"].with_attr("global_symbol", "done")
    module = tw.ir.Module({"open": elementwise(50, 60).with_attr("global_symbol", "open"), "done": done})
    kernels = tw.compile(module)
    assert {name: kernel.schedule for name, kernel in kernels.items()} == {"open": "by rules", "done": "as written"}


def test_what_somebody_has_scheduled_stays_as_it_is():
    sch = tw.Schedule(product(16, 32, 8))
    sch.parallel(sch.get_loops("C")[1])
    as_is = tw.compile(sch).inspect("tir")
    assert tw.compile(sch, schedule="by rules").inspect("tir") == as_is


def test_every_function_of_a_module_is_scheduled():
    module = tw.ir.Module(
        {
            "f": product(33, 20, 9).with_attr("global_symbol", "f"),
            "g": elementwise(50, 60).with_attr("global_symbol", "g"),
        }
    )
    kernels = tw.compile(module, schedule="by rules")
    x = np.arange(3000, dtype="float32").reshape(50, 60)
    np.testing.assert_array_equal(kernels.g(x, x), (x + x) * x)
    a, b = np.ones((1, 33, 9), "float32"), np.ones((1, 9, 20), "float32")
    np.testing.assert_array_equal(kernels.f(a, b), a @ b)
    assert {kernel.schedule for kernel in kernels.values()} == {"by rules"}


def test_unknown_schedule():
    with pytest.raises(tw.ArgumentError, match="'as written' and 'by rules'"):
        tw.compile(product(4, 4, 4), schedule="fast")
