"""Heuristic schedules for GPUs: each program gets kernels, which compute what NumPy computes, from tiles that threads
share."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.heuristics.cpu.programs import (
    PROGRAMS,
    check_results,
    column_sums,
    elementwise,
    norm,
    open_product,
    product,
    softmax,
    turned_copy,
    vector,
)
from tests.processes import in_process

import families
import tilewright as tw
from tilewright import _core, te
from tilewright.heuristics import by_target, gpu
from tilewright.heuristics.block_info import block_info
from tilewright.heuristics.gpu import limits, shared_tiles
from tilewright.heuristics.gpu.limits import limits_of
from tilewright.heuristics.gpu.shared_tiles import tile_of
from tilewright.script import from_source

TARGET = tw.Target("opencl")
ROOT = Path(__file__).parents[3]


def scheduled(program: Any, target: tw.Target = TARGET) -> tw.ir.Module:
    found = by_target.heuristic_schedules(tw.ir.Module({"main": program}), target)
    assert found.changed and not found.failed
    return found.module


# ---- results on a device -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", families.FAMILIES)
def test_kernels_of_each_operator_family(family):
    kernel = tw.compile(families.program_of(family), target="opencl")
    assert kernel.schedule == "by rules" and not kernel.notes
    arrays = families.arguments_of(family)
    kernel(*arrays)
    families.check_result(family, arrays)


@pytest.mark.parametrize("family", families.FAMILIES)
def test_the_oracle_of_each_family_agrees_with_the_processor(family):
    arrays = families.arguments_of(family)
    tw.compile(families.program_of(family), schedule="as written")(*arrays)
    families.check_result(family, arrays)


#: programs of the tests for CPUs that are no operators of the families
OTHERS = (
    *("one row", "one column", "turned", "long sum", "three columns", "doubles", "halves", "bytes in groups"),
    *("signed bytes with tails", "bfloat16 with tails", "strided, grouped", "with bias and relu", "depthwise, padded"),
    *("transposed, stride 3", "transposed, channels first, even results", "transposed, channels first, three filters"),
    *("columns", "many columns", "maximum of windows", "matrix times vector", "short rows", "copy", "scalar"),
    *("sparse rows", "sparse rows in panels"),
)


@pytest.mark.parametrize("name", OTHERS)
def test_kernels_of_all_kinds_of_programs(name):
    kernel = tw.compile(PROGRAMS[name], target="opencl")
    assert kernel.schedule == "by rules" and not [note for note in kernel.notes if "failed" in note.code]
    check_results(PROGRAMS[name], [kernel])


@pytest.mark.parametrize("name", ["odd product", "softmax", "transposed convolution", "columns", "sparse rows"])
def test_simple_schedules(name):
    schedule = tw.Schedule(PROGRAMS[name])
    gpu.schedule_simply(schedule, TARGET)
    check_results(PROGRAMS[name], [tw.compile(schedule, target="opencl")])


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-3, 4, shape).astype("float32")


N, M = te.var("n"), te.var("m")
OPEN = {
    "product": (open_product(), lambda s: (numbers(s, s + 2), numbers(s + 2, s + 1, seed=1)), np.matmul),
    "open sum": (open_product(20, 40, "k"), lambda s: (numbers(20, s), numbers(s, 40, seed=1)), np.matmul),
    "softmax": (softmax(N, M), lambda s: (numbers(s, s + 3),), families.softmax),
    "elementwise": (elementwise(N, M), lambda s: (numbers(s, s + 1), numbers(s, s + 1)), lambda a, b: (a + b) * a),
    "columns": (column_sums(N, M), lambda s: (numbers(s, s + 3),), lambda x: x.sum(axis=0)),
    "copy": (turned_copy(N, M), lambda s: (numbers(s, s + 3),), lambda x: x.T),
    "matrix times vector": (vector(N, M), lambda s: (numbers(s, s + 4), numbers(s + 4, seed=1)), np.matmul),
}


@pytest.mark.parametrize("name", OPEN)
def test_open_sizes(name):
    program, arguments, expected = OPEN[name]
    kernel = tw.compile(program, target="opencl")
    for size in (1, 5, 33, 70):
        given = arguments(size)
        np.testing.assert_allclose(kernel(*given), expected(*given), rtol=1e-5, err_msg=str(size))


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (norm(300, 301), lambda x: np.sqrt((x * x).sum()).reshape(1)),  # blocks share one sum
        (column_sums(3000, 64), lambda x: x.sum(axis=0)),  # threads share the rows of a column
        (column_sums(70, 37), lambda x: x.sum(axis=0)),  # with a last block of few columns
        (column_sums(20000, 33), lambda x: x.sum(axis=0)),  # blocks share the rows, too
    ],
)
def test_long_reductions_are_shared(program, expected):
    kernel = tw.compile(program, target="opencl")
    assert kernel.inspect("opencl").count("barrier(") > 1
    x = numbers(*(int(extent) for extent in next(iter(program.buffer_map.values())).shape))
    np.testing.assert_allclose(kernel(x), expected(x), rtol=1e-6)


def test_programs_that_no_pattern_knows_run_all_the_same():
    """A recurrence by one thread, rows with two blocks each, an index of the largest element, a block without loops."""
    module = from_source("""
@I.ir_module
class Module:
    @T.prim_func
    def running_sum(A: T.Buffer((50,), "int32"), B: T.Buffer((50,), "int32")):
        T.func_attr({"global_symbol": "running_sum"})
        for i in range(50):
            with T.block("B"):
                v = T.axis.opaque(50, i)
                B[v] = A[v] + T.if_then_else(v > 0, B[v - 1], 0)
    @T.prim_func
    def rows(A: T.Buffer((40, 9), "int32"), B: T.Buffer((40, 9), "int32"), C: T.Buffer((40, 9), "int32")):
        T.func_attr({"global_symbol": "rows"})
        for i in range(40):
            for j in range(9):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj] * 2
            for j in range(9):
                with T.block("C"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi, vj] = B[vi, 8 - vj] + 1
    @T.prim_func
    def largest(A: T.Buffer((3, 70), "int32"), I: T.Buffer((3,), "int32"), V: T.Buffer((3,), "int32")):
        T.func_attr({"global_symbol": "largest"})
        for i, k in T.grid(3, 70):
            with T.block("V"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    I[vi] = -1
                    V[vi] = T.min_value("int32")
                index: T.int32 = T.Select(V[vi] >= A[vi, vk], I[vi], vk)
                value: T.int32 = T.Select(V[vi] >= A[vi, vk], V[vi], A[vi, vk])
                I[vi] = index
                V[vi] = value
    @T.prim_func
    def number(A: T.Buffer((1,), "int32")):
        T.func_attr({"global_symbol": "number"})
        with T.block("A"):
            v = T.axis.spatial(1, 0)
            A[v] = 7
""")
    kernels = tw.compile(module, target="opencl")
    random = np.random.default_rng(0)
    a = random.integers(-9, 9, 50).astype("int32")
    sums = np.zeros(50, "int32")
    kernels["running_sum"](a, sums)
    np.testing.assert_array_equal(sums, np.cumsum(a))
    a = random.integers(-9, 9, (40, 9)).astype("int32")
    b, c = np.zeros_like(a), np.zeros_like(a)
    kernels["rows"](a, b, c)
    np.testing.assert_array_equal(c, 2 * a[:, ::-1] + 1)
    a = random.integers(-9, 9, (3, 70)).astype("int32")
    index, value = np.zeros(3, "int32"), np.zeros(3, "int32")
    kernels["largest"](a, index, value)
    np.testing.assert_array_equal(index, a.argmax(axis=1))
    np.testing.assert_array_equal(value, a.max(axis=1))
    seven = np.zeros(1, "int32")
    kernels["number"](seven)
    assert seven[0] == 7


# ---- races and accesses, by those who see them ---------------------------------------------------------------------


@pytest.mark.parametrize("family", families.FAMILIES)
def test_the_interpreter_finds_no_race(family):
    """In what is left to the writer; for programs of few steps, after each pass."""
    module, before = scheduled(families.program_of(family)), None
    stages = [lowered for _, lowered in _core.lower_stages(module, "opencl")]
    for stage in stages if family in ("DEP", "NRM", "SFM") else stages[-1:]:
        if before is None or not tw.ir.structural_equal(before, stage):
            arrays = families.arguments_of(family)
            _core.interpret(stage, "main", *arrays)
            families.check_result(family, arrays)
        before = stage


SIMULATED = """
import families
import tilewright as tw

for family in families.FAMILIES:
    kernel, arrays = tw.compile(families.program_of(family), target="opencl"), families.arguments_of(family)
    kernel(*arrays)
    families.check_result(family, arrays)
print("ran")
"""


def test_a_simulated_device_finds_no_race_and_no_access_out_of_bounds():
    outcome = in_process(SIMULATED, "oclgrind", "--data-races")
    report = outcome.stdout + outcome.stderr
    assert outcome.returncode == 0 and "ran" in outcome.stdout, report
    assert not any(word in report for word in ("race", "Invalid", "divergen", "Oclgrind")), report


# ---- how much is read ----------------------------------------------------------------------------------------------


def counting(module: tw.ir.Module, names: list[str]) -> tw.ir.Module:
    """Return a module whose first argument counts what is read of parameters of these names, by statements beside
    those that read."""
    lines = []
    for line in module.script().splitlines():
        if re.match(r"\s*T\.(reads|writes)\(", line):
            continue  # they are inferred again, with the counter
        lines.append(line.replace("def main(", 'def main(count: T.Buffer((1,), "int64"), '))
        store = re.match(r"(\s*)\w+\[.*?\] = (.*)", line)
        loads = len(re.findall(rf"\b(?:{'|'.join(names)})\[", store.group(2))) if store else 0
        if store and loads:
            lines.append(f"{store.group(1)}count[0] = count[0] + T.int64({loads})")
    return from_source("\n".join(lines))


def loads_of(module: tw.ir.Module, names: list[str], arrays: list[np.ndarray]) -> int:
    count = np.zeros(1, "int64")
    _core.interpret(counting(module, names), "main", count, *arrays, check_races=False)
    return int(count[0])


def test_a_product_reads_each_element_for_a_tile_of_results():
    """One of equal blocks is counted, as no size has a remainder: at most 1/16 of what one thread for each result
    reads."""
    module = scheduled(product(256, 256, 256))
    text = module.script()
    (blocks,) = re.findall(r'T\.thread_binding\((\d+), thread="blockIdx\.x"\)', text)
    one = from_source(
        text.replace(f'T.thread_binding({blocks}, thread="blockIdx.x")', 'T.thread_binding(1, thread="blockIdx.x")')
    )
    arrays = [np.ones((1, 256, 256), "float32"), np.ones((1, 256, 256), "float32"), np.zeros((1, 256, 256), "float32")]
    loads = int(blocks) * loads_of(one, ["A", "B"], arrays)
    assert loads <= 2 * 256**3 / 16
    # The block has computed its tile.
    assert np.count_nonzero(arrays[2] == 256) == 256 * 256 // int(blocks)


def test_softmax_reads_its_input_twice():
    x = numbers(37, 1000)
    arrays = [x, np.zeros_like(x)]
    assert loads_of(scheduled(softmax(37, 1000)), ["X"], arrays) <= 2 * x.size
    np.testing.assert_allclose(arrays[1], families.softmax(x), rtol=1e-5)


# ---- device limits and failures -------------------------------------------------------------------------------------


def test_limits_are_those_of_the_target_and_of_the_device(monkeypatch):
    monkeypatch.setattr(limits._core, "opencl_limits", lambda: None)
    assert limits_of(tw.Target("opencl -max_threads_per_block=64 -max_shared_memory_per_block=1024")) == (64, 1024, 32)
    assert limits_of(tw.Target("opencl")) == (TARGET.max_threads_per_block, TARGET.max_shared_memory_per_block, 32)
    monkeypatch.setattr(limits._core, "opencl_limits", lambda: (128, 2048))
    assert limits_of(tw.Target("opencl")) == (128, 2048, 32)
    assert limits_of(tw.Target("opencl -max_threads_per_block=64")) == (64, 2048, 32)
    assert limits_of(tw.Target("nvidia/nvidia-a100")).threads == 1024


@pytest.mark.parametrize("most", [1, 16, 48, 1024])
def test_blocks_have_no_more_threads_than_the_limit(most):
    target = tw.Target(f"opencl -max_threads_per_block={most}")
    for name in ("odd product", "softmax", "columns", "matrix times vector", "elementwise", "sparse rows"):
        module = scheduled(PROGRAMS[name], target)
        kernel = tw.compile(module, target=target)  # launch extents are checked
        check_results(PROGRAMS[name], [kernel])


def test_the_largest_tile_that_keeps_a_device_busy():
    def tile(n: int, m: int, k: int) -> Any:
        schedule = tw.Schedule(product(n, m, k))
        return tile_of(block_info(schedule, schedule.get_block("C")), 256)

    for size in (64, 500, 2048):
        chosen = tile(size, size, size)
        blocks = int(np.prod([-(-size // (chosen.threads[i] * chosen.results[i])) for i in (1, 2)]))
        assert chosen.block_threads <= 256
        assert blocks >= shared_tiles.BUSY_BLOCKS or chosen.threads == {0: 1, 1: 8, 2: 8}


def broken(*_: Any, **__: Any) -> None:
    raise KeyError("w0")


def test_a_pattern_that_fails_leaves_a_simple_schedule(monkeypatch):
    monkeypatch.delenv("TILEWRIGHT_RAISE_HEURISTIC_FAILURES")
    monkeypatch.setattr(gpu, "apply_patterns", broken)
    kernel = tw.compile(PROGRAMS["odd product"], target="opencl")
    check_results(PROGRAMS["odd product"], [kernel])
    (note,) = kernel.notes
    assert note.code == "compile/heuristic-failed" and "KeyError: 'w0'" in note.message


def test_a_schedule_that_no_device_runs_is_replaced(monkeypatch):
    """Of shared memory beyond the limit, for example."""
    monkeypatch.delenv("TILEWRIGHT_RAISE_HEURISTIC_FAILURES")
    target = tw.Target("opencl -max_shared_memory_per_block=64")
    kernel = tw.compile(PROGRAMS["odd product"], target=target)
    check_results(PROGRAMS["odd product"], [kernel])
    assert "__local" not in kernel.inspect("opencl")


def test_a_program_that_no_device_runs_is_refused_in_its_own_words():
    program = from_source("""
@T.prim_func
def main(A: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("A"):
            v = T.axis.spatial(8, i)
            A[v] = T.call_extern("float32", "sinpif", A[v])
""")
    with pytest.raises(tw.Error) as raised:
        tw.compile(program, target="opencl")
    assert raised.value.code == "codegen/not-on-device"


def test_the_error_of_the_schedule_is_that_of_a_program_without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """As unscheduled, the program would be refused because no loop is bound."""

    def fail(schedule: tw.Schedule, target: tw.Target) -> None:
        schedule.bind(schedule.get_loops("C")[-1], "blockIdx.x")

    for name in ("schedule_for_gpu", "schedule_simply"):
        monkeypatch.setattr(gpu, name, fail)
    with pytest.raises(tw.ScheduleError) as raised:
        tw.compile(product(20, 30, 10), target="opencl")
    assert raised.value.code == "bind/P3"


@pytest.mark.parametrize("size", ["n // 2", "n * 2", "T.min(n, 20)", "n + 3"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_products_whose_sizes_are_formulas_have_shared_tiles(size: str, axis: int) -> None:
    m, n, k = sizes = [size if each == axis else "24" for each in range(3)]
    program = from_source(f"""
@T.prim_func
def main(a: T.handle, b: T.handle, c: T.handle, n: T.int32):
    A = T.match_buffer(a, ({m}, {k}))
    B = T.match_buffer(b, ({k}, {n}))
    C = T.match_buffer(c, ({m}, {n}))
    for i, j, k in T.grid({m}, {n}, {k}):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
""")
    kernel = tw.compile(program, target="opencl")
    assert kernel.inspect("schedule").count('"shared"') == 2 and not kernel.notes
    draw = np.random.default_rng(axis)
    for number in (1, 2, 37):
        rows, columns, steps = (eval(each.replace("T.", ""), {"n": number}) if each == size else 24 for each in sizes)
        a, b = (draw.integers(-3, 4, shape).astype("float32") for shape in ((rows, steps), (steps, columns)))
        c = np.full((rows, columns), np.nan, "float32")
        kernel(a, b, c, number)
        np.testing.assert_array_equal(c, a @ b if steps else np.nan)  # a result without steps keeps its value


def test_what_is_compiled_as_written_stays_as_it_is():
    with pytest.raises(tw.ScriptError) as raised:
        tw.compile(product(20, 30, 10), target="opencl", schedule="as written")
    assert raised.value.code == "lower/not-on-device"


def test_the_steps_can_be_read():
    kernel = tw.compile(product(20, 30, 10), target="opencl")
    steps = kernel.inspect("schedule")
    assert re.search(r'sch\.cache_read\(\w+, \w+, "shared"\)', steps) and '"threadIdx.x"' in steps


@pytest.mark.parametrize("rows", [1, 5, 300])
@pytest.mark.parametrize(
    ("init", "step", "expected"),
    [
        ("T.int32(3)", "C[vi] + A[vi, vk]", lambda a, d: 3 + a.sum(1)),
        ("D[vi]", "C[vi] + A[vi, vk]", lambda a, d: d + a.sum(1)),
        ("D[vi]", "T.max(C[vi], A[vi, vk])", lambda a, d: np.maximum(d, a.max(1))),
    ],
)
def test_reductions_that_do_not_start_from_the_neutral_element(rows: int, init: str, step: str, expected: Any) -> None:
    """Threads that share the steps would each begin with it."""
    program = from_source(f"""
@T.prim_func
def main(A: T.Buffer(({rows}, 500), "int32"), D: T.Buffer(({rows},), "int32"), C: T.Buffer(({rows},), "int32")):
    for i, k in T.grid({rows}, 500):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = {init}
            C[vi] = {step}
""")
    a, d = numbers(rows, 500).astype("int32"), np.arange(rows, dtype="int32")
    c = np.zeros(rows, "int32")
    kernel = tw.compile(program, "opencl")
    kernel(a, d, c)
    np.testing.assert_array_equal(c, expected(a, d))
    assert kernel.schedule == "by rules" and not kernel.notes
