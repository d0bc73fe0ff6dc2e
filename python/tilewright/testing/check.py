"""Checks of transformations: the result is the one expected, and it computes the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tilewright import _core, ir, script
from tilewright.errors import ScheduleError
from tilewright.schedule import Schedule, Trace
from tilewright.support.numpy_dtype import numpy_dtype
from tilewright.support.wrong_arguments import explained
from tilewright.task.declared_values import declared_arrays

Program = ir.PrimFunc | ir.Module


def as_module(program: Program) -> ir.Module:
    """Return a function as the module that a schedule makes of it; a module unchanged."""
    return Schedule(program, seed=0).mod if isinstance(program, ir.PrimFunc) else program


def without_symbols(program: Program) -> ir.Module:
    """Return functions without the names that they are exported under: names that a test gives its programs do not
    matter."""
    module = as_module(program)
    functions = {}
    for name, func in module.functions.items():
        if isinstance(func, ir.PrimFunc):
            attrs = {key: value for key, value in func.attrs.items() if key != "global_symbol"}
            func = ir.PrimFunc(func.params, func.buffer_map, func.ret_type, attrs, func.body, func.axes)
        functions[name] = func
    return ir.Module(functions, module.attrs)


@explained
def check_same(got: Program, want: Program, *, map_free_vars: bool = False) -> None:
    """Assert that two programs are equal but for the names of variables, buffers, blocks and functions.

    Args:
        got: a program.
        want: what it should be.
        map_free_vars: whether free variables match by their first occurrence instead of by identity.

    Raises:
        AssertionError: the programs differ; the message shows where, as a diff of the scripts.
    """
    left, right = without_symbols(got), without_symbols(want)
    if not ir.structural_equal(left, right, map_free_vars):
        raise AssertionError(f"the programs differ (- wanted, + got):\n{_core.script_diff(right, left)}")


def _sizes_of(func: ir.PrimFunc) -> list[ir.Var]:
    """Return the variables that the shapes of the parameters define."""
    extents = [extent for param in func.params for extent in func.buffer_map[param].shape]
    return list(dict.fromkeys(extent for extent in extents if isinstance(extent, ir.Var)))


@explained
def random_arguments(func: ir.PrimFunc, seed: int, sizes: dict[str, int] | None = None) -> list[np.ndarray]:
    """Return arrays for the parameters, filled with integers from -4 to 4, so that sums of products are exact in any
    order. If the function declares the domain of a buffer, its values are in that domain.

    Args:
        func: a function whose parameters are buffers.
        seed: seed of the numbers.
        sizes: values for symbolic sizes, by name; others are 7.
    """
    random = np.random.default_rng(seed)
    analyzer = _core.Analyzer()
    for size in _sizes_of(func):
        analyzer.bind(size, ir.IntImm(size.dtype, (sizes or {}).get(size.name_hint, 7)))
    shapes: dict[int, list[int]] = {}
    for position, param in enumerate(func.params):
        extents = [analyzer.simplify(extent) for extent in func.buffer_map[param].shape]
        shapes[position] = [extent.value if isinstance(extent, ir.IntImm) else 7 for extent in extents]
    declared = declared_arrays(func, shapes, {}, np.random.default_rng(seed))
    arrays = []
    for position, param in enumerate(func.params):
        buffer = func.buffer_map[param]
        numbers = random.integers(-4, 5, size=shapes[position])
        if position in declared:
            arrays.append(declared[position])
            continue
        if buffer.dtype.startswith("uint") or buffer.dtype == "bool":
            numbers = abs(numbers)
        arrays.append(np.asarray(numbers).astype(numpy_dtype(buffer.dtype)))
    return arrays


@explained
def run_in_interpreter(program: Program, seed: int = 0, name: str | None = None) -> list[np.ndarray]:
    """Run the program's function on random_arguments(), and return all arguments."""
    module = as_module(program)
    if name is None:
        name = "main" if "main" in module.functions else next(iter(module.functions))
    function = module.functions[name]
    assert isinstance(function, ir.PrimFunc)
    arrays = random_arguments(function, seed)
    _core.interpret(module, name, *arrays, timeout=60.0)
    return arrays


@explained
def check_equivalent(before: Program, after: Program, seeds: tuple[int, ...] = (0, 1)) -> None:
    """Assert that two programs leave the same numbers in all their arguments."""
    for seed in seeds:
        for position, (want, got) in enumerate(
            zip(run_in_interpreter(before, seed), run_in_interpreter(after, seed), strict=True)
        ):
            np.testing.assert_array_equal(
                got, want, err_msg=f"argument {position} differs after:\n{as_module(after).script()}"
            )


@explained
def check_trace(sch: Schedule, before: Program, formats: Sequence[str] = ("json", "python")) -> Schedule:
    """Assert that the trace of a schedule replays from its texts to the same program and the same trace.

    Args:
        sch: a schedule of `before`.
        before: the original program.
        formats: the texts: "json", "python".

    Returns:
        The schedule that was made by the last replay.
    """
    replayed = sch
    for text in formats:
        replayed = Schedule(before, seed=1)
        if text == "json":
            Trace.from_json(sch.trace.as_json()).apply_to_schedule(replayed)
        elif text == "python":
            exec("\n".join(sch.trace.as_python()), {"sch": replayed})
        else:
            raise ValueError(f"{text!r} is not the text of a trace: it is 'json' or 'python'")
        check_same(replayed.mod, sch.mod)
        if replayed.trace.as_python() != sch.trace.as_python():
            raise AssertionError(f"the trace changed on its way through {text}")
    return replayed


@explained
def check_schedule(sch: Schedule, before: Program) -> None:
    """Assert all that must hold of any schedule of `before`.

    The program prints and parses back to itself; the trace replays to it, from JSON and from Python text alike; it
    computes what `before` computes.
    """
    module = sch.mod
    text = module.script(show_meta=True)
    parsed = script.from_source(text)
    if not ir.structural_equal(parsed, module):
        raise AssertionError(f"print and parse changed the program:\n{_core.script_diff(module, parsed)}")
    if not ir.structural_equal(ir.load_json(ir.save_json(module)), module):
        raise AssertionError("the program does not survive JSON")
    check_trace(sch, before)
    check_equivalent(before, module)


def check(before: Program, transform: Callable[[Schedule], object], after: Program | None = None) -> Schedule:
    """Assert that a transformation gives the program `after`, and all that must hold of any schedule.

    Args:
        before: the original program.
        transform: what to do with its schedule.
        after: the expected program; None to check only what must always hold.

    Returns:
        The schedule, for further assertions.
    """
    sch = Schedule(before, seed=0)
    transform(sch)
    if after is not None:
        check_same(sch.mod, after)
    check_schedule(sch, before)
    return sch


def check_refused(before: Program, transform: Callable[[Schedule], object], code: str) -> ScheduleError:
    """Assert that a transformation is refused by the rule `code` and leaves the schedule as it was.

    Returns:
        The error, for assertions about its message.
    """
    sch = Schedule(before, seed=0)
    try:
        transform(sch)
    except ScheduleError as error:
        if error.code != code:
            raise AssertionError(f"refused by {error.code} instead of {code}: {error}") from error
        # What was recorded before the refusal still gives the program that is there now.
        replayed = Schedule(before, seed=0)
        sch.trace.apply_to_schedule(replayed)
        check_same(replayed.mod, sch.mod)
        return error
    raise AssertionError(f"not refused; {code} was expected:\n{sch.mod.script()}")
