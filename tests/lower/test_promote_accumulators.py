"""The pass promote_accumulators: a loop adds to elements that were just initialized in registers, and nothing else
changes."""

import random as rng

import numpy as np
import pytest
from tests.lower.passes import agrees, around, check_unchanged

import tilewright as tw
from tilewright import script
from tilewright.script import tir as T

NAME = "promote_accumulators"


@T.prim_func
def ragged(
    P: T.Buffer((6,), "int32"), A: T.Buffer((9,), "float32"), C: T.Buffer((5,), "float32"), D: T.Buffer((5,), "float32")
):
    T.assume_buffer_domain(P, [0, 10], order="nondecreasing")
    for i in range(5):
        C[i] = T.float32(7)
        D[i] = T.Cast("float32", i)
        for p in range(P[i + 1] - P[i]):
            C[i] = C[i] + A[P[i] + p]
            if A[P[i] + p] > T.float32(3):
                D[i] = D[i] * T.float32(2)


ARRAYS = [np.array([0, 2, 2, 6, 9, 9], "int32"), np.arange(9, dtype="float32"), *np.zeros((2, 5), "float32")]
SUMS = np.array([8, 7, 21, 28, 7], "float32")
DOUBLED = np.array([0, 1, 8, 24, 4], "float32")


@T.prim_func
def summed(P: T.Buffer((6,), "int32"), A: T.Buffer((9,), "float32"), C: T.Buffer((5,), "float32")):
    T.assume_buffer_domain(P, [0, 10], order="nondecreasing")
    for i in range(5):
        C[i] = T.float32(7)
        for p in range(P[i + 1] - P[i]):
            C[i] = C[i] + A[P[i] + p]


def test_the_example_of_the_contract() -> None:
    text = str(around(summed, NAME)[1].script())
    assert text.count("C_1[i]") == 1, text
    assert text.index("C_sum[0] = T.float32(7.0)") < text.index("for p") < text.index("C_1[i] = C_sum[0]"), text
    agrees(summed, NAME, ARRAYS[:3], [*ARRAYS[:2], SUMS])


def test_loops_that_may_run_no_iteration_and_conditional_updates() -> None:
    text = str(around(ragged, NAME)[1].script())
    assert text.count("C_sum = ") == text.count("D_sum = ") == 1, text
    agrees(ragged, NAME, ARRAYS, [*ARRAYS[:2], SUMS, DOUBLED])


def test_vectors_of_a_row() -> None:
    program = tw.sparse.programs.spmm(16)
    schedule = tw.Schedule(program)
    for name in ("zero", "sum"):
        outer, vector = schedule.split(schedule.get_loops(name)[-1], [None, 8])
        schedule.unroll(outer)
        schedule.vectorize(vector)
    text = str(around(schedule.mod, NAME)[1].script())
    assert text.count('"float32x8", scope="local"') == 2, text
    body = text[text.index("for i") :]
    assert body.index("for p") < body.index("C_1["), "the row is stored once, behind the loop"


def unchanged(body: str) -> None:
    """The pass has nothing to do in a program with this body."""
    check_unchanged(
        script.from_source(f"""@T.prim_func
def f(A: T.Buffer((64,), "int32"), C: T.Buffer((64,), "int32")):
{body}
"""),
        NAME,
    )


@pytest.mark.parametrize(
    "body",
    [
        # another index of the same buffer, in the loop or in its extent
        "    C[0] = 0\n    for p in range(9):\n        C[0] = C[0] + A[p] + C[p + 1]",
        "    C[0] = 0\n    for p in range(9):\n        C[0] = C[0] + A[p]\n        C[p + 1] = 3",
        "    C[0] = 0\n    for p in range(C[A[0] % 8]):\n        C[0] = C[0] + 1",
        # an index that moves, and one that is read from memory
        "    C[0] = 0\n    for p in range(9):\n        C[p] = C[p] + A[p]",
        "    C[A[0]] = 0\n    for p in range(9):\n        C[A[0]] = C[A[0]] + A[p]",
        # nothing is added up, or something stands between
        "    C[0] = 0\n    for p in range(9):\n        A[0] = A[0] + C[0]",
        "    for i in range(4):\n        C[i] = 0\n        for q in range(3):\n            A[q] = q\n"
        "        for p in range(9):\n            C[i] = C[i] + A[p]",
        # iterations of several threads
        "    C[0] = 0\n    for p in T.parallel(9):\n        C[p + 1] = A[p]",
    ],
)
def test_what_stays_in_memory(body: str) -> None:
    unchanged(body)


def test_memory_that_others_may_see() -> None:
    """Arguments of a function that others call may overlap: a store to A may be one to C."""

    @T.prim_func(private=True)
    def inner(A: T.Buffer((16,), "int32"), C: T.Buffer((16,), "int32")):
        C[0] = 0
        for p in range(9):
            C[0] = C[0] + A[p]

    check_unchanged(inner, NAME)


def test_random_programs_against_the_interpreter() -> None:
    """Elements of two buffers by few indices, which often meet."""
    random = rng.Random(3)
    promoted = 0
    for number in range(60):
        inits = [
            f"        {random.choice('CD')}[{random.choice(['i', 'i', 'i', 'i', 'i + 1', '0'])}] = FLOAT(i)"
            for _ in range(random.randint(1, 3))
        ]
        updates = []
        for _ in range(random.randint(1, 3)):
            element = f"{random.choice('CD')}[{random.choice(['i'] * 9 + ['i + 1', '0', 'p'])}]"
            value = random.choice([f"{element} + A[p]", f"{element} + A[p]", "C[i] + D[i]", "A[p]"])
            updates.append(f"            {element} = {value}")
        lines = "\n".join(["    for i in range(8):", *inits, "        for p in range(N[i]):", *updates])
        buffers = 'N: T.Buffer((9,), "int32"), ' + ", ".join(f'{name}: T.Buffer((9,), "float32")' for name in "ACD")
        program = script.from_source(
            f"@T.prim_func\ndef f({buffers}):\n" + lines.replace("FLOAT(i)", 'T.Cast("float32", i)')
        )
        counts = np.array([(i + number) % 4 for i in range(9)], "int32")
        given = [counts, np.arange(9, dtype="float32") + number, *np.zeros((2, 9), "float32")]
        expected = [array.copy() for array in given]
        exec(f"if True:\n{lines}", {"FLOAT": np.float32, **dict(zip("NACD", expected, strict=True))})
        agrees(program, NAME, given, expected)
        own = [array.copy() for array in given]
        tw.compile(program, schedule="as written")(*own)
        for found, wanted in zip(own, expected, strict=True):
            np.testing.assert_array_equal(found, wanted, err_msg=program.script())
        promoted += "_sum" in str(around(program, NAME)[1].script())
    assert promoted > 10
