import pytest

from tilewright.script import tir as T
from tilewright.testing import check, check_refused, workloads


@T.prim_func
def copy(A: T.Buffer((16, 8)), B: T.Buffer((16, 8))):
    for i, j in T.grid(16, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)


def test_the_example_of_the_contract():
    @T.prim_func
    def after(A: T.Buffer((16, 8)), B: T.Buffer((16, 8))):
        for ax0 in range(128):
            with T.block("B"):
                v0 = T.axis.spatial(128, ax0)
                B[v0 // 8, v0 % 8] = A[v0 // 8, v0 % 8] * T.float32(2)

    check(copy, lambda sch: sch.transform_block_layout("B", lambda i, j: i * 8 + j), after)


@pytest.mark.parametrize(
    "layout", [lambda i, j: (j, i), lambda i, j: (i // 4, j, i % 4), lambda *axes: axes[::-1], lambda i, j: (0, i, j)]
)
def test_bijections(layout):
    check(copy, lambda sch: sch.transform_block_layout("B", layout))


def test_reductions():
    matmul = workloads.matmul(4, 6, 8)
    sch = check(matmul, lambda sch: sch.transform_block_layout("C", lambda i, j, k: (k % 2, i * 6 + j, k // 2)))
    kinds = [axis.iter_type for axis in sch.get(sch.get_block("C")).iter_vars]
    assert [str(kind).rpartition(".")[2] for kind in kinds] == ["COMM_REDUCE", "DATA_PAR", "COMM_REDUCE"]
    check_refused(
        matmul,
        lambda sch: sch.transform_block_layout("C", lambda i, j, k: (i, j * 8 + k)),
        "transform_block_layout/P4",
    )


def test_axes_of_extent_one_are_of_no_kind():
    matmul = workloads.matmul(1, 6, 8)
    check(matmul, lambda sch: sch.transform_block_layout("C", lambda i, j, k: (j, i * 8 + k)))


def test_symbolic_sizes():
    @T.prim_func
    def program(a: T.handle, b: T.handle, n: T.int32):
        A = T.match_buffer(a, (4, n))
        B = T.match_buffer(b, (4, n))
        for i, j in T.grid(4, n):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj]

    from tilewright import Schedule

    sch = Schedule(program)
    sch.transform_block_layout("B", lambda i, j: i * program.params[2] + j)
    assert "T.axis.spatial(n * 4" in sch.mod.script() or "T.axis.spatial(4 * n" in sch.mod.script()


def refused(program, layout, code, before=lambda sch: None):
    def transform(sch):
        before(sch)
        sch.transform_block_layout("B", layout)

    check_refused(program, transform, code)


def test_p1_loops():
    refused(copy, lambda i, j: (j, i), "transform_block_layout/P1", lambda sch: sch.parallel(sch.get_loops("B")[0]))
    refused(
        copy, lambda i, j: (j, i), "transform_block_layout/P1", lambda sch: sch.annotate(sch.get_loops("B")[1], "x", 1)
    )
    check_refused(copy, lambda sch: sch.transform_block_layout("root", lambda: 0), "transform_block_layout/P1")

    @T.prim_func
    def two(A: T.Buffer((8,)), B: T.Buffer((8,)), C: T.Buffer((8,))):
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi]
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = A[vi]

    refused(two, lambda i: 7 - i, "transform_block_layout/P1")


def test_p2_bindings():
    refused(
        copy,
        lambda i, j: (j, i),
        "transform_block_layout/P2",
        lambda sch: sch.split(sch.get_loops("B")[1], factors=[2, 4]),
    )
    refused(
        copy,
        lambda i, j: (j, i),
        "transform_block_layout/P2",
        lambda sch: sch.split(sch.get_loops("B")[1], factors=[None, 3]),
    )


def test_p3_maps():
    refused(copy, lambda i, j: i + j, "transform_block_layout/P3")
    refused(copy, lambda i, j: (i // 3, i % 3, j), "transform_block_layout/P3")
    refused(copy, lambda i: i, "transform_block_layout/P3")


def test_p5_order():
    @T.prim_func
    def scan(A: T.Buffer((8, 8))):
        for i, j in T.grid(7, 8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                A[vi + 1, vj] = A[vi, vj] + T.float32(1)

    refused(scan, lambda i, j: (j, i), "transform_block_layout/P5")
