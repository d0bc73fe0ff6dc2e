"""sch.lower_sparse_iter: iterations over sparse axes become blocks, as a step of the trace."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.sparse_programs import CASES, SPMM, SPMV, function

import tilewright as tw
from tilewright import ir, script
from tilewright.script import tir as T
from tilewright.testing import check_same

SPMM_IN_BLOCKS = """
def f(a: T.handle, b: T.handle, c: T.handle, p: T.handle, q: T.handle, m: T.int32, n: T.int32, nnz: T.int32):
    P = T.match_buffer(p, (m + 1,), "int32")
    Q = T.match_buffer(q, (nnz,), "int32")
    A = T.match_buffer(a, (nnz,), "float64")
    B = T.match_buffer(b, (n, 16), "float64")
    C = T.match_buffer(c, (m, 16), "float64")
    T.assume_buffer_domain(P, [0, nnz + 1], order="nondecreasing")
    T.assume_buffer_domain(Q, [0, n], order="increasing", segments=P)
    for i in range(m):
        with T.block("spmm0"):
            vi = T.axis.spatial(m, i)
            for k in range(16):
                with T.block("spmm_init"):
                    vk = T.axis.spatial(16, k)
                    C[vi, vk] = T.float64(0)
            for j, k in T.grid(P[vi + 1] - P[vi], 16):
                with T.block("spmm1"):
                    vj = T.axis.reduce(P[vi + 1] - P[vi], j)
                    vk = T.axis.spatial(16, k)
                    C[vi, vk] = C[vi, vk] + A[P[vi] + vj] * B[Q[P[vi] + vj], vk]
"""


def test_a_product_becomes_the_program_that_is_written_over_arrays() -> None:
    sch = tw.Schedule(function(SPMM))
    sch.lower_sparse_iter()
    check_same(sch.mod["main"], function(SPMM_IN_BLOCKS))


@pytest.mark.parametrize("name", sorted(CASES))
def test_lowering_is_a_step_of_the_trace(name: str) -> None:
    func = function(CASES[name].text)
    sch = tw.Schedule(func)
    sch.lower_sparse_iter()
    assert [step.kind.name for step in sch.trace.insts] == ["LowerSparseIter"]
    again = tw.Schedule(func)
    sch.trace.apply_to_schedule(again, remove_postproc=False)
    ir.assert_structural_equal(again.mod, sch.mod)
    ir.assert_structural_equal(script.from_source(sch.mod.script()), sch.mod)
    ir.assert_structural_equal(ir.load_json(ir.save_json(sch.mod)), sch.mod)
    as_json = tw.Schedule(func)
    tw.Trace.from_json(sch.trace.as_json()).apply_to_schedule(as_json, remove_postproc=False)
    ir.assert_structural_equal(as_json.mod, sch.mod)


@pytest.mark.parametrize("name", sorted(CASES))
def test_the_interpreter_verifies_lowering_on_random_structures(name: str) -> None:
    sch = tw.Schedule(function(CASES[name].text))
    sch.lower_sparse_iter()
    assert sch.verify().instances >= 1


def test_blocks_of_a_lowered_program_are_scheduled() -> None:
    sch = tw.Schedule(function(SPMM))
    sch.lower_sparse_iter()
    for name in ("spmm_init", "spmm1"):
        outer, vector = sch.split(sch.get_loops(name)[-1], [None, 8])
        sch.unroll(outer)
        sch.vectorize(vector)
    rows = sch.get_loops("spmm0")[0]
    sch.parallel(rows)
    sch.balance(rows, "spmm0", "p_data")
    sch.verify()
    args, output, want = CASES["spmm"].make(np.random.default_rng(0), "dense row")
    tw.compile(sch)(*args)
    np.testing.assert_array_equal(args[output], want)


def test_other_steps_wait_for_it() -> None:
    sch = tw.Schedule(function(SPMM))
    with pytest.raises(tw.ScheduleError, match="iterates over sparse axes") as caught:
        sch.get_block("spmm")
    assert caught.value.code == "schedule/sparse" and "lower_sparse_iter" in str(caught.value)


def test_what_has_no_axes_is_not_lowered() -> None:
    @T.prim_func
    def twice(x: T.Buffer((4,))):
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                x[vi] = x[vi] * T.float32(2)

    with pytest.raises(tw.ScheduleError, match="no sparse axes") as caught:
        tw.Schedule(twice).lower_sparse_iter()
    assert caught.value.code == "lower_sparse_iter/P1"


def test_a_function_of_a_module_is_named() -> None:
    module = ir.Module({"one": function(SPMM), "two": function(CASES["softmax"].text)})
    sch = tw.Schedule(module)
    with pytest.raises(tw.ScheduleError) as caught:
        sch.lower_sparse_iter()
    assert caught.value.code == "lower_sparse_iter/P1"
    sch.lower_sparse_iter("two")
    assert not sch.mod["two"].axes and sch.mod["one"].axes


def test_sizes_without_a_structure_are_told() -> None:
    text = (
        SPMM.replace("m: T.int32, n: T.int32, nnz: T.int32", "n: T.int32").replace("(m)", "(2)").replace("nnz)", "9)")
    )
    sch = tw.Schedule(function(text))
    sch.lower_sparse_iter()
    with pytest.raises(tw.ArgumentError) as caught:
        sch.verify({"n": 3})  # two rows of three columns have no nine elements
    assert caught.value.code == "tune/domain"


@pytest.mark.parametrize("name", ["rows", "rows_csr"])
def test_errors_of_later_steps_show_the_iteration(name: str) -> None:
    """Loops and blocks that lowering makes come from the user's line, also where a tensor is in another format."""
    sch = tw.Schedule(function(SPMV))
    if name == "rows_csr":
        sch.decompose_format("A", "csr", [7, 5])
    sch.lower_sparse_iter()
    steps: list[Any] = [
        lambda: sch.parallel(sch.get_loops(f"{name}1")[0]),
        lambda: sch.vectorize(sch.get_loops(f"{name}1")[0]),
        lambda: sch.compute_inline(f"{name}0"),
        lambda: sch.lift_loop(sch.get_loops(f"{name}0")[0]),
        lambda: sch.balance(sch.get_loops(f"{name}0")[0], f"{name}0", "p_data"),
    ]
    for step in steps:
        with pytest.raises(tw.ScheduleError) as caught:
            step()
        assert ">:10:10" in str(caught.value).split(" --> ")[1]  # with T.sp.iteration
