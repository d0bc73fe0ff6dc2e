"""reverse_cache_read and reverse_cache_write: copies of elements that data select."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from tests.sparse.test_decompose import K, M, N, mask_of, operands, spmm
from tests.sparse_programs import SPMM, function, make_spmm

import tilewright as tw
from tilewright.script import from_source
from tilewright.script import tir as T
from tilewright.sparse import convert_structure, decompose_format, formats
from tilewright.testing import check, check_refused

GATHER = """
@T.prim_func
def gather(I: T.Buffer((8,), "int32"), A: T.Buffer((8, 4)), B: T.Buffer((20, 6)), C: T.Buffer((8, 6))):
    T.assume_buffer_domain(I, [LEAST, 20])
    for i, j, k in T.grid(8, 4, 6):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SRS", [i, j, k])
            with T.init():
                C[vi, vk] = T.float32(0)
            C[vi, vk] = C[vi, vk] + VALUE
"""


def gather(value: str = "A[vi, vj] * B[I[vi], vk]", least: int = 0) -> Any:
    return from_source(GATHER.replace("VALUE", value).replace("LEAST", str(least)))


@pytest.mark.parametrize("order", [[], [2, 0], [0, 1, 2]])
def test_a_gather(order: list[int]) -> None:
    def transform(sch: tw.Schedule) -> None:
        block = sch.reverse_cache_read("C", "B", "global", order)
        extents = {0: 8, 1: 4, 2: 6}
        assert [int(extent) for extent in sch.get(block).writes[0].buffer.shape] == [
            extents[axis] for axis in order or [0, 2]
        ]
        sch.compute_at(block, sch.get_loops("C")[0])

    check(gather(), transform)


@pytest.mark.parametrize(
    "value",
    [
        "T.if_then_else(I[vi] >= 0, B[I[vi], vk], T.float32(2))",
        "T.if_then_else(I[vi] >= 0 and vk < 5, B[I[vi], vk + 1], T.float32(2))",
    ],
)
def test_the_copy_reads_under_the_condition_of_the_block(value: str) -> None:
    """Some of the indices are -1."""
    sch = check(gather(value, least=-1), lambda sch: sch.reverse_cache_read("C", "B", "global"))
    assert "if_then_else" in str(sch.get(sch.get_block("B_global")).body)
    arrays = [
        np.array([3, -1, 0, 19, -1, 7, 7, 2], "int32"),
        *(np.ones(s, "float32") for s in ((8, 4), (20, 6), (8, 6))),
    ]
    results = []
    for program in (gather(value, least=-1), sch):
        for target in ("interpreter", "native"):
            given = copy.deepcopy(arrays)
            tw.compile(program, target, **({} if target == "interpreter" else {"check_bounds": True}))(*given)
            results.append(given[-1])
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


def test_rows_that_nonzeros_select() -> None:
    """The extent of the loop is data: the copy is as large as what is declared allows, and one chunk once it moves."""
    sch = tw.Schedule(function(SPMM), seed=1)
    sch.lower_sparse_iter()
    copied = sch.reverse_cache_read("spmm1", "B", "global")
    sch.verify()
    sch.compute_at(copied, sch.get_loops("spmm1")[0])
    sch.verify()
    args, output, want = make_spmm(np.random.default_rng(2), "random")
    given = copy.deepcopy(args)
    tw.compile(sch)(*given)
    np.testing.assert_array_equal(given[output], want)


SCATTER = """
@T.prim_func
def scatter(I: T.Buffer((8,), "int32"), A: T.Buffer((8, 4, 6)), C: T.Buffer((20, 6))):
    T.assume_buffer_domain(I, [LEAST, 20])
    for i, j, k in T.grid(8, 4, 6):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("RRS", [i, j, k])
            BODY
"""


def scatter(body: str = "C[I[vi], vk] = C[I[vi], vk] + A[vi, vj, vk]", least: int = 0) -> Any:
    return from_source(SCATTER.replace("BODY", body).replace("LEAST", str(least)))


@pytest.mark.parametrize("order", [[], [2, 0]])
@pytest.mark.parametrize(
    "body",
    [
        "C[I[vi], vk] = C[I[vi], vk] + A[vi, vj, vk]",
        "C[I[vi], vk] = C[I[vi], vk] - A[vi, vj, vk]",
        "C[I[vi], vk] = T.max(C[I[vi], vk], A[vi, vj, vk])",
    ],
)
def test_a_scatter(body: str, order: list[int]) -> None:
    def transform(sch: tw.Schedule) -> None:
        block = sch.reverse_cache_write("C", "C", "local", order)
        assert [sch.get(loop).loop_var.name_hint for loop in sch.get_loops(block)] == ["i", "k"]
        assert [sch.get(b).name_hint for b in sch.get_child_blocks("root")] == ["C_local_init", "C", "C_local"]
        sch.vectorize(sch.get_loops("C")[-1])

    check(scatter(body), transform)


@pytest.mark.parametrize("guard", ["I[vi] >= 0", "I[vi] >= 0 and vk != 2"])
def test_padding_is_neither_added_nor_scattered(guard: str) -> None:
    body = f"if {guard}:\n                C[I[vi], vk] = C[I[vi], vk] + A[vi, vj, vk]"
    sch = check(scatter(body, least=-1), lambda sch: sch.reverse_cache_write("C", 0, "global"))
    i = np.array([3, -1, 0, 19, -1, 3, 7, 2], "int32")
    a = np.random.default_rng(0).integers(-4, 5, (8, 4, 6)).astype("float32")
    want = np.zeros((20, 6), "float32")
    for row in np.flatnonzero(i >= 0):
        want[i[row]] += a[row].sum(0) * (np.arange(6) != 2 if "vk" in guard else 1)
    for target in ("interpreter", "native"):
        c = np.zeros((20, 6), "float32")
        tw.compile(sch, target)(i, a, c)
        np.testing.assert_array_equal(c, want)


@pytest.mark.parametrize("what", ["random", "empty", "one dense row"])
def test_buckets_of_hyb_accumulate_in_registers(what: str) -> None:
    mask = mask_of(what)
    values, b, dense = operands(mask)
    rules = formats.hyb(M, N, 2, 2)
    program = decompose_format(spmm, "A", rules)
    sch = tw.Schedule(program.function, seed=1)
    sch.lower_sparse_iter()
    for rule in rules:
        name = f"spmm_{rule.name}0"
        made = sch.reverse_cache_write(name, "C", "local")
        assert len(sch.get_loops(made)) == 2
    tw.ir.verify(sch.mod)
    coordinates = tuple(along.astype("int32") for along in np.nonzero(mask))
    converted = convert_structure(rules, mask.shape, coordinates)
    more = program.arguments(converted, converted.convert_values(values))
    indptr = np.concatenate([[0], np.cumsum(mask.sum(1))]).astype("int32")
    for target in ("interpreter", "native"):
        c = np.full((M, K), np.nan, "float32")
        tw.compile(sch, target)(b, c, indptr, coordinates[1], M, N, K, len(values), *more)
        np.testing.assert_array_equal(c, dense[:, 1:] @ b[1:])


def read(sch: tw.Schedule, *arguments: Any) -> Any:
    return sch.reverse_cache_read("C", *(arguments or ("B", "global")))


def write(sch: tw.Schedule, *arguments: Any) -> Any:
    return sch.reverse_cache_write("C", *(arguments or ("C", "global")))


def test_p1_p2_what_is_copied_and_where() -> None:
    check_refused(gather(), lambda sch: read(sch, 7, "global"), "reverse_cache_read/P1")
    check_refused(scatter(), lambda sch: write(sch, 7, "global"), "reverse_cache_write/P1")
    check_refused(gather(), lambda sch: sch.reverse_cache_read("root", 0, "global"), "reverse_cache_read/P1")
    check_refused(scatter(), lambda sch: sch.reverse_cache_write("root", 0, "global"), "reverse_cache_write/P1")
    check_refused(gather(), lambda sch: read(sch, 0, "nowhere"), "reverse_cache_read/P2")
    check_refused(scatter(), lambda sch: write(sch, 0, "nowhere"), "reverse_cache_write/P2")


def test_read_p3_a_writer_after_the_reader() -> None:
    text = """
    for i, k in T.grid(20, 6):
        with T.block("B"):
            vi, vk = T.axis.remap("SS", [i, k])
            B[vi, vk] = T.float32(1)
"""
    check_refused(
        from_source(GATHER.replace("VALUE", "B[I[vi], vk]").replace("LEAST", "0") + text), read, "reverse_cache_read/P3"
    )


def test_write_p3_what_does_not_accumulate() -> None:
    for body in (
        "C[I[vi], vk] = A[vi, vj, vk]",
        "C[I[vi], vk] = C[I[vi], vk] * C[I[vi], vk]",
        "with T.init():\n                C[0, 0] = T.float32(0)\n            C[I[vi], vk] = C[I[vi], vk] + 1",
    ):
        check_refused(scatter(body), write, "reverse_cache_write/P3")


def test_p4_several_elements() -> None:
    check_refused(gather("B[I[vi], vk] * B[vi, vk]"), read, "reverse_cache_read/P4")
    check_refused(scatter("C[I[i], vk] = C[I[i], vk] + A[vi, vj, vk]"), write, "reverse_cache_write/P4")


def test_p5_orders_that_do_not_fit() -> None:
    for order in ([0], [0, 2, 3], [0, 0, 2], [-1, 0, 2]):
        check_refused(gather(), lambda sch, order=order: read(sch, "B", "global", order), "reverse_cache_read/P5")
        check_refused(scatter(), lambda sch, order=order: write(sch, "C", "global", order), "reverse_cache_write/P5")


def test_p5_an_init_has_no_reduction_axes() -> None:
    @T.prim_func
    def begins_with_data(A: T.Buffer((4, 4), "int32"), X: T.Buffer((4, 3), "int32"), C: T.Buffer((4,), "int32")):
        for i, k in T.grid(4, 3):
            with T.block("C"):
                v, r = T.axis.remap("SR", [i, k])
                with T.init():
                    C[v] = A[v, v]
                C[v] = C[v] + X[v, r]

    for order in ([0, 1], [1, 0]):
        check_refused(
            begins_with_data,
            lambda sch, order=order: sch.reverse_cache_read("C", "A", "global", order),
            "reverse_cache_read/P5",
        )
    check(begins_with_data, lambda sch: sch.reverse_cache_read("C", "A", "global", [0]))
    check(begins_with_data, lambda sch: sch.reverse_cache_read("C", "X", "global", [1, 0]))


def test_p5_an_extent_that_nothing_is_declared_of() -> None:
    @T.prim_func
    def ragged(P: T.Buffer((5,), "int32"), I: T.Buffer((40,), "int32"), B: T.Buffer((20,)), C: T.Buffer((4, 40))):
        T.assume_buffer_domain(I, [0, 20])
        for i in range(4):
            with T.block("row"):
                vi = T.axis.spatial(4, i)
                for p in range(T.min(P[vi], 40)):
                    with T.block("C"):
                        vp = T.axis.spatial(T.min(P[vi], 40), p)
                        C[vi, vp] = B[I[vp]]

    check_refused(ragged, read, "reverse_cache_read/P5")


def test_p6_an_index_that_is_not_known_to_be_in_bounds() -> None:
    """The condition is about another axis than those of the copy."""
    value = "T.if_then_else(A[vi, vj] > T.float32(0), B[I[vi], vk], T.float32(0))"
    check_refused(gather(value, least=-1), read, "reverse_cache_read/P6")
    check(gather(value), read)
    body = "if A[vi, vj, vk] > T.float32(0):\n                C[I[vi], vk] = C[I[vi], vk] + A[vi, vj, vk]"
    check_refused(scatter(body, least=-1), write, "reverse_cache_write/P6")
    check(scatter(body), write)


def test_p7_bare_statements() -> None:
    bare = "    C[0, 0] = T.float32(3)\n"
    reads = GATHER.replace("VALUE", "B[I[vi], vk]").replace("LEAST", "0")
    check_refused(from_source(reads + bare), read, "reverse_cache_read/P7")
    writes = SCATTER.replace("BODY", "C[I[vi], vk] = C[I[vi], vk] + A[vi, vj, vk]").replace("LEAST", "0")
    check_refused(from_source(writes + bare), write, "reverse_cache_write/P7")


@pytest.mark.parametrize("size", ["3", "open"])
def test_p7_a_fused_loop_would_copy_back_several_times(size: str) -> None:
    """The loop over steps of the sum and elements is one: the copy back would add an element once for each step."""
    source = """
@T.prim_func
def main(a: T.handle, c: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (2, n), "float32")
    C = T.match_buffer(c, (2, n), "float32")
    for i, j in T.grid(2, n):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[1, vj] = C[1, vj] + A[vi, vj]
"""
    program = from_source(source if size == "open" else source.replace("    n = T.int32()\n", "").replace("n)", "3)"))
    check(program, write)

    def fused(sch: tw.Schedule) -> None:
        sch.fuse(*sch.get_loops("C"))
        write(sch)

    def split(sch: tw.Schedule) -> None:
        sch.split(sch.get_loops("C")[1], [None, 2])
        write(sch)

    check_refused(program, fused, "reverse_cache_write/P7")
    check(program, split)
