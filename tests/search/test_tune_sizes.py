"""Programs that leave sizes open are tuned for some, and their kernels are right for all."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.script import tir as T
from tilewright.task import sizes_of, task_of


def product(n: object, m: object, k: object) -> tw.ir.PrimFunc:
    a, b = te.placeholder((n, k), name="A"), te.placeholder((k, m), name="B")
    r = te.reduce_axis((0, k), name="r")
    return te.create_prim_func([a, b, te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[r, j], axis=[r]), name="C")])


@pytest.fixture
def program() -> tw.ir.PrimFunc:
    return product(te.var("n"), te.var("m"), te.var("k"))


def test_one_kernel_for_all_sizes(program: tw.ir.PrimFunc) -> None:
    result = tw.tune(program, trials=4, sizes={"n": 70, "m": 90, "k": 40}, progress=None)
    assert result.record is not None and result.progress.failures == {}
    assert [parameter.shape for parameter in result.task.parameters] == [(70, 40), (40, 90), (70, 90)]
    assert result.task.work.flops == 2 * 70 * 90 * 40
    random = np.random.default_rng(0)
    for n, m, k in [(70, 90, 40), (1, 1, 1), (13, 200, 7), (100, 31, 129)]:
        a, b = random.random((n, k), "float32"), random.random((k, m), "float32")
        np.testing.assert_allclose(result.kernel(a, b), a @ b, rtol=1e-5)


def test_inputs_say_sizes_too(program: tw.ir.PrimFunc) -> None:
    a = np.ones((33, 20), "float32")
    assert sizes_of(program, {"A": a}) == {"n": 33, "k": 20}
    result = tw.tune(program, trials=1, inputs={"A": a}, sizes={"m": 50}, progress=None)
    assert result.task.sizes == {"n": 33, "k": 20, "m": 50}


def test_what_a_task_of_sizes_knows(program: tw.ir.PrimFunc) -> None:
    task = task_of(program, {"n": 3, "m": 5, "k": 7})
    assert task.reduction_length == 7
    assert task_of(task.sized.program).parameters == task.parameters
    assert task_of(product(3, 5, 7)).sized.sizes == {}


def test_a_size_that_nobody_says(program: tw.ir.PrimFunc) -> None:
    with pytest.raises(tw.ArgumentError, match="is not constant"):
        tw.tune(program, sizes={"n": 3}, progress=None)


def test_a_size_that_the_program_does_not_leave_open(program: tw.ir.PrimFunc) -> None:
    with pytest.raises(tw.ArgumentError, match="sizes has q, but the sizes that the program leaves open are k, m, n"):
        tw.tune(program, sizes={"q": 3}, progress=None)
    with pytest.raises(tw.ArgumentError, match="the program leaves open are none"):
        tw.tune(product(3, 5, 7), sizes={"n": 3}, progress=None)
    with pytest.raises(tw.ArgumentError, match=r"sizes\['n'\] is 0"):
        tw.tune(program, sizes={"n": 0}, progress=None)


def test_the_sizes_that_are_missing_are_named() -> None:
    @T.prim_func
    def sums(a: T.handle, b: T.handle):
        n, m = T.int32(), T.int32()
        A = T.match_buffer(a, (n, m), "float32")
        B = T.match_buffer(b, (n,), "float32")
        for i, j in T.grid(n, m):
            with T.block("B"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + A[vi, vj]

    for given, missing in (({"n": 30}, "m"), ({}, "n, m")):
        with pytest.raises(
            tw.ArgumentError, match=f"(?s)is not constant: nothing says what {missing} usually"
        ) as error:
            tw.tune(sums, sizes=given, trials=1, progress=None)
        assert error.value.code == "tune/symbolic-shape"
