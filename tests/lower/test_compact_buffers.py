"""compact_buffers: allocations of what is used of them."""

import warnings

import numpy as np
import pytest

import tilewright as tw
from tilewright.script import tir as T

from .passes import allocations


@pytest.mark.parametrize(("scope", "rows"), [("global", 6), ("local", 6)])
def test_tiles_with_a_tail_have_the_size_of_a_tile(scope: str, rows: int) -> None:
    @T.prim_func
    def program(A: T.Buffer((100,), "float32"), B: T.Buffer((100,), "float32")):
        with T.block("root"):
            t = T.alloc_buffer((100,), scope=scope)
            for i in range(17):
                for a in range(6):
                    with T.block("t"):
                        T.where(i * 6 + a < 100)
                        v = T.axis.spatial(100, i * 6 + a)
                        t[v] = A[v]
                for a in range(6):
                    with T.block("B"):
                        T.where(i * 6 + a < 100)
                        v = T.axis.spatial(100, i * 6 + a)
                        B[v] = t[v]

    assert allocations(program, "compact_buffers") == {"t": ("i", [rows])}


def test_halos_are_part_of_the_region() -> None:
    @T.prim_func
    def program(A: T.Buffer((66,), "float32"), B: T.Buffer((64,), "float32")):
        with T.block("root"):
            t = T.alloc_buffer((66,))
            for i in range(8):
                for a in range(10):
                    with T.block("t"):
                        v = T.axis.spatial(66, i * 8 + a)
                        t[v] = A[v]
                for a in range(8):
                    with T.block("B"):
                        v = T.axis.spatial(64, i * 8 + a)
                        B[v] = t[v] + t[v + 1] + t[v + 2]

    assert allocations(program, "compact_buffers") == {"t": ("i", [10])}


def test_rows_are_padded_where_a_block_asks_for_it() -> None:
    @T.prim_func
    def program(A: T.Buffer((8, 64), "float32"), B: T.Buffer((8, 64), "float32")):
        with T.block("root"):
            t = T.alloc_buffer((8, 64))
            for i, j in T.grid(8, 64):
                with T.block("t"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    T.block_attr({"buffer_dim_align": [[0, 0, 32, 16]]})
                    t[vi, vj] = A[vi, vj]
            for i, j in T.grid(8, 64):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = t[vi, vj]

    assert "t_1[i * 80 + j]" in tw.lower(program, after="flatten_buffers").script()


def test_what_is_read_at_places_from_data_is_declared_as_a_whole_after_its_rows_have_shrunk() -> None:
    @T.prim_func
    def program(A: T.Buffer((8,), "float32"), I: T.Buffer((8,), "int32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("O"):
                vi = T.axis.spatial(8, i)
                T.reads(A[0 : vi + 1], I[vi])
                T.writes(B[vi])
                t = T.alloc_buffer((vi + 1,))
                for x in range(vi + 1):
                    with T.block("t"):
                        v = T.axis.spatial(vi + 1, x)
                        t[v] = A[v]
                with T.block("B"):
                    v = T.axis.spatial(1, 0)
                    T.reads(t[0 : vi + 1], I[vi])
                    T.writes(B[vi])
                    B[vi] = t[I[vi]]

    assert allocations(program, "compact_buffers") == {"t": ("i", [8])}
    a, b = np.arange(8, dtype="float32"), np.zeros(8, "float32")
    tw.compile(program)(a, np.arange(8, dtype="int32") // 2, b)
    np.testing.assert_array_equal(b, np.arange(8) // 2)


def test_views_of_all_of_a_buffer_keep_their_shape_when_its_rows_shrink() -> None:
    @T.prim_func
    def program(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("O"):
                vi = T.axis.spatial(8, i)
                T.reads(A[0 : vi + 1])
                T.writes(B[vi])
                t = T.alloc_buffer((vi + 1,))
                for x in range(vi + 1):
                    with T.block("t"):
                        v = T.axis.spatial(vi + 1, x)
                        t[v] = A[v]
                with T.block("B"):
                    v = T.axis.spatial(1, 0)
                    T.reads(t[0 : vi + 1])
                    T.writes(B[vi])
                    view = T.match_buffer(t[0 : vi + 1], (vi + 1,), offset_factor=1)
                    B[vi] = view[vi]

    assert allocations(program, "compact_buffers") == {"t": ("i", [8])}
    a, b = np.arange(8, dtype="float32"), np.zeros(8, "float32")
    tw.compile(tw.lower(program, after="compact_buffers"), target="interpreter")(a, b)
    np.testing.assert_array_equal(b, a)


def test_pointers_that_leave_our_sight_keep_their_buffer() -> None:
    @T.prim_func
    def program(A: T.Buffer((64,), "float32")):
        with T.block("root"):
            t = T.alloc_buffer((64,))
            for i in range(4):
                with T.block("t"):
                    v = T.axis.spatial(4, i)
                    T.reads()
                    T.writes(t[v])
                    t[v] = T.float32(1)
                    T.evaluate(T.address_of(t[v]))

    assert allocations(program, "compact_buffers")["t"][1] == [64]


@pytest.mark.parametrize("n", [5, 6, 9])
def test_offsets_of_rows_that_data_select_are_declared_as_a_whole_after_they_are_copied(n: int) -> None:
    """The region of a search is all offsets, written as what its axis and the last row leave of them."""

    @T.prim_func
    def program(b: T.handle, c: T.handle, p: T.handle, q: T.handle, n: T.int32, nnz: T.int32):
        I = T.sp.dense_fixed(n)
        J = T.sp.compressed_varied(I, (9, nnz), (p, q))
        B = T.sp.match_buffer(b, (I, J), "float32")
        C = T.sp.match_buffer(c, (I, J), "float32")
        with T.sp.iteration([I, J], "SS", "it") as [i, j]:
            C[i, j] = B[T.min(j + 1, 4), j]

    sch = tw.Schedule(program)
    sch.lower_sparse_iter()
    search = "binary_search_block_0_1"
    names = [region.buffer.name for region in sch.get(sch.get_block(search)).reads]
    sch.cache_read(search, names.index("p_data"), "local")
    random = np.random.default_rng(n)
    mask = random.random((n, 9)) < 0.5
    dense = np.where(mask, random.integers(1, 9, (n, 9)), 0).astype("float32")
    rows, columns = np.nonzero(mask)
    indptr = np.concatenate([[0], np.cumsum(mask.sum(1))]).astype("int32")
    for target in ("interpreter", "native"):
        c = np.full(len(rows), np.nan, "float32")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", tw.PerformanceWarning)  # the copy has the size of the offsets
            kernel = tw.compile(sch, target)
        kernel(dense[mask], c, indptr, columns.astype("int32"), n, len(rows))
        np.testing.assert_array_equal(c, dense[np.minimum(columns + 1, 4), columns])
