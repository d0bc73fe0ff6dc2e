import json
import pickle

import numpy as np
import pytest

import tilewright as tw
from tilewright import _core
from tilewright.script import ir as I
from tilewright.script import tir as T
from tilewright.task.index_map import map_array
from tilewright.testing import check, check_refused, check_trace, workloads


@T.prim_func
def two_steps(A: T.Buffer((16, 8)), C: T.Buffer((16, 8))):
    B = T.alloc_buffer((16, 8))
    for i, j in T.grid(16, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.float32(1)
    for i, j in T.grid(16, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] * T.float32(2)


def tiled(sch, width=4, **options):
    sch.transform_layout("B", ("write", 0), lambda i, j: (j // width, i, j % width), **options)


def test_tiles():
    @T.prim_func
    def after(A: T.Buffer((16, 8)), C: T.Buffer((16, 8))):
        B = T.alloc_buffer((2, 16, 4))
        for i, j in T.grid(16, 8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vj // 4, vi, vj % 4] = A[vi, vj] + T.float32(1)
        for i, j in T.grid(16, 8):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vj // 4, vi, vj % 4] * T.float32(2)

    sch = check(two_steps, tiled, after)
    assert "lambda i, j: (j // 4, i, j % 4)" in str(sch.trace)


@pytest.mark.parametrize("buffer", [("read", 0), "B"])
def test_ways_to_name_the_buffer(buffer):
    sch = check(two_steps, lambda sch: sch.transform_layout("C", buffer, lambda i, j: (j, i)))
    assert '["read", 0]' in str(sch.trace)
    assert "B = T.alloc_buffer((8, 16))" in sch.mod.script()


def test_one_index():
    sch = check(two_steps, lambda sch: sch.transform_layout("B", "B", lambda i, j: i * 8 + j))
    assert "B = T.alloc_buffer((128,))" in sch.mod.script()


def test_sampled_integers_in_the_map():
    def scheduled(sch):
        width = sch.sample_categorical([2, 4], [0.5, 0.5], decision=1)
        sch.transform_layout("B", ("write", 0), lambda i, j, w: (j // w, i, j % w), values=[width])

    sch = check(two_steps, scheduled)
    assert "B = T.alloc_buffer((2, 16, 4))" in sch.mod.script()
    draw = next(step for step in sch.trace.insts if step.kind.name == "SampleCategorical")
    other = tw.Schedule(two_steps)
    sch.trace.with_decision(draw, 0, remove_postproc=False).apply_to_schedule(other, remove_postproc=False)
    assert "B = T.alloc_buffer((4, 16, 2))" in other.mod.script()
    other.verify()


def test_more_values_than_the_map_takes():
    def scheduled(sch):
        width = sch.sample_categorical([4], [1.0])
        sch.transform_layout("B", ("write", 0), lambda i: i, values=[width, width])

    check_refused(two_steps, scheduled, "transform_layout/P1")


def test_gaps_have_to_be_allowed():
    check_refused(two_steps, lambda sch: tiled(sch, 3), "transform_layout/P4")
    sch = check(two_steps, lambda sch: tiled(sch, 3, assume_injective_transform=True))
    assert "B = T.alloc_buffer((3, 16, 3))" in sch.mod.script()


def test_strides_leave_gaps():
    def strided(sch, **options):
        sch.transform_layout("B", "B", lambda i, j: (i, j * 2), **options)

    check_refused(two_steps, strided, "transform_layout/P4")
    check_refused(two_steps, lambda sch: sch.transform_layout("B", "B", lambda i, j: i * 16 + j), "transform_layout/P3")
    sch = check(two_steps, lambda sch: strided(sch, assume_injective_transform=True))
    assert "B = T.alloc_buffer((16, 15))" in sch.mod.script()


def test_packed_panels_of_a_cached_operand():
    """Each panel of the copy is contiguous, also where the last one is not full."""

    @T.prim_func
    def product(A: T.Buffer((8, 12)), B: T.Buffer((12, 20)), C: T.Buffer((8, 20))):
        for i, j, k in T.grid(8, 20, 12):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] += A[vi, vk] * B[vk, vj]

    def transform(sch, width):
        i, j, k = sch.get_loops(sch.get_block("C"))
        outer, panel, lanes = sch.split(j, [None, 2, width])
        sch.reorder(outer, i, panel, k, lanes)
        packed = sch.cache_read("C", 1, "global")
        sch.compute_at(packed, outer)
        _, copied = sch.split(sch.get_loops(packed)[-1], [None, width])
        sch.transform_layout(
            packed, ("write", 0), lambda k, j: (j // width, k, j % width), assume_injective_transform=True
        )
        sch.vectorize(copied)
        sch.vectorize(lanes)

    for width in (5, 4, 8):
        check(product, lambda sch, width=width: transform(sch, width))


def test_regions_of_several_elements():
    @T.prim_func
    def rows(A: T.Buffer((6, 8)), C: T.Buffer((6, 8))):
        B = T.alloc_buffer((6, 8))
        for i in range(6):
            with T.block("B"):
                vi = T.axis.spatial(6, i)
                for j in range(8):
                    B[vi, j] = A[vi, j]
        for i in range(6):
            with T.block("C"):
                vi = T.axis.spatial(6, i)
                for j in range(8):
                    C[vi, j] = B[vi, j]

    sch = check(rows, lambda sch: sch.transform_layout("B", "B", lambda i, j: (j // 4, i, j % 4)))
    assert "T.writes(B[0:2, vi, 0:4])" in sch.mod.script()
    check_refused(
        rows,
        lambda sch: sch.transform_layout("B", "B", lambda i, j: ((i * 8 + j) // 12, (i * 8 + j) % 12)),
        "transform_layout/P5",
    )


def test_refusals():
    def refused(code, index_map, block="B", buffer=("write", 0), **options):
        check_refused(two_steps, lambda sch: sch.transform_layout(block, buffer, index_map, **options), code)

    refused("transform_layout/P1", lambda i, j, k: (i, j, k))
    refused("transform_layout/P1", lambda i, j: (j, i), buffer=("write", 1))
    refused("transform_layout/P1", lambda i, j: (j, i), buffer="A_1")
    refused("transform_layout/P3", lambda i, j: (i, j // 2), assume_injective_transform=True)
    refused("transform_layout/P3", lambda i, j: i + j)
    refused("transform_layout/P3", lambda i, j: (i + 1, j))
    refused("transform_layout/P3", lambda i, j: (T.max(i, j), j))


def test_other_uses_of_the_buffer():
    @T.prim_func
    def viewed(A: T.Buffer((16,)), C: T.Buffer((16,))):
        B = T.alloc_buffer((16,))
        for i in range(16):
            with T.block("B"):
                vi = T.axis.spatial(16, i)
                B[vi] = A[vi]
        for i in range(4):
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                D = T.match_buffer(B[vi * 4 : vi * 4 + 4], (4,), offset_factor=1)
                for j in range(4):
                    C[vi * 4 + j] = D[j]

    check_refused(viewed, lambda sch: sch.transform_layout("B", "B", lambda i: 15 - i), "transform_layout/P2")


def test_wrong_arguments():
    sch = tw.Schedule(two_steps)
    with pytest.raises(tw.ArgumentError, match="Callable"):
        sch.transform_layout("B", "B", 3)
    with pytest.raises(tw.ArgumentError, match="'list'"):
        sch.transform_layout("B", "B", lambda i, j: ([i], j))
    with pytest.raises(tw.ArgumentError, match="'buffer'"):
        sch.transform_layout("B", ("both", 0), lambda i, j: (j, i))


def test_functions_of_any_number_of_indices():
    sch = check(two_steps, lambda sch: sch.transform_layout("B", "B", lambda *i, k: (*i, k // 4, k % 4)))
    assert "B = T.alloc_buffer((16, 2, 4))" in sch.mod.script()


def interpreted(sch, *arrays):
    copies = [np.array(array) for array in arrays]
    _core.interpret(sch.mod, next(iter(sch.mod.functions)), *copies, timeout=60.0)
    return copies


def test_parameters():
    """Callers pass the new layout."""
    sch = tw.Schedule(two_steps)
    sch.transform_layout("B", "A", lambda i, j: (j // 4, i, j % 4))
    sch.transform_layout("C", "C", lambda i, j: (j, i))
    a = np.arange(128, dtype="float32").reshape(16, 8)
    new_a = map_array(T.index_map(lambda i, j: (j // 4, i, j % 4)), a)
    _, c = interpreted(sch, new_a, np.zeros((8, 16), "float32"))
    np.testing.assert_array_equal(c, ((a + 1) * 2).T)
    check_trace(sch, two_steps)


@T.prim_func
def fourteen(A: T.Buffer(14, "int32"), C: T.Buffer(14, "int32")):
    B = T.alloc_buffer(14, "int32")
    for i in range(14):
        with T.block("B"):
            vi = T.axis.spatial(14, i)
            B[vi] = A[vi] + 1
    for i in range(14):
        with T.block("C"):
            vi = T.axis.spatial(14, i)
            C[vi] = B[vi] * 2


def padded(block, buffer, pad_value, layout=lambda i: (i // 4, i % 4)):
    return lambda sch: sch.transform_layout(block, buffer, layout, pad_value=pad_value)


def test_padding_that_the_writer_fills():
    @T.prim_func
    def after(A: T.Buffer(14, "int32"), C: T.Buffer(14, "int32")):
        B = T.alloc_buffer((4, 4), "int32")
        for i, j in T.grid(4, 4):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = T.if_then_else(vi == 3 and 2 <= vj, 7, A[vi * 4 + vj] + 1)  # noqa: SIM300
        for i in range(14):
            with T.block("C"):
                vi = T.axis.spatial(14, i)
                C[vi] = B[vi // 4, vi % 4] * 2

    sch = check(fourteen, padded("B", "B", 7), after)
    assert "pad_value=7" in str(sch.trace)


@pytest.mark.parametrize(
    ("pad_value", "held"),
    [
        (lambda i, j: i + j, lambda i, j: i + j),
        (T.int32(3), lambda i, j: 3),
        (5, lambda i, j: 5),
        (T.index_map(lambda i, j: i * j), lambda i, j: i * j),
    ],
)
@pytest.mark.parametrize(
    "layout", [lambda i: (i // 4, i % 4), lambda i: (i % 4, i // 4), lambda i: ((i + 1) // 8, (i + 1) % 8)]
)
def test_elements_of_padding(pad_value, held, layout):
    """What a written parameter holds when the function returns."""
    sch = tw.Schedule(fourteen)
    padded("C", "C", pad_value, layout)(sch)
    check_trace(sch, fourteen)
    a = np.arange(14, dtype="int32")
    index_map = T.index_map(layout)
    shape = [extent.value for extent in index_map.map_shape([14])]
    _, c = interpreted(sch, a, np.full(shape, -1, "int32"))
    want = map_array(index_map, (a + 1) * 2)
    is_element = map_array(index_map, np.ones(14, "int32"))
    for i, j in np.ndindex(*shape):
        if not is_element[i, j]:
            want[i, j] = held(i, j)
    np.testing.assert_array_equal(c, want)


def test_padding_behind_other_writers():
    @T.prim_func
    def program(A: T.Buffer(14, "int32"), B: T.Buffer(14, "int32"), C: T.Buffer(14, "int32")):
        for i in range(14):
            with T.block("B"):
                vi = T.axis.spatial(14, i)
                B[vi] = A[vi]
                C[vi] = 0

    sch = tw.Schedule(program)
    padded("B", "B", 9)(sch)
    assert "buffer_B_padding" in sch.mod.script()
    a = np.arange(14, dtype="int32")
    _, b, c = interpreted(sch, a, np.zeros((4, 4), "int32"), np.ones(14, "int32"))
    np.testing.assert_array_equal(b.reshape(-1), [*a, 9, 9])
    np.testing.assert_array_equal(c, 0)


def test_padding_that_callers_fill():
    sch = tw.Schedule(fourteen)
    padded("B", "A", 42)(sch)
    assert "T.assume(not (v_axis0 == 3 and 2 <= v_axis1) or A[v_axis0, v_axis1] == 42)" in sch.mod.script()
    check_trace(sch, fourteen)
    a = np.arange(14, dtype="int32")
    good = np.pad(a, (0, 2), constant_values=42).reshape(4, 4)
    _, c = interpreted(sch, good, np.zeros(14, "int32"))
    np.testing.assert_array_equal(c, (a + 1) * 2)
    np.testing.assert_array_equal(compiled(sch, good, np.zeros(14, "int32"))[1], c)
    with pytest.raises(tw.Error, match="assume"):
        interpreted(sch, np.zeros((4, 4), "int32"), np.zeros(14, "int32"))


def compiled(sch, *arrays):
    copies = [np.array(array) for array in arrays]
    tw.compile(sch.mod)(*copies)
    return copies


def test_padding_that_repeats_elements():
    sch = tw.Schedule(fourteen)
    buffer = sch.get(sch.get_block("C")).writes[0].buffer
    padded("C", "C", lambda i, j: buffer[(4 * i + j) % 14])(sch)
    a = np.arange(14, dtype="int32")
    _, c = interpreted(sch, a, np.zeros((4, 4), "int32"))
    np.testing.assert_array_equal(c.reshape(-1), np.resize((a + 1) * 2, 16))


def test_nests_that_do_not_run_in_order_are_kept():
    @T.prim_func
    def prefix(A: T.Buffer(14, "int32")):
        for i in range(14):
            with T.block("A"):
                vi = T.axis.opaque(14, i)
                T.reads(A[0:14])
                T.writes(A[vi])
                A[vi] = T.if_then_else(vi > 0, A[T.max(vi - 1, 0)], 0) + 1

    sch = tw.Schedule(prefix)
    padded("A", "A", 3, lambda i: (i % 4, i // 4))(sch)
    (a,) = interpreted(sch, np.zeros((4, 4), "int32"))
    want = np.zeros(16, "int32")
    want[:14] = np.arange(1, 15)
    want[14:] = 3
    np.testing.assert_array_equal(a.T.reshape(-1), want)


def test_reductions_with_padding():
    @T.prim_func
    def rows(A: T.Buffer((14, 8), "int32"), C: T.Buffer(14, "int32")):
        B = T.alloc_buffer(14, "int32")
        for i, k in T.grid(14, 8):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = 0
                B[vi] = B[vi] + A[vi, vk]
        for i in range(14):
            with T.block("C"):
                vi = T.axis.spatial(14, i)
                C[vi] = B[vi]

    sch = check(rows, padded("B", "B", 0))
    assert "for axis0, axis1, k in T.grid(4, 4, 8)" in sch.mod.script()


def test_pad_values_that_do_not_fit():
    refused = lambda value, block="B", buffer="B": check_refused(  # noqa: E731
        fourteen, padded(block, buffer, value), "transform_layout/P6"
    )
    refused(0.5)
    refused(T.int8(0))
    refused(lambda i: i)
    refused(lambda i, j: (i, j))
    refused(lambda i, j: T.Cast("float32", i))
    refused(lambda i, j: T.abs(i))
    other = T.Buffer(14, "int32")
    refused(lambda i, j: other[0])
    check_refused(two_steps, lambda sch: tiled(sch, 3, pad_value=0), "transform_layout/P6")
    check_refused(
        two_steps,
        lambda sch: sch.transform_layout("B", "B", lambda i, j: (i, j * 2), pad_value=0.0),
        "transform_layout/P4",
    )


def test_sizes_stay_known():
    @T.prim_func
    def program(a: T.handle, b: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,))
        B = T.match_buffer(b, (8,))
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi]

    layout = lambda i: (i // 4, i % 4)  # noqa: E731
    check_refused(program, lambda sch: sch.transform_layout("B", "A", layout, pad_value=0.0), "transform_layout/P2")


def test_functions_that_are_called():
    @I.ir_module
    class Module:
        @T.prim_func(private=True)
        def inner(A: T.Buffer(16)):
            for i in range(16):
                with T.block("A"):
                    vi = T.axis.spatial(16, i)
                    A[vi] = 0.0

        @T.prim_func
        def main(A: T.Buffer(16)):
            with T.block("call"):
                T.reads()
                T.writes(A[0:16])
                Module.inner(A.data)

    inner = Module["inner"].with_attr("global_symbol", "fill")
    for module, name in ((Module, "inner"), (tw.ir.IRModule({**Module.functions, "inner": inner}), "fill")):
        sch = tw.Schedule(module)
        block = sch.get_block("A", "inner")
        with pytest.raises(tw.ScheduleError, match=f"is a parameter of '{name}', which is called") as error:
            sch.transform_layout(block, "A", lambda i: (i // 4, i % 4))
        assert error.value.code == "transform_layout/P2"


def test_padding_in_a_copy_with_loops_of_its_own():
    """The block that read_at makes runs over the elements inside: it then writes the padding too, and says so."""

    @T.prim_func
    def copy(A: T.Buffer((3, 5), "int32"), B: T.Buffer((2, 3, 5), "int32")):
        for r, i, j in T.grid(2, 3, 5):
            with T.block("B"):
                vr, vi, vj = T.axis.remap("SSS", [r, i, j])
                B[vr, vi, vj] = A[vi, vj]

    def transform(sch):
        sch.read_at(sch.get_loops("B")[0], "B", 0, "global")
        sch.transform_layout("A_global", "A_global", lambda i, j: (i // 2, j // 2, i % 2, j % 2), pad_value=7)

    text = check(copy, transform).mod.script()
    assert "T.writes(A_global[0:2, 0:3, 0:2, 0:2])" in text


def test_p7_padding_is_filled_in_steps_of_no_reduction():
    """Lanes add up what they have of an element; they do not choose between that and the padding."""

    def transform(sch):
        sch.vectorize(sch.get_loops("C")[2])
        sch.transform_layout("C", "C", lambda i, j: (i, j // 4, j % 4), pad_value=1.0)

    product = workloads.matmul(4, 6, 5)
    check(product, lambda sch: sch.vectorize(sch.get_loops("C")[2]))

    @T.prim_func
    def sums(A: T.Buffer((4, 6, 8)), D: T.Buffer((4, 6))):
        C = T.alloc_buffer((4, 6))
        for i, j, k in T.grid(4, 6, 8):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = T.max(C[vi, vj], A[vi, vj, vk])
        for i, j in T.grid(4, 6):
            with T.block("D"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vi, vj] = C[vi, vj]

    check_refused(sums, transform, "transform_layout/P7")


def test_padding_behind_a_loop_takes_its_buffer_out_of_it():
    """Which each iteration has to have for itself."""

    @T.prim_func
    def copies(A: T.Buffer((6,)), C: T.Buffer((3, 6))):
        for p, i in T.grid(3, 6):
            with T.block("C"):
                vp, vi = T.axis.remap("SS", [p, i])
                C[vp, vi] = A[vi] + A[5 - vi]

    def transform(sch):
        sch.cache_read("C", 0, "local")
        sch.compute_at("A_local", sch.get_loops("C")[0])
        sch.parallel(sch.get_loops("C")[0])
        sch.split(sch.get_loops("A_local")[1], [None, 4])
        sch.transform_layout("A_local", "A_local", lambda i: (i // 4, i % 4), pad_value=1.0)

    check_refused(copies, transform, "transform_layout/P7")


def test_a_buffer_of_nothing_stays_one():
    """Every second element of an array of `n`: of none where n is 0, not of -1."""

    @T.prim_func
    def twice(p: T.handle, q: T.handle):
        n = T.int32()
        A = T.match_buffer(p, (n,))
        C = T.match_buffer(q, (n,))
        B = T.alloc_buffer((n,))
        for i in range(n):
            with T.block("B"):
                v = T.axis.spatial(n, i)
                B[v] = A[v] + T.float32(1)
        for i in range(n):
            with T.block("C"):
                v = T.axis.spatial(n, i)
                C[v] = B[v] * T.float32(2)

    sch = tw.Schedule(twice)
    sch.transform_layout("B", ("write", 0), lambda i: (i * 2,), assume_injective_transform=True)
    for target in ("interpreter", "native"):
        kernel = tw.compile(sch, target=target)
        for n in (0, 3):
            a, c = np.arange(n, dtype="float32"), np.zeros(n, "float32")
            kernel(a, c)
            np.testing.assert_array_equal(c, (a + 1) * 2)


@pytest.mark.parametrize("chosen", ["I[vi]", "I[vi] % 6"])
def test_elements_that_data_select(chosen):
    """Nobody knows which digits of the new place they have: such dimensions count as a whole."""
    func = tw.script.from_source(f"""
@T.prim_func
def main(A: T.Buffer((6,)), I: T.Buffer((4,), "int32"), C: T.Buffer((4,))):
    B = T.alloc_buffer((6,))
    for i in range(6):
        with T.block("B"):
            vi = T.axis.spatial(6, i)
            B[vi] = A[vi] + T.float32(1)
    for i in range(4):
        with T.block("C"):
            vi = T.axis.spatial(4, i)
            C[vi] = B[{chosen}]
""")
    sch = tw.Schedule(func)
    sch.transform_layout("B", ("write", 0), lambda i: (i // 4, i % 4), assume_injective_transform=True)
    tw.ir.verify(sch.mod)
    assert "T.reads(B[0:2, 0:4]" in sch.mod.script()
    a, index, c = np.arange(6, dtype="float32"), np.array([5, 0, 3, 4], "int32"), np.zeros(4, "float32")
    for kernel in (tw.compile(sch), tw.compile(sch, "interpreter")):
        kernel(a, index, c)
        np.testing.assert_array_equal(c, a[index] + 1)


@pytest.mark.parametrize("index", ["I[v] % 6 + 1", "I[v] % 6 * 2 % 8", "(I[v] % 9 + I[7 - v] % 3) % 9", "I[v] % 6"])
def test_data_that_a_remainder_bounds_stay_bounded(index):
    """(I % 6 + 1) % 3 is not (I + 1) % 3 where I is the largest number: the sum would overflow."""
    program = tw.script.from_source(f"""
@T.prim_func
def main(I: T.Buffer((8,), "int32"), X: T.Buffer((9,), "int32"), B: T.Buffer((8,), "int32")):
    P = T.alloc_buffer((9,), "int32")
    for i in range(9):
        with T.block("P"):
            v = T.axis.spatial(9, i)
            P[v] = X[v]
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            B[v] = P[{index}]
""")
    sch = tw.Schedule(program)
    sch.transform_layout("P", ("write", 0), lambda k: (k % 3, k // 3))
    data = np.array([2**31 - 1, 2**31 - 2, -(2**31), 5, 0, 1, 2, -1], "int32")
    values = np.arange(9, dtype="int32") * 10
    places = [eval(index, {"I": data.astype("int64"), "v": v}) for v in range(8)]
    for target in ("interpreter", "native"):
        found = np.zeros(8, "int32")
        tw.compile(sch, target=target)(data, values, found)
        assert found.tolist() == values[places].tolist(), sch.mod.script()


def test_a_buffer_without_elements_stays_one():
    """Every second element of none: the shape is 0, and not 2 * 0 - 1."""

    @T.prim_func
    def before(A: T.Buffer((0, 4)), C: T.Buffer((0, 4))):
        B = T.alloc_buffer((0, 4))
        for i, j in T.grid(0, 4):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj]
        for i, j in T.grid(0, 4):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, vj]

    sch = tw.Schedule(before)
    sch.transform_layout("B", ("write", 0), lambda i, j: (i * 2, j), assume_injective_transform=True)
    (buffer,) = sch.mod["main"].body.block.alloc_buffers
    assert [int(extent.value) for extent in buffer.shape] == [0, 4]
    empty = np.zeros((0, 4), "float32")
    for target in ("interpreter", "native"):
        tw.compile(sch, target=target)(empty, empty.copy())


@pytest.mark.parametrize("pad", [float("inf"), float("-inf"), float("nan"), 0.1, -0.0])
def test_padding_values_of_traces(pad: float):
    """JSON has no numbers that are not finite: a maximum is padded with one."""

    @T.prim_func
    def before(A: T.Buffer((14,)), C: T.Buffer((14,))):
        B = T.alloc_buffer((14,))
        for i in range(14):
            with T.block("B"):
                v = T.axis.spatial(14, i)
                B[v] = A[v]
        for i in range(14):
            with T.block("C"):
                v = T.axis.spatial(14, i)
                C[v] = B[v]

    sch = tw.Schedule(before)
    sch.transform_layout("B", ("write", 0), lambda i: (i // 4, i % 4), pad_value=pad)
    again = tw.Schedule(before)
    tw.Trace.apply_json_to_schedule(json.loads(json.dumps(sch.trace.as_json(), allow_nan=False)), again)
    tw.ir.assert_structural_equal(again.mod, sch.mod)
    assert str(again.trace) == str(sch.trace)
    tw.ir.assert_structural_equal(pickle.loads(pickle.dumps(sch)).mod, sch.mod)
