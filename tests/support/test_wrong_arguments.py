"""Whoever passes wrong arguments sees an error that says what was passed and what is taken, never the binding's own."""

from __future__ import annotations

import inspect
import re
import traceback
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

import tilewright as tw
from tilewright import _core, arith, ir, schedule, script, search, te, testing, timing
from tilewright import meta_schedule as ms
from tilewright.kernel import kernel
from tilewright.script import ir as I
from tilewright.script import ir_builder
from tilewright.script import tir as T
from tilewright.support import machine
from tilewright.support.user_lines import place_of
from tilewright.support.wrong_arguments import explained, fits, parse_signatures

MODULES = [tw, _core, arith, ir, kernel, machine, schedule, script, search, te, testing, timing, I, T, ir_builder]
MODULES += [ir_builder.tir, ir_builder.ir, _core._script]

#: These run for long, wait, end the process or change all of it, whatever they are called with.
LEFT_OUT = {
    *("flush_caches", "measure_roofs", "roofs", "main", "set_num_threads", "compare", "time_interleaved"),
    "set_format_templates",  # what it takes is called for every format from then on
}


class Stranger:
    """What nothing takes."""


STRANGER = Stranger()
CALLS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((), {}),
    ((STRANGER,), {}),
    ((STRANGER, STRANGER), {}),
    ((STRANGER, STRANGER, STRANGER), {}),
    ((None,), {}),
    ((3,), {}),
    (("text",), {}),
    (("text", STRANGER), {}),
    ((3.5, "text"), {}),
    (([STRANGER],), {}),
    (({STRANGER: STRANGER},), {}),
    ((int,), {}),
    ((int, 0, "global"), {}),
    ((1.5, int), {}),
    ((5, 1), {}),
    ((np.zeros(3),), {}),
    ((1, 2, 3, 4, 5, 6, 7, 8, 9), {}),
    ((), {"no_such_parameter": 1}),
]


@T.prim_func
def program(A: T.Buffer((8, 8), "float32"), n: T.int32):
    for i, j in T.grid(8, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi, vj] = A[vi, vj] + T.Cast("float32", n)


def functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    seen: set[int] = set()
    for module in MODULES:
        for name in sorted(dir(module)):
            item = getattr(module, name)
            if name.startswith("_") or name in LEFT_OUT or isinstance(item, types.ModuleType) or id(item) in seen:
                continue
            if callable(item):
                seen.add(id(item))
                yield f"{module.__name__}.{name}", item


def objects() -> dict[str, Any]:
    """One object of each kind that users get hold of."""
    sch = tw.Schedule(program)
    block = sch.get_block("B")
    loop = sch.get_loops(block)[0]
    sch.split(loop, [2, 4])
    store = program.body
    axis = te.reduce_axis((0, 8), name="k")
    a = te.placeholder((8,), name="a")
    compiled = tw.compile(program)
    made = {
        "Schedule": tw.Schedule(program),
        "Trace": sch.trace,
        "ScheduleState": sch.state,
        "Block": sch.get(block),
        "For": store.block.body if hasattr(store, "block") else store,
        "PrimFunc": program,
        "Module": sch.mod,
        "Buffer": next(iter(program.buffer_map.values())),
        "Var": ir.Var("x", "int32"),
        "Expr": ir.Var("x", "int32") + 1,
        "IntImm": ir.const(3, "int32"),
        "IterVar": axis,
        "Tensor": a,
        "Kernel": compiled,
        "Target": tw.Target("native"),
        "Analyzer": arith.Analyzer(),
        "Space": tw.space(program)(lambda sch: None),
    }
    return made


def methods() -> Iterator[tuple[str, Callable[..., Any]]]:
    for kind, item in objects().items():
        for name in sorted(dir(item)):
            if name.startswith("_") or name in LEFT_OUT | {"show"}:
                continue
            method = inspect.getattr_static(type(item), name, None)
            if method is not None and callable(getattr(item, name)):
                yield f"{kind}.{name}", getattr(item, name)


#: What Python itself says of a call, of an operator of strangers, and of a class that is not for making objects.
OF_PYTHON = re.compile(
    r"missing \d+ required|positional argument|unexpected keyword|multiple values|keyword-only|takes no arguments|"
    r"unsupported operand|can't multiply|can only concatenate|no constructor defined|takes no keyword|are made by"
)
#: Functions that users call inside of scripts, where every error becomes one about their line.
OF_SCRIPTS = ("script", "ir_builder")
#: They call what they are given.
CALL_BACK = {"visit", "rewrite", "pre_order_visit", "post_order_visit"}


def stumbled(error: Exception) -> bool:
    """Whether Python stumbled over an argument, where nobody had looked at it."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return not OF_PYTHON.search(str(error)) and not (last.line or "").startswith("raise ")


def is_public(name: str, item: Any) -> bool:
    """Whether it is a name of ours that is for users, and takes what they have."""
    module, _, own = name.rpartition(".")
    if module[:1].isupper():  # a method
        return own not in CALL_BACK
    module = module.removeprefix("tilewright").lstrip(".")
    is_ours = getattr(item, "__module__", "").startswith("tilewright")
    return is_ours and not module.startswith(("_core", "kernel", *OF_SCRIPTS)) and own not in CALL_BACK


def complaint(name: str, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """What is wrong with how the call fails, "" if nothing is."""
    try:
        call(*args, **kwargs)
    except tw.InternalError as error:
        return f"a defect: {error}"
    except tw.Error as error:
        text = str(error)
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        if isinstance(error, (TypeError, AttributeError)) and stumbled(error) and is_public(name, call):
            return text
        if (
            "bad_cast" in text
            or "bad cast" in text
            or isinstance(error, (SystemError, UnboundLocalError, AssertionError))
        ):
            return text
    else:
        return ""
    raw = ("incompatible function arguments", "Invoked with types", "nanobind")
    return text if any(word in text for word in raw) else ""


@pytest.mark.parametrize("collect", [functions, methods])
@pytest.mark.usefixtures("capsys")
def test_no_error_of_the_binding_reaches_users(
    collect: Callable[[], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # some of them write files
    found = []
    count = 0
    for name, call in collect():
        for args, kwargs in CALLS:
            count += 1
            problem = complaint(name, call, args, kwargs)
            if problem:
                found.append(f"{name}{args}{kwargs}: {problem[:300]}")
    assert not found, "\n".join(found)
    assert count > 1000


@pytest.mark.parametrize(
    ("call", "code", "text"),
    [
        (lambda: ir.Var(3), "arguments/types", "Var cannot take (int)"),
        (lambda: ir.structural_equal(program, program, map=True), "arguments/keyword", "has no parameter 'map'"),
        (lambda: ir.Var("x", "foat32"), "arguments/dtype", "did you mean 'float32'"),
        (lambda: tw.Schedule(program, 3), "arguments/types", "it takes (program: Node | None, *, seed"),
        (lambda: tw.Target(3, 4), "arguments/types", "Target cannot take (int, int)"),
        (lambda: ir.decl_buffer([None], "float32"), "arguments/types", "decl_buffer cannot take (list, str)"),
        (lambda: schedule.Trace(["x"]), "schedule/argument", "a trace holds instructions, not a 'str'"),
        (lambda: ms.Workload(5), "arguments/kind", "mod is 5; it is the program"),
        (lambda: ms.MemoryDatabase().get_top_k(5, 1), "arguments/types", "get_top_k cannot take (int, int)"),
        (lambda: ms.TuneContext(tw.compile(program)), "arguments/types", "TuneContext cannot take (Kernel)"),
        (lambda: testing.check_same("x", "y"), "arguments/types", "it takes (got, want, *, map_free_vars=False)"),
        (lambda: tw.Schedule(program).cache_read(int, 0, "global"), "schedule/argument", "not a 'type'"),
        (lambda: (s := tw.Schedule(program)).split(s.get_loops("B")[0], 16), "schedule/argument", "factors=[None, 16]"),
        (lambda: (s := tw.Schedule(program)).blockize(s.get_loops("B")), "schedule/argument", "not a list of loops"),
    ],
)
def test_what_is_said(call: Callable[[], Any], code: str, text: str) -> None:
    with pytest.raises(tw.ArgumentError) as caught:
        call()
    assert caught.value.code == code
    assert text in str(caught.value)
    assert isinstance(caught.value, TypeError)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: tw.tune(program, trails=8), "tune has no parameter 'trails'\n  hint: did you mean 'trials'"),
        (lambda: tw.compile(program, tarqet="native"), "did you mean 'target'"),
        (lambda: tw.lower(program, afer="x"), "did you mean 'after'"),
        (lambda: tw.space(program, nmae="x"), "did you mean 'name'"),
        (lambda: ms.tune_tir(program, "native", "out", 8, max_trial_per_task=3), "did you mean 'max_trials_per_task'"),
        (lambda: ms.tune_tasks(taks=[]), "did you mean 'tasks'"),
        (lambda: ms.compile_tir(None, program, tarqet="native"), "did you mean 'target'"),
        (lambda: ms.Database.create("sqlite", pth="x"), "SQLiteDatabase has no parameter 'pth'"),
        (lambda: ms.JSONDatabase(path_worklod="x"), "did you mean 'path_workload'"),
        (lambda: ms.MemoryDatabase(foo=1), "it takes module_equality"),
        (lambda: ms.ScheduleFnDatabase(schedule_func=1), "did you mean 'schedule_fn'"),
        (lambda: ms.PostgresDatabase(sever="x"), "did you mean 'server'"),
        (lambda: ms.LocalRunner(timeout=1), "did you mean 'timeout_sec'"),
        (lambda: ms.LocalBuilder(max_worker=1), "did you mean 'max_workers'"),
        (lambda: ms.tir_integration.tune_tir_round_robin(program, trials=1), "tune_tir has no parameter 'trials'"),
        (lambda: tw.tune(program, program), "positional argument but 2 were given\n  hint: it takes (program, *,"),
        (lambda: tw.compile(), "missing 1 required positional argument: 'program'"),
    ],
)
def test_an_option_that_is_spelt_wrong(call: Callable[[], Any], said: str) -> None:
    with pytest.raises(TypeError) as caught:
        call()
    assert isinstance(caught.value, tw.ArgumentError)
    assert said in str(caught.value)
    assert f"{__file__}:{call.__code__.co_firstlineno}:" in place_of(caught.value)


def test_warnings_name_the_line_of_the_call(tmp_path: Path) -> None:
    cores = tw.Target("native").num_cores
    line = inspect.currentframe().f_lineno + 2  # type: ignore[union-attr]
    with pytest.warns(tw.PerformanceWarning, match="threads share") as caught:
        tw.tune(program, trials=1, threads=cores + 1, sizes={"n": 1}, progress=None)
    assert [(warning.filename, warning.lineno) for warning in caught] == [(__file__, line)]


def test_what_fails_inside_of_a_call_is_not_taken_for_a_wrong_call() -> None:
    class Raising(ms.MemoryDatabase):
        def commit_workload(self, mod: Any) -> Any:
            return len(mod=1)  # type: ignore[call-arg]

    with pytest.raises(TypeError, match="len") as caught:
        tw.tune(program, database=Raising(), trials=1, sizes={"n": 1}, progress=None)
    assert not isinstance(caught.value, tw.Error)


def test_what_fails_in_the_code_of_the_user_stays_as_it_is() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        te.compute((4,), lambda i: i.nothing)


@pytest.mark.parametrize("use", [tw.compile, tw.lower, tw.Schedule])
def test_python_functions_are_no_programs(use: Callable[[object], object]) -> None:
    def plain(A: object) -> None:
        pass

    with pytest.raises((tw.ArgumentError, TypeError), match=r"@T\.prim_func above"):
        use(plain)


@pytest.mark.parametrize(
    ("value", "hint", "expected"),
    [
        (3, int, True),
        (np.int32(3), int, True),
        (int, int, False),
        (3, float, True),
        ("3", float, False),
        (None, int | None, True),
        ("tir", Literal["tir", "asm"], True),
        ("llvm", Literal["tir", "asm"], False),
        ([1, 2], Sequence[int], True),
        ([1, "2"], Sequence[int], False),
        (np.zeros(3), Sequence[int], False),
        ({"a": [1]}, Mapping[str, Sequence[int]], True),
        ({1: [1]}, Mapping[str, Sequence[int]], False),
        ((1, "a"), tuple[int, str], True),
        ((1, 2), tuple[int, str], False),
        ((1, 2, 3), tuple[int, ...], True),
        (len, Callable[..., Any], True),
        (3, Callable[..., Any], False),
        (object(), Any, True),
    ],
)
def test_types_as_annotations_say_them(value: Any, hint: Any, expected: bool) -> None:
    assert fits(value, hint) is expected


def test_only_an_argument_of_another_type_makes_a_wrong_call() -> None:
    @explained
    def shares(counts: Sequence[int], whole: float) -> list[float]:
        return [count / whole for count in counts]

    with pytest.raises(ZeroDivisionError):
        shares([1], 0)
    with pytest.raises(
        tw.ArgumentError,
        match=r"shares cannot take \(list, int\).*unsupported operand",
    ):
        shares(["1"], 2)

    @explained
    def item(table: Mapping[str, int], key: str) -> int:
        return table[key]

    with pytest.raises(KeyError) as caught:
        item({}, "a")
    assert not isinstance(caught.value, tw.Error)


def test_signatures_are_read_from_what_the_binding_says() -> None:
    text = (
        "records(): incompatible function arguments. The following argument types are supported:\n"
        "    1. records(self, hash: str, target: str) -> list[tilewright._core.Record]\n"
        "    2. records(self) -> None\n\n"
        "Invoked with types: tilewright._core.Database, int"
    )
    assert parse_signatures(text) == ("records", ["(hash: str, target: str)", "()"], True)
    static = "open(): ...\n    1. open(path: str, mode: tilewright._core.Mode = 0) -> tilewright._core.Database\n"
    assert parse_signatures(static) == ("open", ["(path: str, mode: Mode = 0)"], False)
