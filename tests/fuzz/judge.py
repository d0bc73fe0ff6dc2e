"""What must hold of a program and of each of its schedules.

The reference interpreter says what the program means. A program that it rejects, or that does not verify, is no case:
its schedules are not looked at. Of all others

- the program prints and parses back to itself, and survives JSON;
- a refused step changes nothing, and is refused with a ScheduleError;
- the scheduled program verifies and is accepted by the interpreter, which finds the same numbers, bit by bit;
- so is what its trace gives when it is done again, from JSON and from the text in Python;
- so does the kernel, which writes nothing outside of its arguments; so does the program after each pass of lowering;
- so does the kernel of the schedule that heuristics make of the program, which must not fail.

What violates this is a Finding. An error that says that something cannot be compiled is none; it is counted.
"""

from __future__ import annotations

import itertools
import os
import random
import re
import traceback
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

import tilewright as tw
from fuzz import arguments, names, programs, steps
from fuzz.arguments import Arguments
from fuzz.steps import IMPOSSIBLE
from tilewright import _core, ir, script
from tilewright.testing.check import as_module, check_trace

# A heuristic that fails is a finding.
os.environ.setdefault("TILEWRIGHT_RAISE_HEURISTIC_FAILURES", "1")

#: Seconds after which the interpreter gives up: children that hang are noticed before, others may have to wait.
PATIENCE = 300.0
#: How many of the kernels of schedules are compiled without LLVM's optimization, which takes most of the time.
QUICK = 0.7


class Finding(Exception):
    """Something that must not be. `kind` says what, so that a smaller case can be recognized as the same."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(f"{kind}: {detail}")
        self.kind, self.detail = kind, detail


class NoCase(Exception):
    """The program is not well defined, so it says nothing about schedules. The argument is the code."""


@dataclass
class Case:
    """A program with its arguments, and the steps that were accepted."""

    text: str
    special: bool = False
    sizes: list[dict[str, int]] = field(default_factory=lambda: [{}])
    seed: int = 0
    steps: list[steps.Step] = field(default_factory=list)
    with_kernel: bool = True


def guarded(what: str, action: Callable[[], Any], counts: Counter[str] | None = None) -> Any:
    """What the action gives; its errors as findings, but for refusals where `counts` takes them."""
    try:
        return action()
    except Finding:
        raise
    except tw.InternalError as error:
        # Which pass broke which rule says more than that one did.
        place = re.findall(r"pass (\w+)|\[(verify/\w+)\]", str(error))
        parts = [what + ":", "InternalError", error.code, *(part for pair in place for part in pair if part)]
        raise Finding(" ".join(parts), str(error)) from error
    except tw.Error as error:
        if counts is None or is_defect(what, error.code):
            raise Finding(f"{what}: {error.code}", str(error)) from error
        counts[f"{what}: {error.code}"] += 1
        return None
    except AssertionError as error:
        raise Finding(what, str(error)) from error
    except Exception as error:
        raise Finding(f"{what}: {type(error).__name__}", traceback.format_exc()) from error


def is_defect(what: str, code: str) -> bool:
    """Whether the compiler must not say this of a program that the interpreter has accepted.

    Its loops have no races, and what passes make of it can be put together.
    """
    return what.endswith(("build", "lower")) and (code == "lower/race" or code.startswith("ir/"))


class Judge:
    """Compares schedules of one program with it."""

    def __init__(self, case: Case, counts: Counter[str] | None = None) -> None:
        self.counts: Counter[str] = Counter() if counts is None else counts
        self.case = case
        self.names: list[str] = []

        def parse() -> ir.PrimFunc:
            func = script.from_source(case.text)
            assert isinstance(func, ir.PrimFunc)
            ir.verify(func)
            return func

        try:
            self.func = guarded("parse", parse, counter := Counter())
        except Finding as finding:
            if finding.kind == "parse":
                raise NoCase("no function") from finding
            raise
        if counter:
            raise NoCase(next(iter(counter)))
        if any(param not in self.func.buffer_map for param in self.func.params):
            raise NoCase("a parameter that is no buffer")
        self.func = names.shared(self.func, case.seed)
        self.module = as_module(self.func)
        self.names = steps.block_names(self.module)
        self.sizes: list[dict[str, int]] = []
        self.arguments: list[Arguments] = []
        self.expected: list[list[Any]] = []
        for sizes in case.sizes:
            given = arguments.draw(self.func, sizes, case.special, case.seed)
            found = guarded("interpret", lambda given=given: self.interpreted(self.module, given), counter)
            if found is None:
                continue  # of other sizes it may be well defined
            self.sizes.append(sizes)
            self.arguments.append(given)
            self.expected.append(found.arrays)
        if not self.sizes:
            raise NoCase(next(iter(counter)))

    def interpreted(self, module: ir.Module, given: Arguments, is_lowered: bool = False) -> Arguments:
        # Lowered programs fill registers lane by lane, which reads lanes that nothing has written yet.
        result = given.copy()
        of_lowered = {"check_uninitialized": False, "lanes_in_step": True} if is_lowered else {}
        _core.interpret(module, "main", *result.arrays, timeout=PATIENCE, **of_lowered)
        return result

    # ---- what must hold

    def texts(self, module: ir.Module) -> None:
        """Printing and parsing, JSON."""
        text = guarded("print", lambda: module.script(show_meta=True))
        parsed = guarded("parse the print", lambda: script.from_source(text))
        if not ir.structural_equal(parsed, module):
            raise Finding("print and parse", f"the program changed:\n{_core.script_diff(module, parsed)}")
        if not ir.structural_equal(guarded("JSON", lambda: ir.load_json(ir.save_json(module))), module):
            raise Finding("JSON", "the program changed")

    def meaning(self, module: ir.Module, what: str, is_lowered: bool = False) -> None:
        """The interpreter finds the same numbers."""
        for given, expected, sizes in zip(self.arguments, self.expected, self.sizes, strict=True):
            result = guarded(what, lambda given=given: self.interpreted(module, given, is_lowered))
            if difference := arguments.difference(result.arrays, expected):
                raise Finding(what, f"{sizes or ''} {difference}")

    def kernel(self, module: ir.Module, what: str, quick: bool = False, **how: str) -> tw.Kernel | None:
        """The kernel as it is delivered computes the same, and stays inside of its arguments.

        Loops of threads are refused: None.

        Args:
            module: the program.
            what: the kind of a finding.
            quick: lowered as it is delivered, and then compiled without LLVM's optimization, in a third of the time.
            how: how it is scheduled, as written by default.
        """
        how = how or {"schedule": "as written"}
        build = (lambda: quick_kernel(module)) if quick else (lambda: tw.compile(module, **how))
        kernel: tw.Kernel | None = guarded(f"{what}, build", build, self.counts)
        if kernel is None:
            return None
        self.counts["kernels"] += 1
        for given, expected, sizes in zip(self.arguments, self.expected, self.sizes, strict=True):
            result = given.copy()
            guarded(f"{what}, call", lambda result=result: kernel(*result.arrays))
            if (position := result.damaged()) is not None:
                raise Finding(f"{what}, guards", f"{sizes or ''} the kernel wrote outside of argument {position}")
            if difference := arguments.difference(result.arrays, expected):
                raise Finding(what, f"{sizes or ''} {difference}")
        self.in_place(kernel, self.arguments[0])
        return kernel

    def calls(self, kernel: tw.Kernel) -> None:
        """Calls by name, such that leave out what is only written, and what a search checks the kernel with."""
        outputs, called = names.outputs_of(self.func), names.names_of(self.func)
        for given, expected in zip(self.arguments, self.expected, strict=True):
            result = given.copy()
            if wrong := guarded("call by name", lambda result=result: names.by_keywords(kernel, called, result.arrays)):
                raise Finding("call by name", wrong)
            if difference := arguments.difference(result.arrays, expected):
                raise Finding("call by name", difference)
            if not outputs:
                continue
            clean = given.copy()
            for position in outputs:
                clean.arrays[position][...] = names.zeros_for(self.func, position)
            want = guarded("interpret zeros", lambda clean=clean: self.interpreted(self.module, clean), Counter())
            if want is None:
                continue
            left = given.copy()
            got = guarded("call without outputs", lambda left=left: names.without(kernel, left.arrays, outputs))
            for position, array in zip(outputs, got, strict=True):
                left.arrays[position] = array
            if difference := arguments.difference(left.arrays, want.arrays):
                raise Finding("call without outputs", difference)
            if self.case.seed % 4 == 0 and not self.case.special:
                guarded("judge", lambda left=left: names.judged(self.func, left.arrays, kernel), self.counts)

    def in_place(self, kernel: tw.Kernel, given: Arguments) -> None:
        """A call with one array for two parameters is refused, or computes what it does with a copy of the array."""
        layouts = [(array.shape, array.dtype, array.strides) for array in given.arrays]
        for source, target in itertools.combinations(range(len(layouts)), 2):
            if layouts[source] != layouts[target] or not given.arrays[source].size:
                continue
            apart, together = given.copy(), given.copy()
            apart.arrays[target][...] = apart.arrays[source]
            run = lambda apart=apart: self.interpreted(self.module, apart)  # noqa: E731
            want = guarded("interpret in place", run, Counter())
            if want is None:
                continue
            got = guarded(
                "call in place", lambda at=(source, target), t=together: names.in_place(kernel, t.arrays, *at)
            )
            self.counts[f"in place: {'refused' if got is None else 'accepted'}"] += 1
            if got is None:
                continue
            changed = source if arguments.difference([want.arrays[source]], [apart.arrays[source]]) else target
            if difference := arguments.difference([got[target]], [want.arrays[changed]]):
                raise Finding("call in place", f"arguments {source} and {target} as one: {difference}")

    def passes(self, module: ir.Module, name: str) -> None:
        """The program after a pass of lowering computes the same."""
        lowered = guarded("lower", lambda: tw.lower(module, after=name), self.counts)
        if lowered is not None:
            self.meaning(lowered, f"after {name}", is_lowered=True)

    def formulas(self) -> None:
        """A program that is built from formulas, as it was drawn, computes what NumPy does."""
        made = programs.formulas_of(self.case.seed)
        if made is None or made.text() != self.case.text:
            return
        for given, expected in zip(self.arguments, self.expected, strict=True):
            want = [*given.arrays[:-1], made.expected(given.arrays)]
            if difference := arguments.difference(expected, want):
                raise Finding("formulas", f"by NumPy: {difference}")

    def evaluated(self) -> None:
        """A program that says itself what it computes, as it was drawn, computes that."""
        made = programs.evaluated_of(self.case.seed)
        if made is None or made.text() != self.case.text:
            return
        for given, expected in zip(self.arguments, self.expected, strict=True):
            if difference := arguments.difference(expected, made.expected(given.arrays)):
                raise Finding("evaluated", f"element by element: {difference}")

    def original(self) -> None:
        """All of it for the program as it was written."""
        self.formulas()
        self.evaluated()
        self.texts(self.module)
        if self.case.with_kernel and not has_threads(self.module):
            kernel = self.kernel(self.module, "original kernel")
            if kernel is not None:
                self.calls(kernel)
            self.by_rules()

    def by_rules(self) -> None:
        """A schedule that heuristics make comes about, and computes the same: of every program, half of them by way of
        the estimate that may prefer the program as written."""
        how = {"target": "native"} if self.case.seed % 2 == 0 else {"schedule": "by rules"}
        if self.case.special:
            # By rules terms that are zero are left out, also of infinities: only that it comes about is asked.
            guarded("kernel by rules, build", lambda: tw.compile(self.module, **how), self.counts)
        else:
            self.kernel(self.module, "kernel by rules", **how)

    def verified(self, schedule: tw.Schedule) -> None:
        """A schedule finds no fault with itself: it only may say that it cannot tell."""
        first = self.arguments[0].arrays
        given = {at: array for at, array in enumerate(first) if array.dtype.kind in "iub"}
        if any(not isinstance(extent, ir.IntImm) for b in self.func.buffer_map.values() for extent in b.shape):
            return
        try:
            guarded("sch.verify", lambda: schedule.verify(given, seconds=5.0), self.counts)
        except Finding as finding:
            raise Finding("sch.verify", finding.detail) from finding

    def scheduled(
        self,
        done: steps.Scheduling,
        *,
        texts: bool,
        kernel: bool,
        after: str | None,
        verified: bool = False,
        quick: bool = False,
    ) -> None:
        """All of it for a schedule."""
        module = done.sch.mod
        guarded("verify", lambda: ir.verify(module))
        self.meaning(module, "scheduled")
        if verified:
            self.verified(done.sch)
        if texts:
            self.texts(module)
            guarded("trace", lambda: check_trace(done.sch, self.func))
        if kernel:
            self.kernel(module, "kernel", quick)
        if after is not None and not has_threads(module):
            self.passes(module, after)

    def sequence(
        self, seed: int, tell: Callable[[list[steps.Step]], None] | None = None, without: Collection[str] = ()
    ) -> steps.Scheduling:
        """A random sequence of 1 to 15 steps, and what must hold of its result.

        Args:
            seed: of the sequence.
            tell: called with all steps so far, whenever one has chosen something.
            without: steps that are not drawn.

        Raises:
            Finding: the case has the steps.
        """
        rng = random.Random(seed)
        done = steps.Scheduling(self.func, self.names, seed % 2**31)
        if tell is not None:
            done.dice.tell = lambda step: tell([*done.done, step])
        try:
            for _ in range(rng.randint(1, 15)):
                name, code = guarded("step", lambda: done.draw(rng, without))
                if code != IMPOSSIBLE:
                    self.counts[f"{name} {'refused' if code else 'accepted'}"] += 1
                    self.counts[f"refused by {code}"] += bool(code)
            if not done.done:
                return done  # nothing but refusals: original() has judged this program
            texts, kernel, lower = rng.random() < 0.3, rng.random() < 0.25, rng.random() < 0.06
            after = rng.choice(PASSES) if lower else None
            verified, quick = rng.random() < 0.1, rng.random() < QUICK
            self.scheduled(done, texts=texts, kernel=kernel, after=after, verified=verified, quick=quick)
        except Finding as finding:
            # The step that ended it is not among those that were done.
            last = [done.dice.step] if finding.kind.startswith("step") else []
            self.case.steps = done.done + last
            raise
        return done

    def again(self) -> steps.Scheduling:
        """The steps of the case, and all that must hold of their result."""
        done = steps.Scheduling(self.func, self.names, 1)
        for step in self.case.steps:
            guarded("step", lambda step=step: done.again(step))
        self.scheduled(done, texts=True, kernel=self.case.with_kernel, after=None)
        if self.case.with_kernel:
            self.kernel(done.sch.mod, "kernel", quick=True)
        if self.case.with_kernel and not has_threads(done.sch.mod):
            for name in PASSES:
                self.passes(done.sch.mod, name)
        return done


def quick_kernel(module: ir.Module) -> Any:
    """The only function of a module, as code that LLVM has not optimized."""
    lowered, _ = _core.lower(module, "native")
    loaded = _core.load_object(_core.compile_object(lowered, quick=True).bytes)
    return loaded.callable(loaded.names[0])


def has_threads(module: ir.Module) -> bool:
    """Whether loops are bound to threads of a GPU, which a CPU has not."""
    return "thread_binding" in module.script()


PASSES = [name for name, _ in _core.list_passes()]
