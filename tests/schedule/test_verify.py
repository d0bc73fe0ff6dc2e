"""sch.verify(): the scheduled program against the original one, in the interpreter."""

import time

import numpy as np
import pytest

import tilewright as tw
from tilewright.script import tir as T
from tilewright.task import verification
from tilewright.testing import workloads


def tile(sch, factor=7):
    block = sch.get_block("C")
    i, _, k = sch.get_loops(block)
    sch.split(i, [None, factor])
    sch.decompose_reduction(block, k)


def test_all_results_of_small_programs():
    sch = tw.Schedule(workloads.matmul(12, 10, 8))
    assert str(sch.verify()) == "the program is the original one"
    tile(sch)
    compared = sch.verify()
    assert (compared.extent, compared.instances, compared.elements) == ("full", 2, 240)
    assert "240 results agree" in str(compared)


def test_single_results_of_large_programs():
    sch = tw.Schedule(workloads.matmul(512, 512, 512))
    tile(sch)
    compared = sch.verify(seconds=0.5)
    assert compared.extent == "sampled"
    assert compared.elements > 10


def test_sizes_in_sums():
    @T.prim_func
    def blur(x: T.handle, y: T.handle):
        h = T.int32()
        w = T.int32()
        X = T.match_buffer(x, (h + 2, w))
        Y = T.match_buffer(y, (h, w))
        S = T.alloc_buffer((h + 2, w))
        for i, j in T.grid(h + 2, w):
            with T.block("S"):
                vi, vj = T.axis.remap("SS", [i, j])
                S[vi, vj] = X[vi, vj] * T.float32(2)
        for i, j in T.grid(h, w):
            with T.block("Y"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = S[vi, vj] + S[vi + 2, vj]

    sch = tw.Schedule(blur)
    sch.compute_at("S", sch.get_loops("Y")[0])
    assert sch.verify().elements > 0
    assert tw.tune(blur, sizes={"h": 30, "w": 50}, trials=2).record is not None


def test_symbolic_sizes():
    @T.prim_func
    def scale(a: T.handle, b: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,))
        B = T.match_buffer(b, (n,))
        for i in range(n):
            with T.block("B"):
                vi = T.axis.spatial(n, i)
                B[vi] = A[vi] * T.float32(2)

    sch = tw.Schedule(scale)
    sch.split(sch.get_loops("B")[0], [None, 8])
    compared = sch.verify()
    assert (compared.extent, compared.instances) == ("full", 3)


@T.prim_func
def gather(A: T.Buffer((16,)), I: T.Buffer((8,), "int32"), B: T.Buffer((8,))):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[I[vi]]


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "uint64", "bool"])
def test_buffers_without_dimensions(dtype):
    @T.prim_func
    def add(A: T.Buffer((), dtype), B: T.Buffer((8,), dtype), C: T.Buffer((8,), dtype), D: T.Buffer((), dtype)):
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = T.max(A[()], B[vi])
        with T.block("D"):
            D[()] = A[()]

    sch = tw.Schedule(add)
    sch.split(sch.get_loops("C")[0], [None, 4])
    assert sch.verify().elements == 2 * 9
    assert sch.verify({"A": np.asarray(1, dtype)}).elements == 2 * 9


def test_indices_are_given():
    sch = tw.Schedule(gather)
    sch.split(sch.get_loops("B")[0], [2, 4])
    with pytest.raises(tw.ScriptError):
        sch.verify()
    assert sch.verify({"I": np.arange(8, dtype=np.int32)}).extent == "full"
    with pytest.raises(tw.ArgumentError, match="inputs has J"):
        sch.verify({"J": np.arange(8, dtype=np.int32)})


def test_too_long_for_the_interpreter():
    @T.prim_func
    def last(A: T.Buffer((1,), "int32"), B: T.Buffer((1,), "int32")):
        for i in range(1 << 30):
            with T.block("B"):
                vi = T.axis.reduce(1 << 30, i)
                with T.init():
                    B[0] = T.int32(0)
                B[0] = B[0] + A[vi // (1 << 30)]

    sch = tw.Schedule(last)
    sch.split(sch.get_loops("B")[0], [None, 16])
    with pytest.raises(tw.ResourceError, match="cannot be interpreted in"):
        sch.verify(seconds=0.2)


@pytest.mark.parametrize("original_is_slow", [False, True])
def test_nothing_compared_is_no_agreement(monkeypatch, original_is_slow):
    sch = tw.Schedule(workloads.matmul(512, 512, 512))
    tile(sch)
    scheduled, answer = sch.mod, verification.interpreted_at

    def slow(module, name, arrays, points, seconds):
        is_slow = module.same_as(scheduled) != original_is_slow
        return {parameter: [] for parameter in points} if is_slow else answer(module, name, arrays, points, seconds)

    monkeypatch.setattr(verification, "interpreted_at", slow)
    which = "original" if original_is_slow else "scheduled"
    said = f"nothing was compared: the {which} program cannot be interpreted in"
    with pytest.raises(tw.ResourceError, match=said) as caught:
        sch.verify(seconds=1)
    assert caught.value.code == "schedule/not-verified"


def test_the_seconds_are_for_all_of_it():
    sch = tw.Schedule(workloads.matmul(512, 512, 512))
    tile(sch)
    start = time.monotonic()
    assert sch.verify(seconds=2).extent == "sampled"
    assert time.monotonic() - start < 3


def test_a_scheduled_program_that_takes_longer_is_sampled(monkeypatch):
    sch = tw.Schedule(workloads.matmul(12, 10, 8))
    tile(sch)
    scheduled, answer = sch.mod, verification.interpreted

    def slow(module, name, arrays, seconds):
        if module.same_as(scheduled):
            raise tw.ResourceError("the program did not end within its time limit")
        return answer(module, name, arrays, seconds)

    monkeypatch.setattr(verification, "interpreted", slow)
    compared = sch.verify()
    assert (compared.extent, compared.instances, compared.elements) == ("sampled", 2, 2 * verification.POINTS)


def test_debug_mask():
    with pytest.raises(tw.ArgumentError, match="use 'all'") as error:
        tw.Schedule(gather, debug_mask="some")
    assert error.value.code == "schedule/debug-mask"
    sch = tw.Schedule(workloads.matmul(12, 10, 8), debug_mask="all")
    tile(sch)
    tile_again = sch.copy()
    tile_again.unroll(tile_again.get_loops("C_update")[0])


def test_the_step_that_is_wrong_is_named():
    @T.prim_func
    def doubled(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
        B = T.alloc_buffer((8,), "int32")
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi] + 1000
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = B[vi] * 2

    sch = tw.Schedule(doubled)
    sch.split(sch.get_loops("C")[0], [2, 4])
    assert sch.verify().assertions == ()
    sch.unsafe_set_dtype("B", 0, "int8")
    sch.split(sch.get_loops("B")[0], [2, 4])
    with pytest.raises(tw.ScheduleError, match=r"first after step 4 of the trace: sch\.unsafe_set_dtype") as error:
        sch.verify()
    assert error.value.code == "schedule/verify"


def shifted():
    @T.prim_func
    def main(A: T.Buffer((14,), "int32"), C: T.Buffer((14,), "int32")):
        for i in range(14):
            with T.block("C"):
                vi = T.axis.spatial(14, i)
                C[vi] = A[vi] + 5

    return main


def test_parameters_in_other_layouts():
    """The arrays go through the same maps, one after the other, and results come back through them."""
    sch = tw.Schedule(shifted())
    sch.transform_layout("C", ("read", 0), lambda i: (i // 4, i % 4), pad_value=3)
    sch.transform_layout("C", ("read", 0), lambda i, j: (j, i))
    sch.transform_layout("C", ("write", 0), lambda i: (i % 7, i // 7))
    compared = sch.verify()
    assert compared.extent == "full"
    (stated,) = compared.assertions
    assert stated.endswith("(callers fill the padding of 'A')")


def test_results_in_another_layout_are_compared():
    """A program that is right but for the layout of its result."""
    sch = tw.Schedule(shifted())
    sch.transform_layout("C", ("write", 0), lambda i: (i // 7, i % 7))
    assert sch.verify().elements == 28
    sch.unsafe_set_dtype(sch.cache_read("C", 0, "global"), 0, "int8")
    with pytest.raises(tw.ScheduleError, match="does not compute what the original does"):
        sch.verify({"A": np.arange(14, dtype=np.int32) * 1000})


def test_large_results_in_another_layout():
    program = workloads.matmul(300, 300, 300)
    sch = tw.Schedule(program)
    sch.transform_layout("C", ("write", 0), lambda i, j: (j, i))
    compared = sch.verify(seconds=0.5)
    assert (compared.extent, compared.assertions) == ("sampled", ())


def test_what_is_said_of_elements_that_nothing_reaches_is_seen():
    """Lanes beyond the buffer hold anything."""
    sch = tw.Schedule(shifted())
    sch.transform_layout("C", ("read", 0), lambda i: (i // 4, i % 4), assume_injective_transform=True)
    (stated,) = sch.verify().assertions
    assert stated.endswith("(no access reaches the elements of 'A' that stand for none of the old ones)")


def test_what_random_indices_do_is_told():
    @T.prim_func
    def take(X: T.Buffer((100,), "float32"), I: T.Buffer((30,), "int32"), Y: T.Buffer((30,), "float32")):
        for i in range(30):
            with T.block("Y"):
                vi = T.axis.spatial(30, i)
                Y[vi] = X[I[vi]]

    sch = tw.Schedule(take)
    sch.split(sch.get_loops("Y")[0], [None, 4])
    with pytest.raises(tw.ScriptError, match=r"(?s)I held random values; give arrays .* in verify\(\.\.\.\)"):
        sch.verify()
    assert sch.verify({"I": np.arange(30, dtype=np.int32)}).extent == "full"


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "bool", "int8", "int32", "uint64"])
def test_scalar_parameters_have_values(dtype):
    """Several, or the one that is given; what depends on them is compared."""
    program = tw.script.from_source(
        f"""from tilewright.script import tir as T
@T.prim_func
def main(B: T.Buffer((8,), "float32"), alpha: T.{dtype}, n: T.int32, a: T.handle):
    A = T.match_buffer(a, (n + 1,))
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            B[v] = T.Cast("float32", alpha) + A[n]
"""
    )
    sch = tw.Schedule(program)
    sch.split(sch.get_loops("B")[0], [None, 2])
    assert sch.verify().extent == "full"
    given = 1 if dtype == "bool" or "int" in dtype else 1.5
    assert sch.verify({"alpha": given}).extent == "full"
    with pytest.raises(tw.ArgumentError, match=r"inputs\['alpha'\] is "):
        sch.verify({"alpha": 1000 if dtype in ("bool", "int8") else -0.5 if "int" in dtype else "much"})
