"""What a comparison of a scheduled program with the original one says."""

from __future__ import annotations

import time

import numpy as np
import pytest

import tilewright as tw
from tilewright import _core
from tilewright.search.expectations import Expectations
from tilewright.support.numpy_dtype import numpy_dtype
from tilewright.task import verification
from tilewright.task.arguments import wrong_values
from tilewright.task.precision import operation_dtype
from tilewright.task.task import task_of


def program(parameters: str, body: str) -> tw.ir.PrimFunc:
    lines = "".join(f"    {line}\n" for line in body.strip().splitlines())
    return tw.script.from_source(f"@T.prim_func\ndef main({parameters}):\n{lines}")


def problem(right: tw.ir.PrimFunc, wrong: tw.ir.PrimFunc) -> str | None:
    """Return what a comparison of all results says of a wrong program in place of the right one."""
    until = time.monotonic() + 60
    instance = verification._run_original(verification._call(right, 0, {}, []), until)
    compared = verification._compare(instance, tw.ir.IRModule({"main": wrong}), "main", until, [])
    assert compared.problem is not None or compared.is_full
    return compared.problem


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("bool", "A[v] > T.float32(2)"),
        ("int8", "T.int8(-128)"),
        ("uint16", "T.uint16(65535)"),
        ("int64", "T.min_value('int64')"),
        ("float4_e2m1fn", "T.Cast('float4_e2m1fn', A[v] - A[v])"),
        ("float8_e5m2", "T.Cast('float8_e5m2', T.float32('nan'))"),
        ("float32", "T.float32('nan')"),
    ],
)
def test_elements_that_are_not_written_are_wrong_whatever_is_right(dtype: str, value: str) -> None:
    def writes(count: int) -> tw.ir.PrimFunc:
        return program(
            f'A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "{dtype}")',
            f"""
for i in range({count}):
    with T.block("B"):
        v = T.axis.spatial(8, i)
        B[v] = {value}
""",
        )

    assert problem(writes(8), writes(8)) is None
    assert "B[7]" in (problem(writes(8), writes(7)) or "")
    # The original leaves some as they are.
    assert problem(writes(4), writes(4)) is None


@pytest.mark.parametrize("dtype", ["bool", "int8", "float8_e5m2", "float32"])
def test_contents_that_are_wrong_everywhere(dtype: str) -> None:
    for expected in (np.zeros((2, 3)), np.array(1), np.zeros((0, 3)), np.array([np.nan if "float" in dtype else 0, 1])):
        array = expected.astype(numpy_dtype(dtype))
        wrong = wrong_values(dtype, array)
        assert isinstance(wrong, np.ndarray) and (wrong.dtype, wrong.shape) == (array.dtype, array.shape)
        assert not np.any((wrong == array) | ((wrong != wrong) & (array != array)))


def test_inputs_are_not_written() -> None:
    def with_store(store: str) -> tw.ir.PrimFunc:
        return program(
            'A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")',
            f"""
for i in range(8):
    with T.block("B"):
        v = T.axis.spatial(8, i)
        B[v] = A[v] * T.float32(2)
        {store}
""",
        )

    right = with_store("T.evaluate(0)")
    assert problem(right, with_store("A[v] = T.float32(0)")) == "it writes to A, which the original only reads"


def product(dtype: str, sums: str, length: int) -> tw.ir.PrimFunc:
    """C = A B, where only the first terms of the sums are added."""
    return program(
        f'A: T.Buffer((8, 512), "{dtype}"), B: T.Buffer((512, 8), "{dtype}"), C: T.Buffer((8, 8), "{dtype}")',
        f"""
S = T.alloc_buffer((8, 8), "{sums}")
for i, j, k in T.grid(8, 8, {length}):
    with T.block("S"):
        vi, vj, vk = T.axis.remap("SSR", [i, j, k])
        with T.init():
            S[vi, vj] = T.Cast("{sums}", 0)
        S[vi, vj] = S[vi, vj] + T.Cast("{sums}", A[vi, vk]) * T.Cast("{sums}", B[vk, vj])
for i, j in T.grid(8, 8):
    with T.block("C"):
        vi, vj = T.axis.remap("SS", [i, j])
        C[vi, vj] = T.Cast("{dtype}", S[vi, vj])
""",
    )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_results_of_low_precision_may_differ_as_their_sums_do(dtype: str) -> None:
    right = product(dtype, "float32", 512)
    assert problem(right, product(dtype, "float32", 448)) is not None
    sch = tw.Schedule(right)
    outer, _ = sch.split(sch.get_loops("S")[2], [8, None])
    sch.rfactor(outer, 0)
    assert "agree" in str(sch.verify())


def test_the_precision_of_operations() -> None:
    assert operation_dtype(product("bfloat16", "float32", 8)) == "float32"
    assert operation_dtype(product("bfloat16", "float16", 8)) == "float16"
    (_, _, result) = (task := task_of(product("bfloat16", "float32", 8))).parameters
    assert task.accumulation_dtype(result) == "float32"
    (_, _, result) = (task := task_of(product("float32", "float16", 8))).parameters
    assert task.accumulation_dtype(result) == "float32"
    copies = program('A: T.Buffer((8,), "int8"), B: T.Buffer((8,), "float16")', "for i in range(8):\n    B[i] = A[i]")
    assert operation_dtype(copies) is None
    parts = "B[i] = T.Cast('float16', A[i]) + T.float16(1)"
    adds = program('A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float16")', f"for i in range(8):\n    {parts}")
    assert operation_dtype(adds) == "float16"


@pytest.mark.parametrize("nothing", [-1e9, float(np.finfo("float32").min)])
def test_what_masks_elements_allows_no_others(nothing: float) -> None:
    """The mean size of results decides what may differ: not that of constants that stand for none."""

    def masked(factor: float) -> tw.ir.PrimFunc:
        return program(
            'A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32")',
            f"""
for i, j in T.grid(8, 8):
    with T.block("B"):
        vi, vj = T.axis.remap("SS", [i, j])
        B[vi, vj] = T.if_then_else(vj <= vi, A[vi, vj] * T.float32({factor}), T.float32({nothing!r}))
""",
        )

    assert problem(masked(2), masked(2)) is None
    assert "B[0, 0]: expected" in (problem(masked(2), masked(2.001)) or "")


def test_large_numbers_allow_no_others() -> None:
    """Their squares are beyond float64."""

    def scaled(factor: float) -> tw.ir.PrimFunc:
        return program(
            'A: T.Buffer((8,), "float64"), B: T.Buffer((8,), "float64")',
            f"""
for i in range(8):
    with T.block("B"):
        v = T.axis.spatial(8, i)
        B[v] = A[v] * T.float64({factor!r})
""",
        )

    for size in (1e200, 1e-200):
        assert problem(scaled(size), scaled(size)) is None
        assert problem(scaled(size), scaled(1.001 * size)) is not None


def test_the_sampled_result_that_is_named_is_the_wrong_one() -> None:
    def function(value: str) -> tw.ir.PrimFunc:
        return tw.script.from_source(f"""
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            B[v] = {value}
""")

    right, wrong = (
        function("A[v] * T.float32(3)"),
        function("T.Select(v == 5, T.float32(100), (A[v] + T.float32(1)) * T.float32(3) - T.float32(3))"),
    )
    until = time.monotonic() + 60
    instance = verification._run_original(verification._call(right, 0, {}, []), until).at_points()
    compared = verification._compare(instance, tw.ir.IRModule({"main": wrong}), "main", until, [])
    assert compared.problem is not None and "of which [5] differs" in compared.problem


def test_candidates_of_low_precision_are_compared_by_the_precision_of_their_sums() -> None:
    right = product("bfloat16", "float32", 512)
    expectations = Expectations(task := task_of(right), {}, seed=0)
    pipeline = _core.MeasurePipeline(
        written=task.module,
        function=task.entry,
        arguments=expectations.arguments(),
        judge=expectations.judge,
        reduction_length=task.reduction_length,
        target=_core.Target("llvm -num-cores=1"),
        options=_core.PipelineOptions(race=_core.RaceRules.steady(2, 1, 1e-4, 1.0)),
    )
    candidates = [right, product("bfloat16", "float32", 448)]
    try:
        for candidate in candidates:
            pipeline.submit(_core.as_module(candidate))
        found: dict[int, str] = {}
        while len(found) < len(candidates):
            found |= {number: outcome for number, outcome, _, _ in pipeline.poll(1.0)}
    finally:
        pipeline.close()
    assert found == {0: "ok", 1: "wrong_result"}
