"""compute_inline and reverse_compute_inline."""

import random

import numpy as np
import pytest

import tilewright as tw
from tilewright import Schedule
from tilewright.script import from_source
from tilewright.script import tir as T
from tilewright.testing import check, check_refused, workloads


def inline(block):
    return lambda sch: sch.compute_inline(sch.get_block(block))


def reverse(block):
    return lambda sch: sch.reverse_compute_inline(sch.get_block(block))


def test_a_chain_becomes_one_block():
    @T.prim_func
    def after(A: T.Buffer((4, 6)), D: T.Buffer((4, 6))):
        for i, j in T.grid(4, 6):
            with T.block("D"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vi, vj] = (A[vi, vj] + T.float32(1)) * T.float32(2) - A[vi, vj]

    def forwards(sch):
        sch.compute_inline("B")
        sch.compute_inline("C")

    def backwards(sch):
        sch.reverse_compute_inline("C")
        sch.reverse_compute_inline("D")

    chain = workloads.elementwise_chain(4, 6)
    check(chain, forwards, after)
    check(chain, backwards, after)


def test_a_value_is_not_built_anew_where_the_consumer_can_take_the_axes():
    sch = Schedule(workloads.elementwise_chain(4, 6))
    value = sch.get(sch.get_block("B")).body.value
    sch.compute_inline("B")
    assert sch.get(sch.get_block("C")).body.value.a.same_as(value)
    value = sch.get(sch.get_block("C")).body.value
    sch.compute_inline("C")
    assert sch.get(sch.get_block("D")).body.value.a.same_as(value)


def test_axes_are_not_taken_where_an_element_is_read_the_other_way_round():
    @T.prim_func
    def before(A: T.Buffer((6, 6)), C: T.Buffer((6, 6))):
        B = T.alloc_buffer((6, 6))
        for i, j in T.grid(6, 6):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] + T.float32(1)
        for i, j in T.grid(6, 6):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, vj] - B[vj, vi]

    @T.prim_func
    def after(A: T.Buffer((6, 6)), C: T.Buffer((6, 6))):
        for i, j in T.grid(6, 6):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj] + T.float32(1) - (A[vj, vi] + T.float32(1))

    check(before, inline("B"), after)


@pytest.mark.parametrize("transform", [inline("B"), reverse("C")])
def test_indices_that_are_axes_in_other_words(transform):
    @T.prim_func
    def digits(A: T.Buffer((40,)), C: T.Buffer((40,))):
        B = T.alloc_buffer((40,))
        for i in range(40):
            with T.block("B"):
                v = T.axis.spatial(40, i)
                B[v // 8 * 8 + v % 8] = A[v] + T.float32(1)
        for i in range(40):
            with T.block("C"):
                v = T.axis.spatial(40, i)
                C[v] = B[v // 10 * 10 + v % 10] * T.float32(2)

    check(digits, transform)


# Stored at, loaded at, the shape between: maps that are one to one.
ONE_TO_ONE = [
    ("7 - vi, vj", "vi, vj", (8, 6)),
    ("vi, vj", "7 - vi, vj", (8, 6)),
    ("7 - vi, vj", "vi, 5 - vj", (8, 6)),
    ("vj, 7 - vi", "5 - vj, vi", (6, 8)),
    ("vi // 4, vj, vi % 4", "(7 - vi) // 4, 5 - vj, (7 - vi) % 4", (2, 6, 4)),
    ("vi * 6 + vj,", "47 - (vi * 6 + vj),", (48,)),
]


@pytest.mark.parametrize("transform", [inline("B"), reverse("C")])
@pytest.mark.parametrize(("stored", "loaded", "shape"), ONE_TO_ONE)
def test_indices_that_tell_the_axes(transform, stored, loaded, shape):
    program = from_source(f"""
@T.prim_func
def main(A: T.Buffer((8, 6)), C: T.Buffer((8, 6))):
    B = T.alloc_buffer({shape})
    for i, j in T.grid(8, 6):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[{stored}] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(8, 6):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[{loaded}] + T.float32(1)
""")
    check(program, transform)


@pytest.mark.parametrize("seed", range(40))
def test_into_a_producer_that_computes_more_than_is_read(seed):
    """Rows and columns from an offset on, in order or backwards; what is read is checked by NumPy."""
    rng = random.Random(seed)
    shape, loaded, read = (rng.randint(3, 9), rng.randint(3, 9)), [], []
    extents = [rng.randint(1, extent) for extent in shape]
    for d, (extent, part) in enumerate(zip(shape, extents, strict=True)):
        offset = rng.randint(0, extent - part)
        reverse_order = rng.random() < 0.3
        loaded.append(f"{offset + part - 1} - v{d}" if reverse_order else f"v{d} + {offset}")
        read.append(np.arange(offset, offset + part)[:: -1 if reverse_order else 1])
    value = rng.choice(["{b} + T.int32(1)", "{b} * {b}", "{b} + D[v0, v1]", "T.if_then_else(v0 > v1, {b}, D[v0, v1])"])
    program = from_source(f"""
@T.prim_func
def main(A: T.Buffer({shape}, "int32"), D: T.Buffer({tuple(extents)}, "int32"), C: T.Buffer({tuple(extents)}, "int32")):
    B = T.alloc_buffer({shape}, "int32")
    for i, j in T.grid{shape}:
        with T.block("B"):
            v0, v1 = T.axis.remap("SS", [i, j])
            B[v0, v1] = A[v0, v1] * 2
    for i, j in T.grid{tuple(extents)}:
        with T.block("C"):
            v0, v1 = T.axis.remap("SS", [i, j])
            C[v0, v1] = {value.format(b=f"B[{', '.join(loaded)}]")}
""")
    sch = tw.Schedule(program)
    sch.reverse_compute_inline("C")
    assert "alloc_buffer" not in sch.mod.script()
    draw = np.random.default_rng(seed)
    a, d = draw.integers(-99, 99, shape).astype("int32"), draw.integers(-99, 99, extents).astype("int32")
    b = (2 * a)[np.ix_(*read)]
    rows, columns = np.indices(extents)
    expected = {"{b} + T.int32(1)": b + 1, "{b} * {b}": b * b, "{b} + D[v0, v1]": b + d}
    for target in ["interpreter", "native"]:
        c = np.full(extents, 7777, "int32")
        tw.compile(sch, target)(a, d, c)
        np.testing.assert_array_equal(c, expected.get(value, np.where(rows > columns, b, d)))


def test_padding_into_a_convolution():
    sch = check(workloads.conv1d(8, 3, 2), inline("pad"))
    assert "T.if_then_else" in sch.mod.script() and "alloc_buffer" not in sch.mod.script()


def test_into_tiled_and_parallel_loops():
    def transform(sch):
        i, _ = sch.get_loops("C")
        i_0, _ = sch.split(i, [None, 3])
        sch.parallel(i_0)
        sch.compute_inline("B")

    check(workloads.elementwise_chain(4, 6), transform)

    def backwards(sch):
        sch.split(sch.get_loops("B")[0], [None, 3])
        sch.reverse_compute_inline("C")

    check(workloads.elementwise_chain(4, 6), backwards)


def test_a_transposing_consumer():
    @T.prim_func
    def before(A: T.Buffer((4, 6)), C: T.Buffer((6, 4))):
        B = T.alloc_buffer((4, 6))
        for i, j in T.grid(4, 6):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] + T.float32(1)
        for i, j in T.grid(6, 4):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vj, vi] * T.float32(2)

    check(before, inline("B"))
    check(before, reverse("C"))


@T.prim_func
def two_writers(A: T.Buffer((8,)), C: T.Buffer((8,))):
    B = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]
    for i in range(8):
        with T.block("B2"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] * T.float32(2)
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi]


@T.prim_func
def shifted(A: T.Buffer((8,)), C: T.Buffer((8,))):
    B = T.alloc_buffer((9,))
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi + 1] = A[vi]
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi + 1]


@T.prim_func
def unused(A: T.Buffer((8,))):
    B = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]


@T.prim_func
def input_overwritten(A: T.Buffer((8,)), C: T.Buffer((8,))):
    B = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]
    for i in range(8):
        with T.block("A"):
            vi = T.axis.spatial(8, i)
            A[vi] = T.float32(0)
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi]


@T.prim_func
def half(A: T.Buffer((8,)), C: T.Buffer((8,))):
    B = T.alloc_buffer((8,))
    for i in range(4):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi]


@T.prim_func
def smaller(A: T.Buffer((8,)), C: T.Buffer((8,))):
    B = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]
    for i in range(4):
        with T.block("C"):
            vi = T.axis.spatial(4, i)
            C[vi] = B[vi]


@T.prim_func
def guarded(A: T.Buffer((8,)), C: T.Buffer((8,))):
    B = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            T.where(i < 4)
            C[vi] = B[vi]


@T.prim_func
def every_other(A: T.Buffer((7,)), C: T.Buffer((7,))):
    """What a producer has more than its consumer takes is in no box of the elements that are written."""
    B = T.alloc_buffer((7,))
    for i in range(7):
        with T.block("B"):
            vi = T.axis.spatial(7, i)
            B[vi] = A[vi]
    for i in range(4):
        with T.block("C"):
            vi = T.axis.spatial(7, i * 2)
            C[vi] = B[vi]


@T.prim_func
def not_all(A: T.Buffer((7,)), C: T.Buffer((7,))):
    B = T.alloc_buffer((7,))
    for i in range(7):
        with T.block("B"):
            vi = T.axis.spatial(7, i)
            B[vi] = A[vi]
    for i in range(7):
        with T.block("C"):
            vi = T.axis.spatial(7, i)
            T.where(i != 3)
            C[vi] = B[vi]


@T.prim_func
def packed(A: T.Buffer((5, 8)), C: T.Buffer((5, 7))):
    B = T.alloc_buffer((2, 8, 4))
    for i, j, k in T.grid(2, 8, 4):
        with T.block("B"):
            vi, vj, vk = T.axis.remap("SSS", [i, j, k])
            B[vi, vj, vk] = T.if_then_else(vi * 4 + vk < 5, A[T.min(vi * 4 + vk, 4), vj], T.float32(0))
    for i, j in T.grid(5, 7):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi // 4, vj, vi % 4] * T.float32(2)


@T.prim_func
def digits(A: T.Buffer((35,)), C: T.Buffer((5, 7))):
    B = T.alloc_buffer((5, 7))
    for i, j in T.grid(7, 5):
        with T.block("B"):
            v = T.axis.spatial(35, i * 5 + j)
            B[v // 7, v % 7] = A[v]
    for i, j in T.grid(5, 7):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] * T.float32(2)


@T.prim_func
def late_input(A: T.Buffer((8,)), C: T.Buffer((8,))):
    B = T.alloc_buffer((8,))
    X = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]
    for i in range(8):
        with T.block("X"):
            vi = T.axis.spatial(8, i)
            X[vi] = A[vi] + T.float32(1)
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi] + X[vi]


@T.prim_func
def read_before(A: T.Buffer((8,)), C: T.Buffer((8,)), D: T.Buffer((8,))):
    B = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]
    for i in range(8):
        with T.block("D"):
            vi = T.axis.spatial(8, i)
            D[vi] = C[vi]
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi]


@T.prim_func
def viewed(A: T.Buffer((8,)), C: T.Buffer((8,))):
    B = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            T.reads(B[vi])
            T.writes(C[vi])
            V = T.match_buffer(B[vi], (1,))
            C[vi] = V[0]


@T.prim_func
def vector_code(A: T.Buffer((8,)), D: T.Buffer((8,))):
    B = T.alloc_buffer((8,))
    C = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]
    for i in range(2):
        with T.block("C"):
            vi = T.axis.spatial(2, i)
            C[T.Ramp(vi * 4, 1, 4)] = B[T.Ramp(vi * 4, 1, 4)]
    for i in range(8):
        with T.block("D"):
            vi = T.axis.spatial(8, i)
            D[vi] = C[vi]


@T.prim_func
def unread(A: T.Buffer((8,)), C: T.Buffer((8,))):
    B = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = A[vi] * T.float32(2)


def test_a_block_that_nobody_reads_goes():
    sch = check(unread, inline("B"))
    assert "B" not in [node.name_hint for node in blocks(sch)] and "alloc_buffer" not in sch.mod.script()
    check_refused(unused, inline("B"), "compute_inline/P4")  # nothing would be left


def blocks(sch):
    return [sch.get(block) for block in sch.get_child_blocks(sch.get_block("root"))]


def test_conditions_and_bindings_that_read_the_buffer():
    @T.prim_func
    def chosen(A: T.Buffer((8, 8), "int32"), C: T.Buffer((8, 8), "int32")):
        B = T.alloc_buffer((8, 8), "int32")
        for i, j in T.grid(8, 8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * 2
        for i, j in T.grid(8, 8):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.where(B[i, j] < 4)
                C[vi, vj] = B[vi, vj] + 1

    @T.prim_func
    def after(A: T.Buffer((8, 8), "int32"), C: T.Buffer((8, 8), "int32")):
        for i, j in T.grid(8, 8):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.where(A[i, j] * 2 < 4)
                C[vi, vj] = A[vi, vj] * 2 + 1

    sch = check(chosen, inline("B"), after)
    a = np.arange(-32, 32, dtype="int32").reshape(8, 8)
    c = np.full((8, 8), 7, "int32")
    tw.compile(sch)(a, c)
    np.testing.assert_array_equal(c, np.where(a * 2 < 4, a * 2 + 1, 7))


@pytest.mark.parametrize("where", ["B[i, j] < 4", "B[0, 0] < 4", "B[7 - i, j] < 4 and i < 5"])
def test_a_condition_that_reads_the_buffer_keeps_the_consumer(where):
    program = from_source(f"""@T.prim_func
def main(A: T.Buffer((8, 8), "int32"), C: T.Buffer((8, 8), "int32")):
    B = T.alloc_buffer((8, 8), "int32")
    for i, j in T.grid(8, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2
    for i, j in T.grid(8, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.where({where})
            C[vi, vj] = B[vi, vj] + 1
""")
    with pytest.raises(tw.ScheduleError, match="'B' says where, or whether, block 'C' runs") as error:
        reverse("C")(Schedule(program))
    assert error.value.code == "reverse_compute_inline/P6" and "compute_inline()" in error.value.hint
    check(program, inline("B"))


def test_a_binding_that_reads_the_buffer_keeps_the_consumer():
    program = from_source("""@T.prim_func
def main(I: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    B = T.alloc_buffer((8,), "int32")
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            B[v] = I[v] % 8
    for i in range(8):
        with T.block("C"):
            v = T.axis.spatial(8, B[i])
            C[v] = B[v] + 1
""")
    check_refused(program, reverse("C"), "reverse_compute_inline/P6")


def test_a_condition_that_follows_from_another_is_not_asked():
    """Of ten elements that are computed in tiles, eight are read: the tiles end there."""

    @T.prim_func
    def before(A: T.Buffer((10,)), C: T.Buffer((8,))):
        B = T.alloc_buffer((10,))
        for i, j in T.grid(3, 4):
            with T.block("B"):
                T.where(i * 4 + j < 10)
                v = T.axis.spatial(10, i * 4 + j)
                B[v] = A[v] * T.float32(2)
        for i in range(8):
            with T.block("C"):
                v = T.axis.spatial(8, i)
                C[v] = B[v] + T.float32(1)

    @T.prim_func
    def after(A: T.Buffer((10,)), C: T.Buffer((8,))):
        for i, j in T.grid(3, 4):
            with T.block("B"):
                T.where(i * 4 + j < 8)
                v = T.axis.spatial(10, i * 4 + j)
                C[v] = A[v] * T.float32(2) + T.float32(1)

    check(before, reverse("C"), after)


def test_what_stands_behind_pointers_stays():
    """Of a consumer that passes a pointer on, and beside a block that fills a buffer behind one."""

    @T.prim_func
    def looked_up(table: T.Buffer((16,), "int8"), A: T.Buffer((8,)), C: T.Buffer((8,))):
        B = T.alloc_buffer((8,))
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi] * T.float32(2)
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                T.reads(B[vi], table[0:16])
                T.writes(C[vi])
                T.evaluate(table.access_ptr("r"))
                C[vi] = B[vi] + T.float32(1)

    sch = Schedule(looked_up)
    sch.compute_inline("B")
    (consumer,) = blocks(sch)
    assert [read.buffer.name for read in consumer.reads] == ["table", "A"]
    assert "C[vi] = A[vi] * T.float32(2.0) + T.float32(1.0)" in sch.mod.script()

    @T.prim_func
    def filled(A: T.Buffer((16,)), C: T.Buffer((8,))):
        F = T.alloc_buffer((16,))
        B = T.alloc_buffer((8,))
        with T.block("fill"):
            T.reads(A[0:8])
            T.writes(F[0:8])
            T.evaluate(T.call_extern("int32", "fill", A.access_ptr("r", extent=8), F.access_ptr("w", extent=8)))
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = F[vi] * T.float32(2)
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = B[vi] + T.float32(1)

    for transform in (inline("B"), reverse("C")):
        sch = Schedule(filled)
        transform(sch)
        assert "C[vi] = F[vi] * T.float32(2.0) + T.float32(1.0)" in sch.mod.script()
        assert [str(write.region[0].extent) for write in blocks(sch)[0].writes] == ["8"]


def test_what_is_filled_again_before_the_consumer_is_no_longer_what_was_read():
    @T.prim_func
    def refilled(A: T.Buffer((8,)), C: T.Buffer((8,))):
        F = T.alloc_buffer((8,))
        B = T.alloc_buffer((8,))
        for k in range(1):
            with T.block("fill"):
                T.reads()
                T.writes(F[0:8])
                T.evaluate(T.call_extern("int32", "fill", F.access_ptr("w")))
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = F[vi]
        with T.block("again"):
            T.reads()
            T.writes(F[0:8])
            T.evaluate(T.call_extern("int32", "fill", F.access_ptr("w")))
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = B[vi]

    check_refused(refilled, inline("B"), "compute_inline/P5")


@pytest.mark.parametrize(
    ("program", "transform", "code"),
    [
        (vector_code, inline("B"), "compute_inline/P4"),
        (vector_code, inline("C"), "compute_inline/P1"),
        (vector_code, reverse("C"), "reverse_compute_inline/P1"),
        (vector_code, reverse("D"), "reverse_compute_inline/P2"),
        (workloads.matmul_relu(4, 4, 4), inline("C"), "compute_inline/P1"),
        (workloads.elementwise_chain(4, 4), inline("D"), "compute_inline/P2"),
        (two_writers, inline("B"), "compute_inline/P2"),
        (shifted, inline("B"), "compute_inline/P3"),
        (unused, inline("B"), "compute_inline/P4"),
        (viewed, inline("B"), "compute_inline/P4"),
        (input_overwritten, inline("B"), "compute_inline/P5"),
        (half, inline("B"), "compute_inline/P6"),
        (workloads.matmul(4, 4, 4), reverse("C"), "reverse_compute_inline/P1"),
        (workloads.matmul_relu(4, 4, 4), reverse("D"), "reverse_compute_inline/P2"),
        (late_input, reverse("C"), "reverse_compute_inline/P2"),
        (workloads.transpose(4, 4), reverse("B"), "reverse_compute_inline/P2"),
        (workloads.pool(4), reverse("C"), "reverse_compute_inline/P3"),
        (read_before, reverse("C"), "reverse_compute_inline/P4"),
        (half, reverse("C"), "reverse_compute_inline/P5"),
        (every_other, reverse("C"), "reverse_compute_inline/P6"),
        (not_all, reverse("C"), "reverse_compute_inline/P6"),
    ],
)
def test_refusals(program, transform, code):
    check_refused(program, transform, code)


def test_all_values_of_an_axis_reach_all_of_its_digits():
    sch = check(digits, reverse("C"))
    assert "C[v // 7, v % 7] = A[v] * T.float32(2" in sch.mod.script()


@pytest.mark.parametrize(
    ("program", "condition"),
    [(smaller, "T.where(i < 4)"), (guarded, "T.where(i < 4)"), (packed, "T.where(i * 4 + k < 5 and j < 7)")],
)
def test_a_consumer_of_a_part_runs_under_a_condition(program, condition):
    sch = check(program, reverse("C"))
    assert condition in sch.mod.script()
    assert "B = T.alloc_buffer" not in sch.mod.script()


def test_reverse_of_a_consumer_that_is_larger_than_what_it_reads():
    @T.prim_func
    def padded(A: T.Buffer((3,)), C: T.Buffer((5,))):
        B = T.alloc_buffer((3,))
        for i in range(3):
            with T.block("B"):
                v = T.axis.spatial(3, i)
                B[v] = A[v] * T.float32(2)
        for i in range(5):
            with T.block("C"):
                v = T.axis.spatial(5, i)
                C[v] = T.if_then_else(v < 3, B[v], T.float32(1))

    check_refused(padded, lambda sch: sch.reverse_compute_inline("C"), "reverse_compute_inline/P6")


# ---- into loops that stand in a block, as write_at leaves them


@T.prim_func
def cut_off(A: T.Buffer((16, 8)), C: T.Buffer((13, 7))):
    B = T.alloc_buffer((16, 8))
    for i, j in T.grid(16, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(13, 7):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.max(B[vi, vj], T.float32(0))


@T.prim_func
def taken_apart(A: T.Buffer((16, 8)), C: T.Buffer((8, 4, 4))):
    B = T.alloc_buffer((16, 8))
    for i, j in T.grid(16, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for j, i, k in T.grid(8, 4, 4):
        with T.block("C"):
            vj, vi, vk = T.axis.remap("SSS", [j, i, k])
            C[vj, vi, vk] = B[vi * 4 + vk, vj] + T.float32(1)


def through_a_copy(*factors):
    def transform(sch):
        outer, _ = sch.split(sch.get_loops("B")[0], factors)
        sch.write_at(outer, "B", 0, "local")
        sch.reverse_compute_inline("C")

    return transform


@pytest.mark.parametrize(
    ("program", "factors", "written"),
    [
        (cut_off, (4, 4), "if v0 * 4 + ax0 < 13 and ax1 < 7"),
        (cut_off, (1, 16), "if ax0 < 13 and ax1 < 7"),
        (taken_apart, (8, 2), "C[ax1, v0 // 2, v0 % 2 * 2 + ax0] = B_local"),
        (taken_apart, (2, 8), "C[ax1, v0 * 2 + ax0 // 4, ax0 % 4] = B_local"),
    ],
)
def test_into_loops_in_a_block(program, factors, written):
    sch = check(program, through_a_copy(*factors))
    text = sch.mod.script()
    assert written in text and "B = T.alloc_buffer" not in text
    (copy,) = [block for block in sch.get_child_blocks("root") if sch.get(block).name_hint == "B_local"]
    assert sch.get(copy).annotations["auto_copy"] == 1


def test_into_loops_in_a_block_that_would_write_something_else():
    @T.prim_func
    def larger(A: T.Buffer((4,)), C: T.Buffer((6,))):
        B = T.alloc_buffer((4,))
        for i in range(4):
            with T.block("B"):
                v = T.axis.spatial(4, i)
                B[v] = A[v] * T.float32(2)
        for i in range(6):
            with T.block("C"):
                v = T.axis.spatial(6, i)
                C[v] = T.if_then_else(v < 4, B[v], T.float32(1))

    check_refused(larger, through_a_copy(2, 2), "reverse_compute_inline/P6")
    # Of the last iteration nothing is left.
    check_refused(cut_off, through_a_copy(8, 2), "reverse_compute_inline/P6")


def gather(value, index, domain=""):
    return from_source(f"""
@T.prim_func
def main(D: T.Buffer((8,), "int32"), X: T.Buffer((64,), "int32"), B: T.Buffer((8,), "int32")):
    t = T.alloc_buffer((8,), "int32")
    {domain}
    for i in range(8):
        with T.block("t"):
            vi = T.axis.spatial(8, i)
            t[vi] = {value}
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = {index}
""")


@pytest.mark.parametrize("code", ["compute_inline/P7", "reverse_compute_inline/P7"])
@pytest.mark.parametrize(
    ("value", "index", "domain", "accepted"),
    [
        ("D[vi] * 65536 + 5", "X[T.max(T.min(t[vi], 63), 0)]", "", False),
        ("D[vi] + 1", "X[t[vi]]", "", False),
        ("D[vi] + 1", "X[t[vi]]", "T.assume_buffer_domain(D, [0, 63])", True),
        ("D[vi] % 8 * 4 + vi", "X[t[vi]]", "", True),
        ("D[vi]", "X[t[vi] % 64]", "", True),
        ("D[vi] * 65536 + 5", "X[vi] + t[vi]", "", True),
    ],
)
def test_data_that_wrap_become_no_index(code, value, index, domain, accepted):
    """A stored value wraps: 65536 * 65536 + 5 is 5. As an index it would be computed in 64 bits."""
    sch = tw.Schedule(gather(value, index, domain))
    step = code.partition("/")[0]
    block = "t" if step == "compute_inline" else "B"
    if not accepted:
        with pytest.raises(tw.ScheduleError, match="as an index") as error:
            getattr(sch, step)(block)
        assert error.value.code == code and "assume_buffer_domain" in error.value.hint
    else:
        getattr(sch, step)(block)
    d, x, b = np.array([0, 17, 1, 62, 3, 7, 5, 2], "int32"), np.arange(64, dtype="int32") * 10, np.zeros(8, "int32")
    if "65536" in value:
        d *= 65536
    tw.compile(sch)(d, x, b)
    expected = []
    for vi, number in enumerate(d.tolist()):
        t = (eval(value.replace("D[vi]", "number"), {"number": number, "vi": vi}) + 2**31) % 2**32 - 2**31
        names = {"t": dict.fromkeys(range(8), t), "vi": vi, "X": x.tolist(), "max": max, "min": min}
        expected.append((eval(index.replace("T.", ""), names) + 2**31) % 2**32 - 2**31)
    assert b.tolist() == expected
