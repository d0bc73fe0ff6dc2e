"""sch.fuse_reduction_epilogue: what is added to a sum becomes what it begins with."""

import pytest

import tilewright as tw
from tilewright.script import tir as T
from tilewright.testing import check, check_refused


def program(epilogue="C[vi] + bias[vi]", after="", dtype="float32"):
    return tw.script.from_source(f"""
@T.prim_func
def main(A: T.Buffer((4, 8), "{dtype}"), bias: T.Buffer((4,), "{dtype}"), D: T.Buffer((4,), "{dtype}")):
    C = T.alloc_buffer((4,), "{dtype}")
    for i, k in T.grid(4, 8):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.{dtype}(0)
            C[vi] = C[vi] + A[vi, vk]
    for i in range(4):
        with T.block("D"):
            vi = T.axis.spatial(4, i)
            D[vi] = {epilogue}
{after}
""")


def fuse(sch):
    sch.fuse_reduction_epilogue("C", "D")


def test_the_example_of_the_contract():
    @T.prim_func
    def after(A: T.Buffer((4, 8)), bias: T.Buffer((4,)), D: T.Buffer((4,))):
        for i, k in T.grid(4, 8):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                T.reads(bias[vi], A[vi, vk])
                T.writes(D[vi])
                with T.init():
                    D[vi] = bias[vi]
                D[vi] = D[vi] + A[vi, vk]

    check(program(), fuse, after)


@pytest.mark.parametrize(
    "epilogue", ["bias[vi] + C[vi]", "C[vi] + bias[3 - vi] * T.float32(2)", "C[vi] + T.float32(5)"]
)
def test_any_addend(epilogue):
    check(program(epilogue), fuse)


def test_a_product_that_is_transposed_and_tiled():
    @T.prim_func
    def product(A: T.Buffer((4, 6)), B: T.Buffer((6, 8)), bias: T.Buffer((8,)), D: T.Buffer((8, 4))):
        C = T.alloc_buffer((4, 8))
        for i, j, k in T.grid(4, 8, 6):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
        for i, j in T.grid(4, 8):
            with T.block("D"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vj, vi] = C[vi, vj] + bias[vj]

    def transform(sch):
        i, j, k = sch.get_loops("C")
        _j_0, j_1 = sch.split(j, [None, 4])
        sch.reorder(k, j_1)
        fuse(sch)
        sch.decompose_reduction("C", k)

    check(product, transform)


LATER = """
    for i in range(4):
        with T.block("A2"):
            vi = T.axis.spatial(4, i)
            A[vi, 0] = C[vi]
"""


@pytest.mark.parametrize(
    ("before", "code"),
    [
        (program("T.max(C[vi] + bias[vi], T.float32(0))"), "fuse_reduction_epilogue/P2"),
        (program("C[vi] * bias[vi]"), "fuse_reduction_epilogue/P2"),
        (program("C[vi] - bias[vi]"), "fuse_reduction_epilogue/P2"),
        (program("C[vi] + C[vi]"), "fuse_reduction_epilogue/P2"),
        (program("C[3 - vi] + bias[vi]"), "fuse_reduction_epilogue/P2"),
        (program("C[vi] + bias[vi]", LATER), "fuse_reduction_epilogue/P2"),
    ],
)
def test_refusals(before, code):
    check_refused(before, fuse, code)


def test_p1_a_sum():
    check_refused(program(), lambda sch: sch.fuse_reduction_epilogue("D", "C"), "fuse_reduction_epilogue/P1")


def test_p5_what_is_added_is_complete_where_the_sum_begins():
    @T.prim_func
    def late(A: T.Buffer((4, 8)), x: T.Buffer((4,)), D: T.Buffer((4,))):
        C = T.alloc_buffer((4,))
        bias = T.alloc_buffer((4,))
        for i, k in T.grid(4, 8):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + A[vi, vk]
        for i in range(4):
            with T.block("bias"):
                vi = T.axis.spatial(4, i)
                bias[vi] = x[vi] + T.float32(1)
        for i in range(4):
            with T.block("D"):
                vi = T.axis.spatial(4, i)
                D[vi] = C[vi] + bias[vi]

    check_refused(late, fuse, "fuse_reduction_epilogue/P5")


def test_p6_as_much_as_before():
    @T.prim_func
    def half(A: T.Buffer((4, 8)), bias: T.Buffer((4,)), D: T.Buffer((4,))):
        C = T.alloc_buffer((4,))
        for i, k in T.grid(4, 8):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + A[vi, vk]
        for i in range(2):
            with T.block("D"):
                vi = T.axis.spatial(2, i)
                D[vi] = C[vi] + bias[vi]

    check_refused(half, fuse, "fuse_reduction_epilogue/P6")


def test_p3_one_scope():
    @T.prim_func
    def nested(A: T.Buffer((4, 8)), D: T.Buffer((4,))):
        C = T.alloc_buffer((4,))
        with T.block("outer"):
            for i, k in T.grid(4, 8):
                with T.block("C"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    with T.init():
                        C[vi] = T.float32(0)
                    C[vi] = C[vi] + A[vi, vk]
        for i in range(4):
            with T.block("D"):
                vi = T.axis.spatial(4, i)
                D[vi] = C[vi] + T.float32(1)

    check_refused(nested, fuse, "fuse_reduction_epilogue/P3")


def test_p4_nobody_reads_what_was_there_before():
    @T.prim_func
    def kept(A: T.Buffer((4, 8)), X: T.Buffer((4,)), D: T.Buffer((4,))):
        C = T.alloc_buffer((4,))
        for i, k in T.grid(4, 8):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + A[vi, vk]
        for i in range(4):
            with T.block("X"):
                vi = T.axis.spatial(4, i)
                X[vi] = D[vi]
        for i in range(4):
            with T.block("D"):
                vi = T.axis.spatial(4, i)
                D[vi] = C[vi] + T.float32(1)

    check_refused(kept, fuse, "fuse_reduction_epilogue/P4")


def test_p7_parallel_loops_around_stay_independent():
    @T.prim_func
    def again(A: T.Buffer((4, 8)), D: T.Buffer((4,))):
        C = T.alloc_buffer((4,))
        for _r in T.parallel(2):
            for i, k in T.grid(4, 8):
                with T.block("C"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    with T.init():
                        C[vi] = T.float32(0)
                    C[vi] = C[vi] + A[vi, vk]
            for i in range(4):
                with T.block("D"):
                    vi = T.axis.spatial(4, i)
                    D[vi] = C[vi] + T.float32(1)

    check_refused(again, fuse, "fuse_reduction_epilogue/P7")


@pytest.mark.parametrize(
    ("axis", "condition"), [("i * 3", "i < 2"), ("i", "i != 2"), ("i", "i * 2 + (i + 1) % 2 > 1"), ("i", "i < 3")]
)
def test_p6_an_epilogue_that_leaves_elements_out(axis, condition):
    whole = "vi = T.axis.spatial(4, i)\n            T.reads(C"
    text = program().script()
    assert whole in text
    part = f"vi = T.axis.spatial(4, {axis})\n            T.where({condition})\n            T.reads(C"
    check_refused(tw.script.from_source(text.replace(whole, part)), fuse, "fuse_reduction_epilogue/P6")
