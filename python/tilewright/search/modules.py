"""Tune the functions of a module: one after another, or all at the same time on a cluster."""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tilewright import ir
from tilewright.errors import ArgumentError, Error
from tilewright.heuristics.unscheduled import is_unscheduled
from tilewright.kernel.kernel import Kernel, KernelModule, compile_functions, kernels_of
from tilewright.search.budget import share_of
from tilewright.support import limits
from tilewright.support.other_names import renamed
from tilewright.support.user_lines import users_level
from tilewright.tables import Table
from tilewright.task.task import by_buffer, check_inputs, names_of, open_sizes_of
from tilewright.timing import format_seconds

if TYPE_CHECKING:
    from tilewright.search.result import TuneResult

#: a search as a generator: its caller does other work between two steps; it returns its result
Steps = Generator[None, None, "TuneResult"]

HAS_A_SCHEDULE = "it has a schedule already"


class ModuleResult(Mapping[str, "TuneResult"]):
    """The results for the functions of a module, by the names of their kernels.

    Attributes:
        module: the original module.
        untuned: reasons why public functions were not tuned, by name.
    """

    def __init__(self, module: ir.Module, results: Mapping[str, TuneResult], untuned: Mapping[str, str]) -> None:
        for name, given in (("results", results), ("untuned", untuned)):
            if not isinstance(given, Mapping):
                raise limits.wrong_kind(name, given, "a mapping from the names of functions")
        self.module, self.untuned = module, dict(untuned)
        self._results = dict(results)

    def __getattr__(self, name: str) -> Any:
        return getattr(self, renamed("tilewright.search.modules.ModuleResult", name))

    def __getitem__(self, name: str) -> TuneResult:
        if name in self.untuned:
            raise KeyError(f"'{name}' was not tuned: {self.untuned[name]}")
        return self._results[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._results)

    def __len__(self) -> int:
        return len(self._results)

    def __repr__(self) -> str:
        return f"<ModuleResult of {', '.join(self._results)}>"

    def table(self) -> Table:
        """Return one row per function: the best time, its ratio to the unscheduled program, and the stop reason.
        ``result[name].table()`` shows more of one function."""
        rows = []
        for name, result in self.items():
            best, speedup = result.times().get("best found"), result.speedup
            cells = ("" if best is None else format_seconds(best), "" if speedup is None else f"{speedup:.2f} x")
            rows.append((name, str(result.progress.trials), *cells, result.stop_reason))
        rows += [(name, "0", "", "", why.partition("\n")[0]) for name, why in self.untuned.items()]
        columns = ("function", "trials", "best found", "speedup", "ended by")
        return Table("functions of the module, each tuned by itself", columns, tuple(rows))

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

    def compile(self) -> Kernel | KernelModule:
        """Compile the module with the best schedule of each function, for the target of the search. Functions without
        one get the heuristic schedule, or keep the schedule that they have. All run on the threads of the search."""
        best = {name: result for name, result in self.items() if result.record is not None}
        if not best:
            raise next(iter(self.values())).without_record()
        scheduled = {name: result.schedule.mod.functions[result.task.function] for name, result in best.items()}
        target = next(iter(best.values())).best_record().target
        traces = {name: result.schedule.trace for name, result in best.items()}
        compiled = compile_functions(self.module, scheduled, traces, target)
        for kernel in kernels_of(compiled):
            kernel.threads = next(iter(best.values())).threads
        return compiled


def public_functions(module: ir.Module) -> dict[str, ir.PrimFunc]:
    """Return the functions that kernels are compiled for, by name.

    Raises:
        tilewright.ArgumentError: two would have the same name.
    """
    functions = [function for function in module.functions.values() if isinstance(function, ir.PrimFunc)]
    found: dict[str, ir.PrimFunc] = {}
    for function in functions:
        if "global_symbol" in function.attrs:
            name = str(function.attrs["global_symbol"])
            if name in found:
                raise ArgumentError.of(
                    "tune/same-name",
                    f"two functions of the module are exported as '{name}'",
                    "give each a global_symbol of its own",
                )
            found[name] = function
    return found


def function_called(module: ir.Module, name: str) -> ir.PrimFunc | ir.Module:
    """Return the program to tune for one function of a module: the module itself if it is its main or only function.

    Raises:
        tilewright.ArgumentError: the function does not exist, or is private.
    """
    limits.kind("function", name, str, "the name of a function of the module, or None for each of them")
    public = public_functions(module)
    functions = [(str(key), f) for key, f in module.functions.items() if isinstance(f, ir.PrimFunc)]
    known = {key: f for key, f in functions if "global_symbol" in f.attrs} | public
    if name not in known:
        raise ArgumentError.of(
            "tune/function", f"the module has no public function called {name}", limits.closest(name, known)
        )
    main = main_of(module)
    return module if main is not None and known[name].same_as(main) else known[name]


def main_of(module: ir.Module) -> Any:
    """Return the entry function of a module: its only one, or the one called "main"; None if there are several without
    a main."""
    functions = {str(key): function for key, function in module.functions.items()}
    return next(iter(functions.values())) if len(functions) == 1 else functions.get("main")


def result_of(steps: Steps) -> TuneResult:
    """Take all steps of a search; return its result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: TuneResult = end.value
            return result


def tune_functions(
    module: ir.Module,
    search: Callable[..., Steps],
    *,
    at_once: bool,
    seconds: float | None,
    inputs: Mapping[str, Any],
    sizes: Mapping[str, float],
) -> ModuleResult:
    """Tune each unscheduled public function.

    Args:
        module: a module with several functions.
        search: function that runs one search; its arguments are the function, `seconds`, `inputs`, `sizes` and
            `among_others`.
        at_once: whether the searches are interleaved step by step; otherwise they run one after another.
        seconds: seconds for all searches.
        inputs: arrays by the names of parameters, for all functions with these parameters.
        sizes: sizes by name, for all functions with these sizes.

    Raises:
        tilewright.ArgumentError: the function does not exist, or no function has a name in `inputs` or `sizes`.
        tilewright.Error: the error of the first search, if all of them fail.
    """
    started = time.monotonic()
    public = public_functions(module)
    chosen = {name: function for name, function in public.items() if is_unscheduled(function)}
    if not chosen:
        raise ArgumentError.of(
            "tune/no-function",
            "each public function of the module has a schedule already"
            if public
            else "the module has no public function",
            'name the one that is to be tuned, with a space for it: tw.tune(module, function="f", space=...)'
            if public
            else 'a public one has the attribute "global_symbol"',
        )
    _check_names(module, inputs, sizes)
    results: dict[str, TuneResult] = {}
    failures: dict[str, Error] = {}
    untuned = {name: HAS_A_SCHEDULE for name in public if name not in chosen}

    def start(name: str, seconds: float | None) -> Steps:
        function = chosen[name]
        known, open_sizes = names_of(function), open_sizes_of(function)
        return search(
            function,
            seconds=seconds,
            inputs={key: value for key, value in by_buffer(function, inputs).items() if key in known},
            sizes={key: value for key, value in sizes.items() if key in open_sizes},
            among_others=len(chosen) if at_once else 0,
        )

    def step(name: str, steps: Steps) -> bool:
        """Advance one search; return whether it continues."""
        try:
            next(steps)
            return True
        except StopIteration as end:
            results[name] = end.value
        except Error as error:
            failures[name], untuned[name] = error, str(error)
        return False

    if at_once:
        with contextlib.ExitStack() as ends:
            running = {name: ends.enter_context(contextlib.closing(start(name, seconds))) for name in chosen}
            while running:
                running = {name: steps for name, steps in running.items() if step(name, steps)}
    else:
        for number, name in enumerate(chosen):
            if results and next(reversed(results.values())).stop_reason == "canceled":
                untuned[name] = "the search was canceled before"
                continue
            steps = start(name, share_of(seconds, time.monotonic() - started, len(chosen), number))
            while step(name, steps):
                pass
    if not results:
        raise next(iter(failures.values()))
    for name, failure in failures.items():
        warnings.warn(f"'{name}' was not tuned: {failure}", stacklevel=users_level())
    return ModuleResult(module, {name: results[name] for name in chosen if name in results}, untuned)


def _check_names(module: ir.Module, inputs: Mapping[str, Any], sizes: Mapping[str, float]) -> None:
    check_inputs(module, by_buffer(module, inputs))
    known = open_sizes_of(module)
    if unknown := [name for name in sizes if name not in known]:
        raise ArgumentError.of(
            "tune/sizes", f"no function of the module has a size called {unknown[0]}", limits.closest(unknown[0], known)
        )
