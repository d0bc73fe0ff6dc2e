"""sch.rfactor: each iteration of a loop reduced by itself, then what they gave."""

import numpy as np
import pytest

import tilewright as tw
from tilewright import script
from tilewright.script import tir as T
from tilewright.testing import check, check_refused, run_in_interpreter, workloads


@T.prim_func
def row_sums(A: T.Buffer((4, 16)), B: T.Buffer((4,))):
    for i, k_0, k_1 in T.grid(4, 2, 8):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            vk = T.axis.reduce(16, k_0 * 8 + k_1)
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk]


def factor(block, number, axis):
    return lambda sch: sch.rfactor(sch.get_loops(sch.get_block(block))[number], axis)


def test_the_example_of_the_contract():
    @T.prim_func
    def after(A: T.Buffer((4, 16)), B: T.Buffer((4,))):
        B_rf = T.alloc_buffer((8, 4))
        for i, k_0, k_1 in T.grid(4, 2, 8):
            with T.block("B_rf"):
                vk_1, vi, vk_0 = T.axis.remap("SSR", [k_1, i, k_0])
                with T.init():
                    B_rf[vk_1, vi] = T.float32(0)
                B_rf[vk_1, vi] = B_rf[vk_1, vi] + A[vi, vk_0 * 8 + vk_1]
        for i, k_1 in T.grid(4, 8):
            with T.block("B"):
                vk_1, vi = T.axis.remap("RS", [k_1, i])
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + B_rf[vk_1, vi]

    sch = check(row_sums, factor("B", 2, 0), after)
    assert sch.get(sch.get_block("B_rf")).writes[0].buffer.name == "B.rf"


@pytest.mark.parametrize("axis", [-2, -1, 0, 1])
def test_the_dimension_goes_where_it_is_said(axis):
    sch = check(row_sums, factor("B", 1, axis))
    shape = [int(extent) for extent in sch.get(sch.get_block("B_rf")).writes[0].buffer.shape]
    assert shape == ([2, 4] if axis in (-2, 0) else [4, 2])


def test_without_steps_left_the_partial_block_is_an_assignment():
    @T.prim_func
    def total(A: T.Buffer((8,)), B: T.Buffer(())):
        for k in range(8):
            with T.block("B"):
                vk = T.axis.reduce(8, k)
                with T.init():
                    B[()] = T.float32(0)
                B[()] = B[()] + A[vk]

    sch = check(total, factor("B", 0, 0))
    block = sch.get(sch.get_block("B_rf"))
    assert block.init is None and [iter.iter_type for iter in block.iter_vars] == [tw.ir.IterType.DATA_PAR]


def test_several_loops_one_after_another():
    def transform(sch):
        block = sch.get_block("C")
        _l_0, _l_1, l_2 = sch.split(sch.get_loops(block)[2], [None, 2, 2])
        sch.rfactor(l_2, 0)
        partial = sch.get_block("C_rf")
        sch.rfactor(sch.get_loops(partial)[3], 3)

    sch = check(workloads.matmul(4, 6, 8), transform)
    assert [loop.loop_var.name_hint for loop in map(sch.get, sch.get_loops(sch.get_block("C_rf_rf")))] == [
        "i",
        "j",
        "l_0",
        "l_1",
        "l_2",
    ]


def reduction(combine, start, dtype="float32"):
    """B[i] = combination of A[i, :]."""
    source = f"""
@T.prim_func
def main(A: T.Buffer((3, 8), "{dtype}"), B: T.Buffer((3,), "{dtype}")):
    for i, k in T.grid(3, 8):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = {start}
            B[vi] = {combine}
"""
    return tw.script.from_source(source)


@pytest.mark.parametrize(
    ("combine", "start", "dtype"),
    [
        ("B[vi] + A[vi, vk]", "T.int8(0)", "int8"),
        ("A[vi, vk] + B[vi]", "T.int32(0)", "int32"),
        ("B[vi] * A[vi, vk]", "T.uint8(1)", "uint8"),
        ("B[vi] * A[vi, vk]", "T.float32(1)", "float32"),
        ("T.min(B[vi], A[vi, vk])", 'T.max_value("float32")', "float32"),
        ("T.max(B[vi], A[vi, vk])", 'T.min_value("int16")', "int16"),
        ("T.max(B[vi], A[vi, vk])", "T.int32(-2)", "int32"),
        ("B[vi] and A[vi, vk]", "T.bool(True)", "bool"),
        ("B[vi] or A[vi, vk]", "T.bool(False)", "bool"),
        ("T.bitwise_and(A[vi, vk], B[vi])", "T.int32(-1)", "int32"),
        ("T.bitwise_or(B[vi], A[vi, vk])", "T.uint8(5)", "uint8"),
        ("T.bitwise_xor(B[vi], A[vi, vk])", "T.int64(0)", "int64"),
    ],
)
def test_each_operation(combine, start, dtype):
    def transform(sch):
        k_0, _k_1 = sch.split(sch.get_loops("B")[1], [2, 4])
        sch.rfactor(k_0, 1)

    check(reduction(combine, start, dtype), transform)


def pair(first, second, start, types=("int32", "float32")):
    """I, V = reduction of (J, A) along rows."""
    source = f"""
@T.prim_func
def main(J: T.Buffer((3, 8), "{types[0]}"), A: T.Buffer((3, 8), "{types[1]}"),
         I: T.Buffer((3,), "{types[0]}"), V: T.Buffer((3,), "{types[1]}")):
    for i, k in T.grid(3, 8):
        with T.block("arg"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                V[vi] = {start[1]}
                I[vi] = {start[0]}
            x: T.{types[0]} = {first}
            y: T.{types[1]} = {second}
            V[vi] = y
            I[vi] = x
"""
    return tw.script.from_source(source)


LEFT, RIGHT = "V[vi]", "A[vi, vk]"
SMALLER = f"{LEFT} OP {RIGHT} or ({LEFT} == {RIGHT} and I[vi] < J[vi, vk])"


@pytest.mark.parametrize(
    ("first", "second", "start"),
    [
        (
            f"T.Select({SMALLER.replace('OP', '>')}, I[vi], J[vi, vk])",
            f"T.Select({LEFT} > {RIGHT}, {LEFT}, {RIGHT})",
            ("-1", 'T.min_value("float32")'),
        ),
        (
            f"T.Select({SMALLER.replace('OP', '<')}, I[vi], J[vi, vk])",
            f"T.Select({LEFT} < {RIGHT}, {LEFT}, {RIGHT})",
            ("-1", 'T.max_value("float32")'),
        ),
        ("I[vi] + J[vi, vk]", f"{LEFT} + {RIGHT}", ("0", "T.float32(0)")),
    ],
)
@pytest.mark.parametrize("number", [1, 2])
def test_pairs(first, second, start, number):
    def transform(sch):
        sch.split(sch.get_loops("arg")[1], [2, 4])
        sch.rfactor(sch.get_loops("arg")[number], 1)

    check(pair(first, second, start), transform)


def sums_side_by_side(*updates, indices="vi"):
    stores = "\n            ".join(updates)
    return tw.script.from_source(f"""
@T.prim_func
def main(A: T.Buffer((3, 8), "float32"), S: T.Buffer((3,), "float32"), Q: T.Buffer((3,), "float32"),
         L: T.Buffer((3,), "float32")):
    for i, k in T.grid(3, 8):
        with T.block("sums"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                S[vi] = T.float32(0)
                Q[{indices}] = T.float32(0)
                L[vi] = T.min_value("float32")
            {stores}
""")


SUM = "S[vi] = S[vi] + A[vi, vk]"
SQUARES = "Q[vi] = Q[vi] + A[vi, vk] * A[vi, vk]"
LARGEST = "L[vi] = T.max(L[vi], A[vi, vk])"


def test_several_sums_of_one_block():
    def transform(sch):
        _, k_1 = sch.split(sch.get_loops("sums")[1], [2, 4])
        sch.rfactor(k_1, 0)

    check(sums_side_by_side(SUM, SQUARES, LARGEST), transform)


@pytest.mark.parametrize(
    "updates",
    [
        (SUM, "Q[vi] = Q[vi] + S[vi]", LARGEST),  # of what the sum is by then
        (SUM, "Q[vi] = T.Select(L[vi] >= A[vi, vk], Q[vi], A[vi, vk])", LARGEST),  # not a step by itself
        (SUM, SQUARES, "S[vi] = S[vi] + A[vi, vk]"),
    ],
)
def test_sums_that_depend_on_one_another(updates):
    sch = tw.Schedule(sums_side_by_side(*updates))
    with pytest.raises(tw.ScheduleError, match="rfactor/P5") as caught:
        sch.rfactor(sch.get_loops("sums")[1], 0)
    assert "bound before the first store" in caught.value.hint


@pytest.mark.parametrize("sign", [">=", "<="])
def test_the_first_of_equal_values_in_the_order_of_the_groups(sign):
    """Along the outer loop the groups are in the old order; the values are right in any."""
    start = 'T.min_value("float32")' if sign == ">=" else 'T.max_value("float32")'
    program = pair(
        f"T.Select({LEFT} {sign} {RIGHT}, I[vi], J[vi, vk])",
        f"T.Select({LEFT} {sign} {RIGHT}, {LEFT}, {RIGHT})",
        ("-1", start),
    )

    def transform(sch):
        sch.split(sch.get_loops("arg")[1], [2, 4])
        sch.rfactor(sch.get_loops("arg")[1], 0)

    check(program, transform)
    sch = tw.Schedule(program)
    sch.split(sch.get_loops("arg")[1], [2, 4])
    sch.rfactor(sch.get_loops("arg")[2], 0)
    np.testing.assert_array_equal(run_in_interpreter(sch.mod)[3], run_in_interpreter(program)[3])
    with pytest.raises(tw.ScheduleError, match=r"differs first after step .*rfactor") as caught:
        sch.verify()
    assert "factor the outermost loop of the reduction" in str(caught.value)


def test_a_value_that_is_bound_first():
    @T.prim_func
    def sums(A: T.Buffer((4, 8)), B: T.Buffer((4,))):
        for i, k in T.grid(4, 8):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = T.float32(0)
                total: T.float32 = B[vi] + A[vi, vk]
                B[vi] = total

    check(sums, factor("B", 1, 0))


def test_the_partial_block_vectorizes_and_runs_in_parallel():
    def transform(sch):
        partial = sch.rfactor(sch.get_loops("B")[2], 1)
        i, k_0, k_1 = sch.get_loops(partial)
        sch.reorder(i, k_0, k_1)
        sch.vectorize(k_1)
        sch.parallel(i)
        sch.reverse_compute_at("B", i)

    check(row_sums, transform)


def test_a_symbolic_number_of_rows():
    @T.prim_func
    def sums(a: T.handle, b: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n, 8))
        B = T.match_buffer(b, (n,))
        for i, k in T.grid(n, 8):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + A[vi, vk]

    check(sums, factor("B", 1, -1))


@pytest.mark.parametrize("number", [1, 2, 3])
def test_loops_that_do_not_divide(number):
    """Rows and steps: beyond the steps, groups take neutral values; beyond the rows nothing is done."""

    def transform(sch):
        _i, k = sch.get_loops("B")
        sch.split(k, [None, 3])
        sch.split(sch.get_loops("B")[0], [None, 3])
        sch.rfactor(sch.get_loops("B")[number], 1)

    program = reduction("T.max(B[vi], A[vi, vk])", "T.float32(-2)")
    if number == 1:
        check_refused(program, transform, "rfactor/P3")
    else:
        sch = check(program, transform)
        assert "T.if_then_else(" in sch.mod.script()
        sch.vectorize(sch.get_loops("B_rf")[3])


@pytest.mark.parametrize("sign", ["<", ">"])
def test_pairs_of_loops_that_do_not_divide(sign):
    program = pair(
        f"T.Select({SMALLER.replace('OP', sign)}, I[vi], J[vi, vk])",
        f"T.Select({LEFT} {sign} {RIGHT}, {LEFT}, {RIGHT})",
        ("-1", 'T.max_value("float32")' if sign == "<" else 'T.min_value("float32")'),
    )

    def transform(sch):
        sch.split(sch.get_loops("arg")[1], [None, 3])
        sch.rfactor(sch.get_loops("arg")[2], 1)

    check(program, transform)


@T.prim_func
def two_sums(A: T.Buffer((4, 8)), B: T.Buffer((4,)), C: T.Buffer((4,))):
    for i in range(4):
        for k in range(8):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + A[vi, vk]
        for k in range(8):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + A[vi, vk] * B[vi]


@T.prim_func
def together(A: T.Buffer((4, 8)), B: T.Buffer((4,)), C: T.Buffer((4,))):
    for i, k in T.grid(4, 8):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk]
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vi, vk]


@T.prim_func
def half_used(A: T.Buffer((4, 8)), C: T.Buffer((8,))):
    B = T.alloc_buffer((8,))
    for i, k in T.grid(4, 8):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk]
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi]


def with_(step):
    def transform(sch):
        step(sch)
        sch.rfactor(sch.get_loops("B")[-1], 0)

    return transform


def fused_with_rows(sch):
    i, k_0, _k_1 = sch.get_loops("B")
    sch.fuse(i, k_0)


@pytest.mark.parametrize(
    ("program", "transform", "code"),
    [
        (workloads.transpose(4, 4), factor("B", 0, 0), "rfactor/P1"),
        (together, factor("B", 1, 0), "rfactor/P1"),
        (row_sums, with_(lambda sch: sch.unroll(sch.get_loops("B")[2])), "rfactor/P2"),
        (row_sums, factor("B", 0, 0), "rfactor/P3"),
        (row_sums, with_(fused_with_rows), "rfactor/P3"),
        (two_sums, factor("C", 1, 0), "rfactor/P4"),
        (reduction("B[vi] - A[vi, vk]", "T.float32(0)"), factor("B", 1, 0), "rfactor/P5"),
        (reduction("B[vi] + A[vi, vk]", "T.float32(1)"), factor("B", 1, 0), "rfactor/P5"),
        (reduction("B[vi] * 2.0 + A[vi, vk]", "T.float32(0)"), factor("B", 1, 0), "rfactor/P5"),
        (row_sums, factor("B", 1, 2), "rfactor/P6"),
        (row_sums, factor("B", 1, -3), "rfactor/P6"),
        (half_used, factor("B", 1, 0), "rfactor/P8"),
    ],
)
def test_refusals(program, transform, code):
    check_refused(program, transform, code)


def test_p7_what_it_reads_is_complete_before_the_loops():
    @T.prim_func
    def scaled(A: T.Buffer((4, 8)), B: T.Buffer((4,)), S: T.Buffer((4,))):
        for i in range(4):
            for k in range(8):
                with T.block("B"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    with T.init():
                        B[vi] = T.float32(0)
                    B[vi] = B[vi] + A[vi, vk] * S[vi]
            with T.block("S"):
                vi = T.axis.spatial(4, i)
                S[vi] = T.float32(2)

    check_refused(scaled, factor("B", 1, 0), "rfactor/P7")


def test_p9_parallel_loops_around_stay_independent():
    @T.prim_func
    def again(A: T.Buffer((4, 8)), B: T.Buffer((4,))):
        for _r in T.parallel(2):
            for i, k in T.grid(4, 8):
                with T.block("B"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    with T.init():
                        B[vi] = T.float32(0)
                    B[vi] = B[vi] + A[vi, vk]

    check_refused(again, factor("B", 2, 0), "rfactor/P9")


def test_a_loop_of_one_iteration_in_the_condition():
    """It leaves no steps out; what the condition says of the others counts for both blocks."""

    def transform(sch):
        i, *_ = sch.get_loops("B")
        parts = sch.split(i, [2, 3, None], preserve_unit_iters=False)
        sch.rfactor(parts[-1], 0)

    check(row_sums, transform)


@pytest.mark.parametrize("number", [0, 1])
def test_axes_that_share_a_loop_with_those_of_the_factored_one(number: int):
    @T.prim_func
    def total(A: T.Buffer((3, 4, 8)), B: T.Buffer((3,))):
        for i, j, k in T.grid(3, 4, 8):
            with T.block("B"):
                vi, vj, vk = T.axis.remap("SRR", [i, j, k])
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + A[vi, vj, vk]

    sch = tw.Schedule(total)
    _, j, k = sch.get_loops("B")
    parts = sch.split(sch.fuse(j, k), [8, 4])  # vj follows the outer one alone, vk both
    sch.rfactor(parts[number], 1)
    sch.verify()
    assert [loop.extent.value for loop in map(sch.get, sch.get_loops("B"))] == [3, [8, 4][number]]


@pytest.mark.parametrize("factored", [0, 1])
def test_a_sum_over_nothing_stays_as_it_is(factored):
    @T.prim_func
    def sums(a: T.handle, b: T.handle):
        n = T.int32()
        m = T.int32()
        A = T.match_buffer(a, (n, m))
        B = T.match_buffer(b, (n,))
        for i, k in T.grid(n, m):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = T.min_value("float32")
                B[vi] = T.max(B[vi], A[vi, vk])

    def transform(sch):
        parts = sch.split(sch.get_loops("B")[1], [None, 8])
        sch.rfactor(parts[factored], 0)

    sch = tw.Schedule(sums)
    transform(sch)
    for kernel in (tw.compile(sch), tw.compile(sch, "interpreter")):
        for n, m in ((3, 0), (3, 1), (2, 8), (4, 13), (0, 5)):
            a, b = np.full((n, m), 5, "float32"), np.full(n, 7, "float32")
            kernel(a, b)
            np.testing.assert_array_equal(b, np.full(n, 7 if m == 0 else 5, "float32"))


SKIPPING = """
@T.prim_func
def main(a: T.handle, b: T.handle, B: T.Buffer((1,), "bool")):
    m, n = T.int32(), T.int32()
    A = T.match_buffer(a, (n, 3), "bool")
    L = T.match_buffer(b, (m,), "bool")
    for i, k in T.grid(1, m):
        with T.block("B"):
            v, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[v] = T.bool({start})
            B[v] = {step}
"""


def test_operands_that_a_result_skips_are_not_evaluated_ahead_of_it():
    """`B[v] or A[.. % n]` divides by no n of zero, since B[v] is true by then: a part by itself would."""
    skips = script.from_source(SKIPPING.format(start=True, step="B[v] or A[vk % n, 0]"))
    with pytest.raises(tw.ScheduleError, match="not evaluated once") as refusal:
        factor("B", 1, 0)(tw.Schedule(skips))
    assert refusal.value.code == "rfactor/P5"


@pytest.mark.parametrize(
    "step", ["A[vk % 7, 0] or B[v]", "B[v] or L[vk]", "B[v] and not L[vk]", "B[v] and T.exp(T.Cast('float32', vk)) > 9"]
)
def test_operands_that_cannot_fail_may_be_evaluated_ahead(step):
    check(script.from_source(SKIPPING.format(start=False, step=step)), factor("B", 1, 0))


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize(
    ("condition", "is_sure"),
    [
        ("k < 5", True),
        ("k != 3", True),
        ("n > 2", True),
        ("k >= 2", False),  # the init never runs
        ("k % 2 == 1", False),
        ("k < n", False),  # n may be 0
        ("I[k] > 0", False),
        ("I[k] != I[k]", False),
    ],
)
def test_the_first_step_has_to_run(condition: str, is_sure: bool, symbolic: bool):
    """What no step has begun stays as it was."""
    rows = "m" if symbolic else "4"
    program = script.from_source(
        f"""from tilewright.script import tir as T
@T.prim_func
def main(a: T.handle, b: T.handle, I: T.Buffer((8,), "int32")):
    n, m = T.int32(), T.int32()
    A = T.match_buffer(a, ({rows}, 8, n), "int32")
    B = T.match_buffer(b, ({rows},), "int32")
    for i, k in T.grid({rows}, 8):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.where({condition})
            with T.init():
                B[vi] = 0
            B[vi] = B[vi] + A[vi, vk, 0]
"""
    )
    if not is_sure:
        check_refused(program, factor("B", 1, 0), "rfactor/P8")
        return
    sch = tw.Schedule(program)
    factor("B", 1, 0)(sch)
    for n in (1, 3):
        a = np.arange(32 * n, dtype="int32").reshape(4, 8, n)
        was, now = np.full(4, 100, "int32"), np.full(4, 100, "int32")
        tw.compile(program, target="interpreter")(a, was, np.ones(8, "int32"))
        tw.compile(sch, target="interpreter")(a, now, np.ones(8, "int32"))
        np.testing.assert_array_equal(now, was)


@pytest.mark.parametrize(
    ("condition", "number"), [("k <= i", 1), ("k <= i", 0), ("k * 2 < i + 3", 1), ("k + 2 > i", 1)]
)
def test_a_condition_that_compares_axes_chooses_steps(condition, number):
    """A part without a step is neutral; where the first step of all may be left out, nothing begins the sum."""
    program = tw.script.from_source(f"""
@T.prim_func
def main(A: T.Buffer((9, 12), "int32"), C: T.Buffer((9,), "int32")):
    for i, k in T.grid(9, 12):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.where({condition})
            with T.init():
                C[vi] = 0
            C[vi] = C[vi] + A[vi, vk]
""")

    def transform(sch):
        sch.rfactor(sch.split(sch.get_loops("C")[1], [None, 4])[number], 0)

    if condition == "k + 2 > i":
        check_refused(program, transform, "rfactor/P8")
    else:
        assert "T.if_then_else" in check(program, transform).mod.script()


def expected_pairs(j, a, larger, last):
    """The best value of each row, and the J of its first or last occurrence, from (-1, the worst number)."""
    sign = 1 if larger else -1
    index, value = np.full(len(a), -1, j.dtype), np.full(len(a), -sign * 999, a.dtype)
    for row in range(len(a)):
        for k in range(a.shape[1]):
            is_better = sign * a[row, k] > sign * value[row]
            if is_better or (last and a[row, k] == value[row]):
                index[row], value[row] = j[row, k], a[row, k]
    return index, value


@pytest.mark.parametrize("form", ["keeps", "takes", "one condition", "larger index", "smaller index", "value first"])
@pytest.mark.parametrize("larger", [True, False])
@pytest.mark.parametrize("number", [1, 2])
def test_pairs_of_equal_elements(form, larger, number):
    """Ties: the last one stays, or the larger or smaller index, with one condition for both parts or with two."""
    better = ">" if larger else "<"
    keep_strict = f"{LEFT} {better} {RIGHT}"
    index_order = "<" if form == "smaller index" else ">"
    by_index = f"{keep_strict} or ({LEFT} == {RIGHT} and I[vi] {index_order} J[vi, vk])"
    kept = "T.Select({}, I[vi], J[vi, vk])", f"T.Select({{}}, {LEFT}, {RIGHT})"
    taken = "T.Select({}, J[vi, vk], I[vi])", f"T.Select({{}}, {RIGHT}, {LEFT})"
    first, second = {
        "keeps": (kept[0].format(keep_strict), kept[1].format(keep_strict)),
        "takes": (taken[0].format(f"{RIGHT} {better}= {LEFT}"), taken[1].format(f"{RIGHT} {better}= {LEFT}")),
        "one condition": (kept[0].format(by_index), kept[1].format(by_index)),
        "larger index": (kept[0].format(by_index), kept[1].format(keep_strict)),
        "smaller index": (kept[0].format(by_index), kept[1].format(by_index)),
        "value first": (kept[0].format(f"not ({RIGHT} {better}= {LEFT})"), kept[1].format(keep_strict)),
    }[form]
    worst = "T.float32(-999)" if larger else "T.float32(999)"
    program = pair(first, second, ("-1", worst))
    sch = tw.Schedule(program)
    sch.split(sch.get_loops("arg")[1], [2, 4])
    by_order = form in ("keeps", "takes", "value first")
    if by_order and number == 2:
        with pytest.raises(tw.ScheduleError, match="rfactor/P5") as caught:
            sch.rfactor(sch.get_loops("arg")[2], 0)
        assert "outermost" in caught.value.hint
        return
    sch.rfactor(sch.get_loops("arg")[number], 0)
    j = np.tile(np.arange(8, dtype="int32"), (3, 1))
    for seed in range(5):
        a = np.random.default_rng(seed).integers(0, 3, (3, 8)).astype("float32")
        i, v = np.zeros(3, "int32"), np.zeros(3, "float32")
        tw.compile(sch, "interpreter", schedule="as written")(j, a, i, v)
        index, value = expected_pairs(j, a, larger, last=form != "smaller index")
        np.testing.assert_array_equal(i, index)
        np.testing.assert_array_equal(v, value)


def test_the_last_of_equal_elements_where_steps_run_on_a_condition():
    """A group whose steps beyond the end start again would put the start in place of an equal element."""
    program = pair(
        f"T.Select({LEFT} > {RIGHT}, I[vi], J[vi, vk])",
        f"T.Select({LEFT} > {RIGHT}, {LEFT}, {RIGHT})",
        ("-1", 'T.min_value("float32")'),
    )

    def transform(sch):
        sch.split(sch.get_loops("arg")[1], [3, None])
        sch.rfactor(sch.get_loops("arg")[1], 0)

    error = check_refused(program, transform, "rfactor/P5")
    assert "keeps the last of equal elements" in str(error)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (f"{LEFT} > {RIGHT}", f"{LEFT} < {RIGHT}"),  # another pair for each part
        (f"I[vi] > {RIGHT}", f"{LEFT} > {RIGHT}"),
        (f"{LEFT} > {RIGHT} or I[vi] < J[vi, vk]", f"{LEFT} > {RIGHT}"),  # a smaller value may bring its index
        (f"{LEFT} > {RIGHT} or ({LEFT} == {RIGHT} and I[vi] != J[vi, vk])", f"{LEFT} > {RIGHT}"),
    ],
)
def test_conditions_that_choose_no_pair(first, second):
    program = pair(
        f"T.Select({first}, I[vi], J[vi, vk])", f"T.Select({second}, {LEFT}, {RIGHT})", ("-1", "T.float32(-999)")
    )
    check_refused(program, lambda sch: sch.rfactor(sch.get_loops("arg")[1], 0), "rfactor/P5")


SPMV = """@T.prim_func
def spmv(P: T.Buffer((6,), "int32"), I: T.Buffer((20,), "int32"), A: T.Buffer((20,)), X: T.Buffer((9,)), Y: T.Buffer((5,))):
    T.assume_buffer_domain(P, [0, 21], order="nondecreasing")
    T.assume_buffer_domain(I, [0, 9])
    for i in range(5):
        with T.block("row"):
            vi = T.axis.spatial(5, i)
            with T.block("zero"):
                Y[vi] = T.float32(0)
            for p in range(P[vi + 1] - P[vi]):
                with T.block("sum"):
                    vp = T.axis.reduce(P[vi + 1] - P[vi], p)
                    Y[vi] = Y[vi] + A[P[vi] + vp] * X[I[P[vi] + vp]]
"""  # noqa: E501


def test_loops_whose_lengths_are_data():
    def transform(sch):
        lane = sch.split(sch.get_loops("sum")[0], [None, 4])[1]
        partial = sch.rfactor(lane, 0)
        assert sch.get(partial).name_hint == "sum_rf"

    sch = check(tw.script.from_source(SPMV), transform)
    neutral, partial, total = (sch.get(sch.get_block(name)) for name in ("sum_rf_init", "sum_rf", "sum"))
    assert [int(extent) for extent in partial.writes[0].buffer.shape] == [4, 5]
    kinds = lambda block: [axis.iter_type.name for axis in block.iter_vars]  # noqa: E731
    assert (kinds(neutral), kinds(partial), kinds(total)) == (
        ["DATA_PAR"],
        ["DATA_PAR", "COMM_REDUCE"],
        ["COMM_REDUCE"],
    )
    assert all(block.init is None for block in (neutral, partial, total))


@pytest.mark.parametrize("lengths", [[0, 0, 0, 0, 0], [20, 0, 0, 0, 0], [1, 7, 0, 8, 4], [4, 4, 4, 4, 4]])
def test_rows_of_any_length_compiled(lengths):
    sch = tw.Schedule(tw.script.from_source(SPMV))
    lane = sch.split(sch.get_loops("sum")[0], [None, 8])[1]
    sch.rfactor(lane, 0)
    sch.vectorize(sch.get_loops("sum_rf")[1])
    random = np.random.default_rng(0)
    pointers = np.concatenate([[0], np.cumsum(lengths)]).astype("int32")
    columns, values = random.integers(0, 9, 20).astype("int32"), random.integers(-4, 5, 20).astype("float32")
    x, y = random.integers(-4, 5, 9).astype("float32"), np.full(5, np.nan, "float32")
    tw.compile(sch, schedule="as written")(pointers, columns, values, x, y)
    want = [values[s:e] @ x[columns[s:e]] for s, e in zip(pointers[:-1], pointers[1:], strict=True)]  # noqa: RUF007
    np.testing.assert_array_equal(y, want)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        # Two rows of elements, each element twice: the partial results would be added twice.
        ("for i, r, p in T.grid(4, 2, 8):\n        {block}\n            vi = T.axis.spatial(4, i)", "rfactor/P8"),
        (
            "for i, p in T.grid(8, 8):\n        {block}\n            vi = T.axis.spatial(4, i // 2)",
            "rfactor/P8",
        ),
        ("for i, p in T.grid(4, 8):\n        {block}\n            vi = T.axis.spatial(4, i)", None),
    ],
)
def test_what_accumulates_comes_to_each_element_once(body, code):
    source = """@T.prim_func
def main(A: T.Buffer((4, 8)), B: T.Buffer((4,))):
    {body}
            vp = T.axis.reduce(8, p)
            B[vi] = B[vi] + A[vi, vp]
""".format(body=body.replace("{block}", 'with T.block("B"):'))
    transform = lambda sch: sch.rfactor(sch.get_loops("B")[-1], 0)  # noqa: E731
    if code:
        check_refused(tw.script.from_source(source), transform, code)
    else:
        check(tw.script.from_source(source), transform)


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8", "uint16"])
@pytest.mark.parametrize(
    ("step", "numpy"),
    [("B[vi] - A[vi, vp]", "subtract"), ("B[vi] + A[vi, vp]", "add"), ("B[vi] * A[vi, vp]", "multiply")],
)
def test_what_accumulates_keeps_its_operation(step, numpy, dtype):
    source = f"""@T.prim_func
def main(A: T.Buffer((4, 6), "{dtype}"), B: T.Buffer((4,), "{dtype}")):
    for i, p in T.grid(4, 6):
        with T.block("B"):
            vi, vp = T.axis.remap("SR", [i, p])
            B[vi] = {step}
"""
    a, b = (np.arange(24) % 5 + 1).reshape(4, 6).astype(dtype), np.arange(3, 7).astype(dtype)
    want = b.copy()
    for column in a.T:
        want = getattr(np, numpy)(want, column)
    for target in ("interpreter", "llvm"):
        sch = tw.Schedule(tw.script.from_source(source))
        sch.rfactor(sch.split(sch.get_loops("B")[1], [2, 3])[0], 0)
        got = b.copy()
        tw.compile(sch, target=target, schedule="as written")(a, got)
        np.testing.assert_array_equal(got, want)


def test_loops_that_divide_by_a_loop_that_is_empty():
    source = """@T.prim_func
def main(A: T.Buffer((1, 2, 3, 4), "int32"), B: T.Buffer((1, 2, 3), "int32")):
    for z, i in T.grid(1, 2):
        for j in range(z):
            for k in range(4):
                with T.block("sum"):
                    vz, vi, vk = T.axis.remap("SSR", [z, i, k])
                    vj = T.axis.spatial(3, j)
                    with T.init():
                        B[vz, vi, vj] = 0
                    B[vz, vi, vj] += A[vz, vi, vj, vk]
"""
    sch = tw.Schedule(tw.script.from_source(source))
    sch.fuse(*sch.get_loops("sum")[1:3])
    with pytest.raises(tw.ScheduleError) as caught:
        sch.rfactor(sch.get_loops("sum")[-1], 0)
    assert caught.value.code == "rfactor/P8"
    a, b = np.ones((1, 2, 3, 4), "int32"), np.full((1, 2, 3), 7, "int32")
    tw.compile(sch, schedule="as written")(a, b)
    assert (b == 7).all()  # nothing runs
