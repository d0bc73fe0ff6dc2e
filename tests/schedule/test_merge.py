"""sch.merge: loop nests beside one another become one."""

import pytest

import tilewright as tw
from tilewright.script import tir as T
from tilewright.testing import check, check_refused


@T.prim_func
def two(A: T.Buffer((8,)), B: T.Buffer((8,)), C: T.Buffer((8,))):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]
    for j in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, j)
            C[vi] = A[vi] + T.float32(1)


def merge(*named):
    """Each a block and the number of its loop."""

    def transform(sch):
        return sch.merge(*(sch.get_loops(sch.get_block(block))[number] for block, number in named))

    return transform


def test_the_example_of_the_contract():
    @T.prim_func
    def after(A: T.Buffer((8,)), B: T.Buffer((8,)), C: T.Buffer((8,))):
        for i_m in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i_m)
                B[vi] = A[vi]
            with T.block("C"):
                vi = T.axis.spatial(8, i_m)
                C[vi] = A[vi] + T.float32(1)

    def transform(sch):
        merged = merge(("B", 0), ("C", 0))(sch)
        assert repr(merged) == "Loop(i_m, extent=8)"

    check(two, transform, after)


@T.prim_func
def chain(A: T.Buffer((4, 6)), D: T.Buffer((4, 6))):
    B = T.alloc_buffer((4, 6))
    C = T.alloc_buffer((4, 6))
    for i, j in T.grid(4, 6):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.float32(1)
    for i, j in T.grid(4, 6):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] * T.float32(2)
    for i, j in T.grid(4, 6):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = C[vi, 5 - vj] - B[vi, vj]


def test_nests_of_producers_and_consumers():
    def transform(sch):
        inner = merge(("B", 1), ("C", 1))(sch)
        assert [repr(loop) for loop in sch.get_loops("C")] == ["Loop(i_m, extent=4)", "Loop(j_m, extent=6)"]
        assert sch.get(inner) == sch.get(sch.get_loops("B")[1])
        merge(("C", 0), ("D", 0))(sch)

    check(chain, transform)


def test_three_at_once_below_one_loop():
    def transform(sch):
        merge(("B", 0), ("C", 0), ("D", 0))(sch)
        merge(("B", 1), ("C", 1))(sch)

    check(chain, transform)


def test_reductions_keep_their_steps():
    @T.prim_func
    def sums(A: T.Buffer((4, 6)), B: T.Buffer((4,)), C: T.Buffer((4,))):
        for i, k in T.grid(4, 6):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + A[vi, vk]
        for i, k in T.grid(4, 6):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = T.max(C[vi], A[vi, vk])

    check(sums, merge(("B", 1), ("C", 1)))


def test_in_the_order_in_which_they_are_named():
    sch = check(two, merge(("C", 0), ("B", 0)))
    text = sch.mod.script()
    assert text.index("for j_m") < text.index('"C"') < text.index('"B"')


@T.prim_func
def passed(A: T.Buffer((8,)), B: T.Buffer((8,)), C: T.Buffer((8,)), D: T.Buffer((8,))):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]
    for i in range(8):
        with T.block("D"):
            vi = T.axis.spatial(8, i)
            D[vi] = B[7 - vi]
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = A[vi]


def test_a_nest_moves_past_what_it_has_nothing_to_do_with():
    check(passed, merge(("C", 0), ("B", 0)))


@T.prim_func
def passed_by_one_block(A: T.Buffer((1,)), C: T.Buffer((1,))):
    B = T.alloc_buffer((1,))
    D = T.alloc_buffer((1,))
    for i in range(1):
        with T.block("B"):
            vi = T.axis.spatial(1, i)
            B[vi] = A[vi]
    with T.block("D"):
        vi = T.axis.spatial(1, 0)
        D[vi] = B[vi]
    for i in range(1):
        with T.block("C"):
            vi = T.axis.spatial(1, i)
            C[vi] = A[vi]


@T.prim_func
def overwritten(A: T.Buffer((8,)), B: T.Buffer((8,))):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            A[vi] = T.float32(1)


def parallel_first(sch):
    sch.parallel(sch.get_loops("B")[0])
    merge(("B", 0), ("C", 0))(sch)


def shorter(sch):
    sch.split(sch.get_loops("C")[0], [2, 4])
    merge(("B", 0), ("C", 0))(sch)


@pytest.mark.parametrize(
    ("program", "transform", "code"),
    [
        (two, merge(("B", 0)), "merge/P1"),
        (two, merge(("B", 0), ("B", 0)), "merge/P1"),
        (two, parallel_first, "merge/P3"),
        (two, shorter, "merge/P5"),
        (chain, merge(("B", 1), ("C", 0)), "merge/P5"),
        (chain, merge(("C", 1), ("D", 1)), "merge/P6"),
        (passed, merge(("B", 0), ("C", 0)), "merge/P6"),
        (passed_by_one_block, merge(("B", 0), ("C", 0)), "merge/P6"),
        (overwritten, merge(("C", 0), ("B", 0)), "merge/P6"),
        (overwritten, merge(("B", 0), ("C", 0)), "merge/P6"),
    ],
)
def test_refusals(program, transform, code):
    check_refused(program, transform, code)


def test_p2_one_scope():
    @T.prim_func
    def nested(A: T.Buffer((4, 4)), B: T.Buffer((4, 4)), C: T.Buffer((4,))):
        for i in range(4):
            with T.block("outer"):
                vi = T.axis.spatial(4, i)
                for j in range(4):
                    with T.block("B"):
                        vj = T.axis.spatial(4, j)
                        B[vi, vj] = A[vi, vj]
        for i in range(4):
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                C[vi] = A[vi, vi]

    check_refused(nested, merge(("B", 0), ("C", 0)), "merge/P2")


def test_p4_only_statements():
    @T.prim_func
    def beside(A: T.Buffer((4, 4)), B: T.Buffer((4, 4)), C: T.Buffer((4, 4)), D: T.Buffer((4, 4))):
        for i in range(4):
            for j in range(4):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj]
            for j in range(4):
                with T.block("D"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    D[vi, vj] = A[vi, vj]
        for i, j in T.grid(4, 4):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj]

    check_refused(beside, merge(("B", 1), ("C", 1)), "merge/P4")


def test_p7_parallel_loops_around_stay_independent():
    @T.prim_func
    def again(A: T.Buffer((8,)), B: T.Buffer((8,)), C: T.Buffer((8,))):
        for _r in T.parallel(2):
            for i in range(8):
                with T.block("B"):
                    vi = T.axis.spatial(8, i)
                    B[vi] = A[vi]
            for i in range(8):
                with T.block("C"):
                    vi = T.axis.spatial(8, i)
                    C[vi] = A[vi]

    check_refused(again, merge(("B", 1), ("C", 1)), "merge/P7")


@pytest.mark.parametrize(
    "use",
    [
        "T.where(L[0] > 0)",
        "vi = T.axis.spatial(4, T.min(T.max(L[i], 0), 3))",
        "vi = T.axis.spatial(4, i)\n            T.reads(L[0])",
    ],
)
@pytest.mark.parametrize("order", [["W", "C"], ["C", "W"]])
def test_p6_what_is_between_reads_in_any_way(use, order):
    """Blocks read what they declare, and what their axes and conditions ask for, which they do not."""
    program = tw.script.from_source(f"""
@T.prim_func
def main(A: T.Buffer((4,), "int32"), C: T.Buffer((4,), "int32"), D: T.Buffer((4,), "int32")):
    L = T.alloc_buffer((4,), "int32")
    for i in range(4):
        with T.block("W"):
            vi = T.axis.spatial(4, i)
            L[vi] = A[vi]
    for i in range(4):
        with T.block("R"):
            {use}
            T.writes(D[0:4])
            D[0] = T.int32(1)
    for i in range(4):
        with T.block("C"):
            vi = T.axis.spatial(4, i)
            C[vi] = A[vi]
""")
    if order == ["C", "W"]:  # C comes to run before what stands between: nothing reads it
        sch = tw.Schedule(program)
        sch.merge(*(sch.get_loops(name)[0] for name in order))
        sch.verify()
    else:
        check_refused(program, merge(*((name, 0) for name in order)), "merge/P6")


def test_p5_extents_that_the_program_changes_between_the_nests():
    @T.prim_func
    def grows(N: T.Buffer((1,), "int32"), B: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
        for i in range(N[0]):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = 1
        with T.block("W"):
            vw = T.axis.spatial(1, 0)
            N[vw] = 6
        for i in range(N[0]):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = 2

    error = check_refused(grows, merge(("B", 0), ("C", 0)), "merge/P5")
    assert "reads data that the program changes" in str(error)
