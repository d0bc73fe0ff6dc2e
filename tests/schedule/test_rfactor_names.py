"""sch.rfactor of blocks whose conditions, values and memory have names."""

import numpy as np
import pytest

import tilewright as tw
from tilewright.script import tir as T
from tilewright.testing import check, check_refused


def largest(*body):
    """I, V = the largest of A along rows, and the J of it."""
    lines = "\n            ".join(body)
    return tw.script.from_source(f"""
@T.prim_func
def main(J: T.Buffer((3, 8), "int32"), A: T.Buffer((3, 8)), I: T.Buffer((3,), "int32"), V: T.Buffer((3,))):
    for i, k in T.grid(3, 8):
        with T.block("arg"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                V[vi] = T.float32(-999)
                I[vi] = -1
            {lines}
""")


def expected(j, a, last):
    index, value = np.full(len(a), -1, j.dtype), np.full(len(a), -999, a.dtype)
    for row in range(len(a)):
        for k in range(a.shape[1]):
            if a[row, k] > value[row] or (last and a[row, k] == value[row]):
                index[row], value[row] = j[row, k], a[row, k]
    return index, value


BETTER = "I[vi] = T.Select(better, J[vi, vk], I[vi])", "V[vi] = T.Select(better, A[vi, vk], V[vi])"


@pytest.mark.parametrize(
    ("body", "last"),
    [
        (["better: T.bool = A[vi, vk] > V[vi]", *BETTER], False),
        (["better: T.bool = A[vi, vk] > V[vi]", *reversed(BETTER)], False),
        (["better: T.bool = not A[vi, vk] <= V[vi]", *BETTER], False),
        (["better: T.bool = A[vi, vk] >= V[vi]", *BETTER], True),
        (
            [
                *("new: T.float32 = A[vi, vk]", "old: T.float32 = V[vi]", "better: T.bool = new > old"),
                *(BETTER[0], "V[vi] = T.Select(better, new, old)"),
            ],
            False,
        ),
        (
            [
                "keeps: T.bool = V[vi] >= A[vi, vk]",
                *("x: T.int32 = T.Select(keeps, I[vi], J[vi, vk])", "y: T.float32 = T.Select(keeps, V[vi], A[vi, vk])"),
                *("V[vi] = y", "I[vi] = x"),
            ],
            False,
        ),
        (
            [
                "I[vi] = T.Select(V[vi] >= A[vi, vk], I[vi], J[vi, vk])",
                "V[vi] = T.Select(V[vi] >= A[vi, vk], V[vi], A[vi, vk])",
            ],
            False,
        ),
    ],
)
def test_argmax(body, last):
    sch = tw.Schedule(largest(*body))
    sch.split(sch.get_loops("arg")[1], [2, 4])
    sch.rfactor(sch.get_loops("arg")[1], 0)
    j = np.tile(np.arange(8, dtype="int32"), (3, 1))
    for seed in range(5):
        a = np.random.default_rng(seed).integers(0, 3, (3, 8)).astype("float32")
        i, v = np.zeros(3, "int32"), np.zeros(3, "float32")
        tw.compile(sch, "interpreter", schedule="as written")(j, a, i, v)
        index, value = expected(j, a, last)
        np.testing.assert_array_equal(i, index)
        np.testing.assert_array_equal(v, value)


def test_partial_results_stand_in_the_order_in_which_values_are_bound():
    bound = "x: T.int32 = T.Select(better, J[vi, vk], I[vi])", "y: T.float32 = T.Select(better, A[vi, vk], V[vi])"
    sch = tw.Schedule(largest("better: T.bool = A[vi, vk] > V[vi]", *bound, "V[vi] = y", "I[vi] = x"))
    sch.split(sch.get_loops("arg")[1], [2, 4])
    sch.rfactor(sch.get_loops("arg")[1], 0)
    assert [b.name for b in sch.mod["main"].body.block.alloc_buffers] == ["I.rf", "V.rf"]


def test_a_named_operand_of_a_sum():
    @T.prim_func
    def squares(A: T.Buffer((4, 8)), B: T.Buffer((4,))):
        for i, k in T.grid(4, 8):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = T.float32(0)
                x: T.float32 = A[vi, vk]
                B[vi] = B[vi] + x * x

    sch = tw.Schedule(squares)
    sch.rfactor(sch.get_loops("B")[1], 0)
    a = np.arange(32, dtype="float32").reshape(4, 8)
    np.testing.assert_array_equal(tw.compile(sch)(a), (a * a).sum(1))


@pytest.mark.parametrize(
    "body",
    [
        # The second condition sees what the first store has changed.
        [
            "V[vi] = T.Select(V[vi] >= A[vi, vk], V[vi], A[vi, vk])",
            "I[vi] = T.Select(V[vi] >= A[vi, vk], I[vi], J[vi, vk])",
        ],
        # I adds up what V was before each step: no group of steps knows it.
        ["old: T.float32 = V[vi]", "V[vi] = old + A[vi, vk]", 'I[vi] = I[vi] + T.Cast("int32", old)'],
        # A value that is bound is stored, and beside it one that is not.
        [
            "better: T.bool = A[vi, vk] > V[vi]",
            "x: T.int32 = T.Select(better, J[vi, vk], I[vi])",
            "I[vi] = x",
            BETTER[1],
        ],
    ],
)
def test_results_that_depend_on_one_another(body):
    check_refused(largest(*body), lambda sch: sch.rfactor(sch.get_loops("arg")[1], 0), "rfactor/P5")


def test_a_view_that_begins_inside_of_its_memory():
    """The copies have memory of their own, which begins with them: at offset 8 they would go beyond its end."""

    @T.prim_func
    def sums(A: T.Buffer((4, 8), "int32"), C: T.Buffer((16,), "int32")):
        with T.block("O"):
            T.reads(A[0:4, 0:8])
            T.writes(C[8:12])
            D = T.match_buffer(C[8:12], (4,), "int32", elem_offset=8)
            for i, k in T.grid(4, 8):
                with T.block("B"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    with T.init():
                        D[vi] = 0
                    D[vi] = D[vi] + A[vi, vk]

    sch = check(sums, lambda sch: sch.rfactor(sch.get_loops("B")[1], 0))
    assert 'D_rf = T.alloc_buffer((8, 4), "int32")\n' in sch.mod.script()
