"""Parallel loops over lists of rows that are declared: T.assume_buffer_domain, T.assume_disjoint."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tests.sparse.test_decompose import M, N, mask_of, spmm

import tilewright as tw
from tilewright.script import from_source
from tilewright.sparse import convert_structure, decompose_format, formats

#: orders of lists in which no value occurs twice
NONE_TWICE = ["increasing", "distinct"]
#: rows of the result
ROWS = 12
WIDEST = 2
K = 8


def scatter(orders: Sequence[str], indices: Sequence[str], groups: Sequence[Sequence[int]]) -> Any:
    """A program that adds to rows of several lists: with these orders, indices such as "{}" or "{} // 2", and groups of
    lists that are declared to be disjoint."""
    parameters = ", ".join(f'R{n}: T.Buffer((3,), "int32"), A{n}: T.Buffer((3, 4))' for n in range(len(orders)))
    lines = ["@T.prim_func", f"def scatter({parameters}, C: T.Buffer(({ROWS}, 4))):"]
    lines += [f'    T.assume_buffer_domain(R{n}, [0, {ROWS}], order="{order}")' for n, order in enumerate(orders)]
    lines += [f"    T.assume_disjoint({', '.join(f'R{n}' for n in group)})" for group in groups]
    for n, (order, index) in enumerate(zip(orders, indices, strict=True)):
        row = index.format(f"R{n}[vi]")
        # A block whose instances may meet takes them one after another: its axis is one of a reduction.
        apart = order in NONE_TWICE and index == "{}"
        lines += [
            "    for i, j in T.grid(3, 4):",
            f'        with T.block("b{n}"):',
            f'            vi, vj = T.axis.remap("{"SS" if apart else "RS"}", [i, j])',
            *([f'            T.assume_buffer_domain(R{n}, [0, {ROWS}], order="{order}")'] if apart else []),
            f"            C[{row}, vj] += A{n}[vi, vj]",
        ]
    return from_source("\n".join(lines) + "\n")


def fused(func: Any) -> tuple[tw.Schedule, Any]:
    sch = tw.Schedule(func)
    names = [f"b{n}" for n in range(sum(1 for param in func.params if func.buffer_map[param].name.startswith("R")))]
    loops = [sch.get_loops(name)[0] for name in names]
    return sch, sch.horizontal_fuse(*loops) if len(loops) > 1 else loops[0]


def test_parallel_where_all_rows_differ_and_only_there() -> None:
    """Lists without duplicates, pairwise disjoint, which are the rows themselves: everything else may be a race."""
    random = np.random.default_rng(0)
    answers = set()
    for case in range(60):
        count = int(random.integers(1, 4))
        easy = case % 2 == 0
        orders = [str(random.choice(NONE_TWICE if easy else ["", "nondecreasing", *NONE_TWICE])) for _ in range(count)]
        indices = ["{}" if easy or random.random() < 0.7 else "{} // 2" for _ in range(count)]
        pairs = [*itertools.combinations(range(count), 2)]
        groups: list[Sequence[int]] = [pair for pair in pairs if random.random() < 0.8]
        if count == 3 and random.random() < 0.5:
            groups = [(0, 1, 2)]
        sch, task = fused(scatter(orders, indices, groups))
        disjoint = all(any({*pair} <= {*group} for group in groups) for pair in pairs)
        expected = disjoint and all(order in NONE_TWICE for order in orders) and all(i == "{}" for i in indices)
        try:
            sch.parallel(task)
        except tw.ScheduleError as error:
            assert not expected, sch.mod.script()
            assert error.code in {"parallel/P2", "parallel/P3", "parallel/P4"}
        else:
            assert expected, sch.mod.script()
            assert "agree" in str(sch.verify())
        answers.add(expected)
    assert answers == {True, False}


def test_rows_that_depend_on_another_axis_are_not_told_apart_by_their_list() -> None:
    func = from_source("""@T.prim_func
def f(R: T.Buffer((3,), "int32"), A: T.Buffer((3, 4)), C: T.Buffer((12,))):
    T.assume_buffer_domain(R, [0, 8], order="increasing")
    for i, j in T.grid(3, 4):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.assume_buffer_domain(R, [0, 8], order="increasing")
            C[R[vi] + vj] += A[vi, vj]
""")
    sch = tw.Schedule(func)
    with pytest.raises(tw.ScheduleError, match="may write the same elements"):
        sch.parallel(sch.get_loops("C")[0])


@pytest.mark.parametrize("order", NONE_TWICE)
@pytest.mark.parametrize(
    ("index", "is_parallel"),
    [
        ("R[vi] * 4 + vj", True),  # blocks of rows
        ("R[vi] * 3 + vj", False),
        ("R[vi // 2] * 4 + vj", False),
        ("R[vi] * 4 + vj + vi", False),
        ("R[vi] * 4 + vj * 0", False),
    ],
)
def test_values_that_differ_select_blocks_of_rows(order: str, index: str, is_parallel: bool) -> None:
    func = from_source(f"""@T.prim_func
def f(R: T.Buffer((3,), "int32"), A: T.Buffer((3, 4)), C: T.Buffer((40,))):
    T.assume_buffer_domain(R, [0, 9], order="{order}")
    for i, j in T.grid(3, 4):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.assume_buffer_domain(R, [0, 9], order="{order}")
            C[{index}] = A[vi, vj]
""")
    sch = tw.Schedule(func)
    if not is_parallel:
        with pytest.raises(tw.ScheduleError, match="may write the same elements"):
            sch.parallel(sch.get_loops("C")[0])
        return
    sch.parallel(sch.get_loops("C")[0])
    assert "agree" in str(sch.verify())


def test_two_axes_select_a_value() -> None:
    """Slices of rows: the list of SELL."""
    func = from_source("""@T.prim_func
def f(R: T.Buffer((12,), "int32"), A: T.Buffer((3, 4, 5)), C: T.Buffer((12, 5))):
    T.assume_buffer_domain(R, [0, 12], order="distinct")
    for s, l, j in T.grid(3, 4, 5):
        with T.block("C"):
            vs, vl, vj = T.axis.remap("SSS", [s, l, j])
            T.assume_buffer_domain(R, [0, 12], order="distinct")
            C[R[vs * 4 + vl], vj] = A[vs, vl, vj]
""")
    sch = tw.Schedule(func)
    sch.parallel(sch.get_loops("C")[0])
    assert "agree" in str(sch.verify())


def test_a_reader_of_other_rows_is_no_obstacle_but_one_of_all_rows_is() -> None:
    text = """@T.prim_func
def f(R0: T.Buffer((3,), "int32"), R1: T.Buffer((3,), "int32"), C: T.Buffer((12,)), D: T.Buffer((3,))):
    T.assume_buffer_domain(R0, [0, 12], order="increasing")
    T.assume_buffer_domain(R1, [0, 12], order="increasing")
    T.assume_disjoint(R0, R1)
    for i in range(3):
        with T.block("C"):
            vi = T.axis.spatial(3, i)
            T.assume_buffer_domain(R0, [0, 12], order="increasing")
            C[R0[vi]] = T.float32(1)
    for i in range(3):
        with T.block("D"):
            vi = T.axis.spatial(3, i)
            D[vi] = C[R1[vi]]
"""
    for reader, is_parallel in (("C[R1[vi]]", True), ("C[R0[vi] + 0]", False), ("C[vi]", False)):
        sch = tw.Schedule(from_source(text.replace("C[R1[vi]]", reader)))
        task = sch.horizontal_fuse(*(sch.get_loops(name)[0] for name in "CD"))
        if is_parallel:
            sch.parallel(task)
            assert "agree" in str(sch.verify())
        else:
            with pytest.raises(tw.ScheduleError, match="parallel/P5"):
                sch.parallel(task)


# ---- buckets of hyb

TEXT = spmm.script().replace("T.sp.dense_fixed(k)", f"T.sp.dense_fixed({K})").replace("k: T.int32, ", "")
SPMM = from_source(TEXT)


def tasks_of(sch: tw.Schedule, rules: Sequence[Any]) -> list[Any]:
    """Lower the program over hyb. Rows of a bucket accumulate in registers, and a task of each has equally many
    nonzeros; longer rows are tasks of their own."""
    for rule in rules:
        root, row, *_ = sch.get_sp_iters(f"spmm_{rule.name}")
        sch.sparse_fuse(root, row)
    sch.lower_sparse_iter()
    tasks = []
    for rule in rules:
        bucket = rule.name.split("_")[2]
        block = f"spmm_{rule.name}{1 if bucket == 'rest' else 0}"
        copy = sch.reverse_cache_write(block, "C", "local")
        if f"I_key_{rule.name}" in sch.mod["main"].script():  # rows of the other buckets may repeat
            for loop in (sch.get_loops(block)[-1], sch.get_loops(copy)[-1]):
                sch.vectorize(loop)
        if bucket == "rest":
            tasks.append(sch.get_loops(f"spmm_{rule.name}0")[0])
        else:
            tasks.append(sch.split(sch.get_loops(block)[0], [None, 2 ** (WIDEST - int(bucket))])[0])
    return tasks


def structures(what: str) -> np.ndarray:
    if what == "no rows":
        return np.zeros((0, N), bool)
    if what == "no columns":
        return np.zeros((M, 0), bool)
    mask = mask_of(what)
    if what == "empty buckets":
        mask[:] = False
        mask[::3, 1:4] = True  # three nonzeros each: one bucket
    return mask


def check_product(sch: tw.Schedule, program: Any, rules: Sequence[Any], mask: np.ndarray) -> None:
    """Compare the scheduled product with NumPy's, interpreted and on one and two threads."""
    m, n = mask.shape
    random = np.random.default_rng(1)
    values = random.integers(-4, 5, int(mask.sum())).astype("float32")
    b = random.integers(-4, 5, (n, K)).astype("float32")
    b[:1] = np.array([np.nan, np.inf, -np.inf, *[np.nan] * (K - 3)])  # no nonzero is in column 0
    dense = np.zeros(mask.shape, "float32")
    dense[mask] = values
    coordinates = tuple(along.astype("int32") for along in np.nonzero(mask))
    indptr = np.concatenate([[0], np.cumsum(mask.sum(1))]).astype("int32")
    converted = convert_structure(rules, mask.shape, coordinates)
    more = program.arguments(converted, converted.convert_values(values))
    for target, threads in (("interpreter", 1), ("native", 1), ("native", 2)):
        c = np.full((m, K), np.nan, "float32")
        kernel = tw.compile(sch, target)
        kernel.threads = threads
        kernel(b, c, indptr, coordinates[1], m, n, len(values), *more)
        np.testing.assert_array_equal(c, dense[:, 1:] @ b[1:])


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("what", ["random", "empty", "one dense row", "empty buckets", "no rows", "no columns"])
def test_buckets_of_hyb_are_one_parallel_loop(what: str, parts: int) -> None:
    """Each part is one parallel loop over the tasks of all its buckets; parts follow one another."""
    mask = structures(what)
    m, n = mask.shape
    rules = formats.hyb(m, n, parts, WIDEST, cut=False)
    program = decompose_format(SPMM, "A", rules)
    sch = tw.Schedule(program.function)
    tasks = tasks_of(sch, rules)
    size = len(rules) // parts
    for part in range(parts):
        sch.parallel(sch.horizontal_fuse(*tasks[part * size : (part + 1) * size]))
    tw.ir.verify(sch.mod)
    if what == "random":
        assert "agree" in str(sch.verify())
    check_product(sch, program, rules, mask)


def test_rows_that_are_cut_and_parts_of_the_columns_may_meet() -> None:
    """Rows occur several times in the last bucket, and once in each part."""
    for rules, chosen in (
        (formats.hyb(M, N, 1, WIDEST), slice(None)),
        (formats.hyb(M, N, 1, WIDEST), slice(WIDEST, None)),
        (formats.hyb(M, N, 2, WIDEST, cut=False), slice(None)),
    ):
        sch = tw.Schedule(decompose_format(SPMM, "A", rules).function)
        tasks = tasks_of(sch, rules)[chosen]
        task = sch.horizontal_fuse(*tasks) if len(tasks) > 1 else tasks[0]
        with pytest.raises(tw.ScheduleError) as info:
            sch.parallel(task)
        assert info.value.code in {"parallel/P2", "parallel/P3", "parallel/P4"}
    # All buckets but the last one have each row once.
    rules = formats.hyb(M, N, 1, WIDEST)
    sch = tw.Schedule(decompose_format(SPMM, "A", rules).function)
    sch.parallel(sch.horizontal_fuse(*tasks_of(sch, rules)[:WIDEST]))
    assert "agree" in str(sch.verify())


@pytest.mark.parametrize("count", [4, 7])
def test_a_format_that_is_a_step_of_the_schedule(count: int) -> None:
    """Rules that take no nonzero are disjoint from all others."""
    sch = tw.Schedule(SPMM)
    widest = sch.sample_categorical([1, WIDEST], [0.5, 0.5])
    sch.decompose_format("A", "hyb", [M, N, 1, widest, 0], count=count)
    program = tw.sparse.decomposition_of(sch, SPMM)
    for rule in program.rules:
        root, row, *_ = sch.get_sp_iters(f"spmm_{rule.name}")
        sch.sparse_fuse(root, row)
    sch.lower_sparse_iter()
    loops = [sch.get_loops(f"spmm_{rule.name}0")[0] for rule in program.rules]
    sch.parallel(sch.horizontal_fuse(*loops))
    assert "agree" in str(sch.verify(inputs={"m": M, "n": N, "nnz": 60}))
    replayed = tw.Schedule(SPMM)
    sch.trace.apply_to_schedule(replayed)
    tw.ir.assert_structural_equal(replayed.mod, sch.mod)


@pytest.mark.parametrize("name", ["csr", "ell", "dcsr", "padded_csr", "bsr"])
def test_rows_of_formats_that_have_each_row_once_run_in_parallel(name: str) -> None:
    rules = {
        "csr": formats.csr(M, N),
        "ell": formats.ell(M, N, N),
        "dcsr": formats.dcsr(M, N),
        "padded_csr": formats.padded_csr(M, N, 4),
        "bsr": formats.bsr(M, N, 3),
    }[name]
    program = decompose_format(SPMM, "A", rules)
    sch = tw.Schedule(program.function)
    if name == "dcsr":
        root, row, *_ = sch.get_sp_iters("spmm_dcsr")
        sch.sparse_fuse(root, row)
    sch.lower_sparse_iter()
    sch.parallel(sch.get_loops(f"spmm_{name}0")[0])
    check_product(sch, program, rules, mask_of("random"))
