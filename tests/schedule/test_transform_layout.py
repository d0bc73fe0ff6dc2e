import pytest

import tilewright as tw
from tilewright.script import tir as T
from tilewright.testing import check, check_refused


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
    refused("transform_layout/P2", lambda i, j: (j, i), buffer="A")
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
    with pytest.raises(tw.ArgumentError, match="any number of indices"):
        sch.transform_layout("B", "B", lambda *i: i)
    with pytest.raises(tw.ArgumentError, match="'list'"):
        sch.transform_layout("B", "B", lambda i, j: ([i], j))
    with pytest.raises(tw.ArgumentError, match="'buffer'"):
        sch.transform_layout("B", ("both", 0), lambda i, j: (j, i))
