"""Programs that leave sizes open are tuned for some, and their kernels are right for all."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.database.records import open_database, title_of
from tilewright.script import tir as T
from tilewright.task.task import sizes_of, task_of


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
        with pytest.raises(tw.ArgumentError, match=f"(?s)is not constant, and no usual value of {missing} is") as error:
            tw.tune(sums, sizes=given, trials=1, progress=None)
        assert error.value.code == "tune/symbolic-shape"


@T.prim_func
def scaled(alpha: T.float32, a: T.handle, n: T.int32, b: T.handle, shift: T.int64):
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n,), "float32")
    for i in range(n):
        with T.block("B"):
            v = T.axis.spatial(n, i)
            B[v] = A[v] * alpha + T.cast(shift, "float32")


def check_scaled(kernel: tw.Kernel) -> None:
    for n, alpha, shift in [(1000, 2.0, 3), (1, -0.5, -7), (77, 0.0, 2**40), (0, 1.0, 1)]:
        a, b = np.arange(n, dtype="float32"), np.empty(n, "float32")
        kernel(alpha, a, n, b, shift)
        np.testing.assert_allclose(b, a * np.float32(alpha) + np.float32(shift), rtol=1e-6)


def test_scalar_parameters_are_tuned_for_values(tmp_path: Path) -> None:
    usual = {"alpha": 1.5, "n": 1000, "shift": -3}
    path = tmp_path / "records.db"
    result = tw.tune(scaled, trials=6, sizes=usual, database=path, progress=None)
    assert result.record is not None and result.progress.failures == {}
    assert result.verdict is not None and result.verdict.checked
    assert result.task.work.flops in (2000, 3000)
    check_scaled(result.kernel)
    assert "as written" in str(result.table()) and "best found" in str(result.table())
    check_scaled(tw.compile(scaled, database=path))
    # Records of other values stand apart.
    other = tw.tune(scaled, trials=2, sizes=usual | {"n": 64}, database=path, progress=None)
    assert other.record is not None and other.progress.earlier == 0
    titles = [title_of(each) for each in open_database(path).workloads()]
    assert titles == [f"scaled (alpha=1.5, n={n}, shift=-3)" for n in (1000, 64)]


def test_inputs_may_hold_scalars() -> None:
    inputs = {"A": np.ones(50, "float32"), "alpha": np.float32(2.5), "shift": 4}
    result = tw.tune(scaled, trials=1, inputs=inputs, progress=None)
    assert result.task.sizes == {"n": 50, "alpha": 2.5, "shift": 4}
    seen: list[list[object]] = []

    def peer(alpha: float, a: np.ndarray, n: int, shift: int) -> np.ndarray:
        seen.append([alpha, a.shape, n, shift])
        return a * np.float32(alpha) + np.float32(shift)

    space = tw.space(scaled, reference=peer, inputs=inputs)(lambda sch: None)
    with warnings.catch_warnings():
        warnings.simplefilter("error", tw.notes.ReferenceWarning)
        tw.tune(scaled, space=space, trials=1, progress=None)
    assert seen and all(each == [2.5, (50,), 50, 4] for each in seen)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"n": 9, "alpha": 1.0}, "'shift' is a scalar, and no usual value of shift is known"),
        ({"n": 9, "alpha": "x", "shift": 1}, r"sizes\['alpha'\] is 'x'; 'alpha' of type float32 is a number"),
        ({"n": 9, "alpha": 1, "shift": 1.5}, r"sizes\['shift'\] is 1.5; 'shift' of type int64 is an integer"),
        ({"n": 2**40, "alpha": 1, "shift": 1}, r"is 1099511627776, which is no int32"),
        ({"n": -1, "alpha": 1, "shift": 1}, "a size to tune for is at least 1"),
    ],
)
def test_scalars_that_do_not_fit(sizes: dict[str, float], message: str) -> None:
    with pytest.raises(tw.ArgumentError, match=message):
        tw.tune(scaled, sizes=sizes, progress=None)


@T.prim_func
def axpy(a: T.handle, b: T.handle, alpha: T.float32) -> None:
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n,), "float32")
    for i in range(n):
        with T.block("B"):
            v = T.axis.spatial(n, i)
            B[v] = alpha * A[v]


@pytest.mark.parametrize("names", ["ab", "AB", "aB"])
def test_inputs_are_known_by_parameters_and_by_their_buffers(names: str) -> None:
    inputs = {names[0]: np.ones(50, "float32"), names[1]: np.zeros(50, "float32"), "alpha": 3.0}
    result = tw.tune(axpy, trials=1, inputs=inputs, progress=None)
    assert result.task.sizes == {"n": 50, "alpha": 3.0} and set(result.inputs) == {"A", "B", "alpha"}
    of_space = tw.space(axpy, inputs=inputs)(lambda sch: None)
    assert tw.tune(of_space, trials=1, progress=None).task.sizes == {"n": 50, "alpha": 3.0}
    schedule = tw.Schedule(axpy)
    schedule.split(schedule.get_loops("B")[0], [None, 4])
    assert schedule.verify(inputs).elements == 50


def test_one_input_by_both_of_its_names() -> None:
    twice = {"a": np.ones(5, "float32"), "A": np.ones(5, "float32"), "alpha": 3.0}
    with pytest.raises(tw.ArgumentError, match="'A' is given twice"):
        tw.tune(axpy, trials=1, inputs=twice, progress=None)


def test_a_name_that_no_parameter_has_is_told_before_what_is_missing() -> None:
    with pytest.raises(tw.ArgumentError, match=r"inputs has alfa, but .*\n  hint: did you mean alpha\?") as caught:
        tw.tune(axpy, inputs={"a": np.ones(5, "float32"), "alfa": 3.0}, progress=None)
    assert caught.value.code == "arguments/inputs"
    with pytest.raises(tw.ArgumentError, match=r"inputs has Z.*\n  hint: arrays and numbers"):
        tw.Schedule(axpy).verify({"Z": np.ones(5, "float32")})


def test_an_input_that_is_none_is_told_with_all_there_are() -> None:
    with pytest.raises(tw.ArgumentError, match="inputs has beta, but the parameters are A, B, alpha, n, shift"):
        tw.tune(scaled, trials=1, inputs={"beta": 1.0}, sizes={"alpha": 1.0, "n": 9, "shift": 1}, progress=None)
