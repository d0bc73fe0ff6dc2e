"""Blocks that are annotated as atomic: scattered sums, minima and maxima whose reduction loops run in parallel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

import tilewright as tw
from codegen.test_cuda import compiled
from lower.passes import agrees, check, check_unchanged
from samples import seeds
from tilewright import _core
from tilewright.script import from_source
from tilewright.script import tir as T


@T.prim_func
def scatter(R: T.Buffer((64,), "int32"), V: T.Buffer((64,), "float32"), C: T.Buffer((8,), "float32")):
    for p in T.parallel(64):
        with T.block("scatter"):
            vp = T.axis.reduce(64, p)
            T.block_attr({"atomic": True})
            C[R[vp]] = C[R[vp]] + V[vp]


@T.prim_func
def scattered(R: T.Buffer((64,), "int32"), V: T.Buffer((64,), "float32"), C: T.Buffer((8,), "float32")):
    for p in T.parallel(64):
        with T.block("scatter"):
            vp = T.axis.spatial(64, p)
            T.reads(C[R[vp]], R[vp], V[vp])
            T.writes(C[R[vp]])
            T.atomic_add(T.address_of(C[R[vp]]), V[vp])


def test_the_updates_become_atomic_steps():
    check(scatter, "lower_atomics", scattered)
    check_unchanged(scattered, "lower_atomics")


def test_iterations_in_order_need_none():
    plain = from_source(scatter.script().replace("T.parallel(64)", "range(64)"))
    text = str(tw.lower(plain, after="lower_atomics", target="llvm").script())
    assert "atomic" not in text and "C[R[vp]] = C[R[vp]] + V[vp]" in text


def test_the_result_stays_what_it_is():
    draw = np.random.default_rng(0)
    rows, values = draw.integers(0, 8, 64).astype("int32"), draw.integers(-9, 9, 64).astype("float32")
    wanted = np.ones(8, "float32")
    np.add.at(wanted, rows, values)
    agrees(scatter, "lower_atomics", (rows, values, np.ones(8, "float32")), (rows, values, wanted))


# ---- scattered products: rows are data

M, K, NONZEROS = 50, 37, 400


def spmv(*, attribute: bool = True) -> Any:
    text = f"""
@T.prim_func
def main(R: T.Buffer(({NONZEROS},), "int32"), C: T.Buffer(({NONZEROS},), "int32"),
         V: T.Buffer(({NONZEROS},), "float32"), X: T.Buffer(({K},), "float32"), Y: T.Buffer(({M},), "float32")):
    for i in range({M}):
        with T.block("zero"):
            vi = T.axis.spatial({M}, i)
            Y[vi] = 0.0
    for p in range({NONZEROS}):
        with T.block("spmv"):
            vp = T.axis.reduce({NONZEROS}, p)
            T.block_attr({{"atomic": True}})
            Y[R[vp]] = Y[R[vp]] + V[vp] * X[C[vp]]
"""
    return from_source(text if attribute else text.replace('            T.block_attr({"atomic": True})\n', ""))


def coordinates(seed: int) -> tuple[list[np.ndarray], np.ndarray]:
    """Return the arguments of a product, and what SciPy makes of them: exact in any order."""
    draw = np.random.default_rng(seed)
    rows, columns = (draw.integers(0, n, NONZEROS).astype("int32") for n in (M, K))
    values, x = (draw.integers(-8, 9, n).astype("float32") for n in (NONZEROS, K))
    product = scipy.sparse.coo_array((values, (rows, columns)), shape=(M, K)) @ x
    return [rows, columns, values, x, np.full(M, 7, "float32")], product


def over_threads(sch: tw.Schedule) -> None:
    for name in ("zero", "spmv"):
        (loop,) = sch.get_loops(name)
        outer, inner = sch.split(loop, [None, 32])
        sch.bind(outer, "blockIdx.x")
        sch.bind(inner, "threadIdx.x")


def over_cores(sch: tw.Schedule) -> None:
    sch.parallel(sch.get_loops("spmv")[0])


@pytest.mark.parametrize(("schedule", "target"), [(over_cores, "llvm"), (over_threads, "opencl")])
def test_products_of_coordinates_equal_those_of_scipy(schedule, target):
    sch = tw.Schedule(spmv())
    schedule(sch)
    for seed in seeds(0, 4):
        given, product = coordinates(seed)
        kernel = tw.compile(sch, target=target)
        kernel(*given)
        np.testing.assert_array_equal(given[-1], product)
        assert not [note for note in kernel.notes if "unproved" in note.code], kernel.notes
    for name, stage in [("scheduled", sch.mod), *_core.lower_stages(sch.mod, target)]:
        given, product = coordinates(0)
        _core.interpret(stage, "main", *given)
        np.testing.assert_array_equal(given[-1], product, err_msg=f"{name}\n{stage.script()}")


def test_cuda_has_them_too():
    sch = tw.Schedule(spmv())
    over_threads(sch)
    assert "atomicAdd(" in compiled(sch).inspect("cuda")


def test_the_annotation_may_come_from_the_schedule():
    """As in schedules for SparseTIR."""
    sch = tw.Schedule(spmv(attribute=False))
    loop = sch.get_loops("spmv")[0]
    with pytest.raises(tw.ScheduleError) as error:
        sch.parallel(loop)
    assert error.value.code.startswith("parallel/")
    sch.annotate(sch.get_block("spmv"), "atomic", True)
    sch.parallel(loop)
    given, product = coordinates(3)
    tw.compile(sch)(*given)
    np.testing.assert_array_equal(given[-1], product)


@T.prim_func
def spmm(
    a: T.handle, x: T.handle, y: T.handle, indptr: T.handle, indices: T.handle, m: T.int32, n: T.int32, nnz: T.int32
):
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices))
    J_all = T.sp.dense_fixed(n)
    K = T.sp.dense_fixed(8)
    A = T.sp.match_buffer(a, (I, J), "float32")
    X = T.sp.match_buffer(x, (J_all, K), "float32")
    Y = T.sp.match_buffer(y, (I, K), "float32")
    with T.sp.iteration([T.sp.fuse(I, J), K], "SRS", "spmm") as [i, j, k]:
        T.sp.iteration_attr({"atomic": True})
        Y[i, k] = Y[i, k] + A[i, j] * X[j, k]


@pytest.mark.parametrize("target", ["llvm", "opencl"])
def test_an_iteration_over_nonzeros_hands_its_annotation_to_its_blocks(target):
    """Nonzeros, not rows, are spread over cores and threads: rows of any length are balanced."""
    sch = tw.Schedule(spmm)
    sch.lower_sparse_iter()
    if target == "llvm":
        sch.parallel(sch.get_loops("spmm0")[0])
    else:
        for name in ("J_I0", "spmm0"):
            outer, inner = sch.split(sch.get_loops(name)[0], [None, 32])
            sch.bind(outer, "blockIdx.x")
            sch.bind(inner, "threadIdx.x")
    draw = np.random.default_rng(6)
    matrix = scipy.sparse.random(50, 40, 0.2, "csr", "float32", random_state=6)
    matrix.data[:] = draw.integers(1, 9, matrix.nnz)
    x, y = draw.integers(-5, 5, (40, 8)).astype("float32"), np.zeros((50, 8), "float32")
    structure = matrix.indptr.astype("int32"), matrix.indices.astype("int32")
    tw.compile(sch, target=target)(matrix.data, x, y, *structure, 50, 40, matrix.nnz)
    np.testing.assert_array_equal(y, matrix @ x)


# ---- dense sums


def row_sums() -> tw.Schedule:
    return tw.Schedule(
        from_source("""
@T.prim_func
def main(A: T.Buffer((4, 256), "int32"), S: T.Buffer((4,), "int32")):
    for i, k in T.grid(4, 256):
        with T.block("S"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                S[vi] = 0
            S[vi] = S[vi] + A[vi, vk]
""")
    )


@pytest.mark.parametrize("axis", ["parallel", "blockIdx.x"])
def test_parts_of_one_sum_run_in_parallel(axis):
    """Blocks of threads cannot put their parts together otherwise."""
    sch = row_sums()
    block = sch.get_block("S")
    row, column = sch.get_loops(block)
    start = sch.decompose_reduction(block, row)
    outer, inner = sch.split(column, [8, None])
    with pytest.raises(tw.ScheduleError):
        sch.bind(outer, "blockIdx.x") if axis != "parallel" else sch.parallel(outer)
    sch.annotate(block, "atomic", True)
    if axis == "parallel":
        sch.parallel(outer)
    else:
        sch.bind(outer, "blockIdx.x")
        sch.bind(inner, "threadIdx.x")
        sch.bind(sch.get_loops(start)[0], "threadIdx.x")
    values = np.random.default_rng(1).integers(-9, 9, (4, 256)).astype("int32")
    found = np.zeros(4, "int32")
    tw.compile(sch, target="llvm" if axis == "parallel" else "opencl")(values, found)
    np.testing.assert_array_equal(found, values.sum(axis=1))
    _core.interpret(sch.mod, "main", values, found)
    np.testing.assert_array_equal(found, values.sum(axis=1))


def test_a_start_is_no_update():
    sch = row_sums()
    sch.annotate(sch.get_block("S"), "atomic", True)
    with pytest.raises(tw.ScriptError) as error:
        tw.compile(sch)
    assert error.value.code == "lower/atomic" and "decompose_reduction" in str(error.value)
    block = sch.get_block("S")
    start = sch.decompose_reduction(block, sch.get_loops(block)[0])
    assert "atomic" not in sch.get(start).annotations and "atomic" in sch.get(block).annotations
    values, found = np.ones((4, 256), "int32"), np.zeros(4, "int32")
    tw.compile(sch)(values, found)
    assert (found == 256).all()


# ---- operations

UPDATES = {
    "C[R[vp]] - V[vp]": np.subtract,
    "V[vp] + C[R[vp]]": np.add,
    "T.min(C[R[vp]], V[vp])": np.minimum,
    "T.max(V[vp], C[R[vp]])": np.maximum,
    "C[R[vp]] & V[vp]": np.bitwise_and,
    "V[vp] | C[R[vp]]": np.bitwise_or,
    "C[R[vp]] ^ V[vp]": np.bitwise_xor,
}
BITS = "&|^"


def updated(value: str, dtype: str) -> Any:
    return from_source(f"""
@T.prim_func
def main(R: T.Buffer((64,), "int32"), V: T.Buffer((64,), "{dtype}"), C: T.Buffer((8,), "{dtype}")):
    for p in T.parallel(64):
        with T.block("scatter"):
            vp = T.axis.reduce(64, p)
            T.block_attr({{"atomic": True}})
            C[R[vp]] = {value}
""")


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64", "float32", "float64"])
@pytest.mark.parametrize("value", UPDATES)
def test_every_update(value, dtype):
    if dtype.startswith("float") and any(sign in value for sign in BITS):
        pytest.skip("floats have no bitwise operations")
    draw = np.random.default_rng(8)
    rows = draw.integers(0, 8, 64).astype("int32")
    values, starts = draw.integers(0, 99, 64).astype(dtype), draw.integers(0, 99, 8).astype(dtype)
    wanted = starts.copy()
    UPDATES[value].at(wanted, rows, values)
    program = updated(value, dtype)
    if dtype.startswith("float") and "T." in value:
        with pytest.raises(tw.ScriptError) as error:
            tw.compile(program, schedule="as written")
        assert error.value.code in ("lower/atomic", "lower/race")
        return
    tw.compile(program, schedule="as written")(rows, values, starts)
    np.testing.assert_array_equal(starts, wanted)


@pytest.mark.parametrize("value", ["C[R[vp]] * V[vp]", "V[vp]", "C[R[vp]] + C[0]", "V[vp] - C[R[vp]]"])
def test_other_stores_are_refused(value):
    program = updated(value, "int32").script().replace("T.parallel(64)", "range(64)")
    with pytest.raises(tw.ScriptError) as error:
        tw.compile(from_source(program), schedule="as written")
    assert error.value.code == "lower/atomic" and "is not an atomic update" in str(error.value)
    assert "C[R[vp]] =" in str(error.value)


# ---- what else uses the elements

AROUND = """
@T.prim_func
def main(R: T.Buffer((64,), "int32"), V: T.Buffer((64,), "int32"), C: T.Buffer((64,), "int32"),
         D: T.Buffer((64,), "int32")):
    for p in range(64):
        with T.block("first"):
            vp = T.axis.spatial(64, p)
            FIRST
        with T.block("scatter"):
            vp = T.axis.reduce(64, p)
            T.block_attr({"atomic": True})
            C[R[vp]] = C[R[vp]] + D[vp]
"""
ALLOWED = {
    "D[vp] = V[vp] + 1": lambda rows, values, c, d: (np.add(values, 1, out=d), np.add.at(c, rows, d)),
    "T.atomic_add(T.address_of(C[vp]), V[vp])": lambda rows, values, c, d: (
        np.add(c, values, out=c),
        np.add.at(c, rows, d),
    ),
}


@pytest.mark.parametrize("first", ALLOWED)
def test_other_blocks_that_agree(first):
    sch = tw.Schedule(from_source(AROUND.replace("FIRST", first)))
    sch.parallel(sch.get_loops("scatter")[0])
    given = [np.random.default_rng(4).integers(0, 64, 64).astype("int32") for _ in range(4)]
    wanted = [each.copy() for each in given]
    ALLOWED[first](*wanted)
    kernel = tw.compile(sch)
    kernel(*given)
    for found, expected in zip(given, wanted, strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "first", ["C[vp] = 0", "D[vp] = C[vp]", "T.atomic_max(T.address_of(C[vp]), V[vp])", "D[vp] = D[63 - vp]"]
)
def test_other_blocks_that_need_an_order(first):
    sch = tw.Schedule(from_source(AROUND.replace("FIRST", first)))
    with pytest.raises(tw.ScheduleError) as error:
        sch.parallel(sch.get_loops("scatter")[0])
    assert error.value.code.startswith("parallel/")


def of_copies(scope: str) -> tw.Schedule:
    return tw.Schedule(
        from_source(f"""
@T.prim_func
def main(A: T.Buffer((64,), "int32"), C: T.Buffer((1,), "int32")):
    S = T.alloc_buffer((1,), "int32", scope="{scope}")
    with T.block("zero"):
        S[0] = 0
    for i in range(64):
        with T.block("S"):
            v = T.axis.reduce(64, i)
            T.block_attr({{"atomic": True}})
            S[0] = S[0] + A[v]
    with T.block("C"):
        C[0] = S[0]
""")
    )


@pytest.mark.parametrize(("scope", "axis"), [("shared", "blockIdx.x"), ("local", "vthread"), ("local", "blockIdx.x")])
def test_threads_do_not_meet_in_copies_of_their_own(scope, axis):
    """The sum of a part of the steps would be copied out."""
    sch = of_copies(scope)
    with pytest.raises(tw.ScheduleError) as error:
        sch.bind(sch.get_loops("S")[0], axis)
    assert error.value.code.startswith("bind/")


def test_threads_put_the_parts_of_a_private_sum_together_as_without_the_annotation():
    sch = of_copies("local")
    sch.bind(sch.get_loops("S")[0], "threadIdx.x")
    text = str(tw.lower(sch, after="lower_thread_reductions", target="cuda").script())
    assert "atomic" not in text and "S_part" in text


def test_results_of_steps_have_an_order():
    """A schedule may not let them come in another one; the program itself may."""
    text = """
@T.prim_func
def main(C: T.Buffer((1,), "int32"), B: T.Buffer((64,), "int32")):
    for p in LOOP(64):
        with T.block("count"):
            vp = T.axis.spatial(64, p)
            B[vp] = T.atomic_add(T.address_of(C[0]), 1)
"""
    sch = tw.Schedule(from_source(text.replace("LOOP", "range")))
    with pytest.raises(tw.ScheduleError) as error:
        sch.parallel(sch.get_loops("count")[0])
    assert error.value.code == "parallel/P2"
    found = np.zeros(64, "int32")
    tw.compile(from_source(text.replace("LOOP", "T.parallel")), schedule="as written")(np.zeros(1, "int32"), found)
    assert sorted(found) == list(range(64))


OPERATIONS = {
    "add": ("{} + {}", np.add),
    "min": ("T.min({}, {})", np.minimum),
    "max": ("T.max({}, {})", np.maximum),
    "and": ("{} & {}", np.bitwise_and),
    "or": ("{} | {}", np.bitwise_or),
    "xor": ("{} ^ {}", np.bitwise_xor),
}


@pytest.mark.parametrize("part", range(2))
def test_random_scatters(part):
    """Rank two, axes that no step meets in, splits that leave a remainder: on cores and threads."""
    for seed in seeds(part, 4):
        draw = np.random.default_rng(100 + seed)
        n, rows, width = (int(draw.integers(low, high)) for low, high in ((1, 120), (1, 9), (1, 20)))
        dtype, op = str(draw.choice(["int32", "uint32", "int64"])), str(draw.choice([*OPERATIONS]))
        element = "C[R[vp], vj]"
        value = OPERATIONS[op][0].format(element, "V[vp, vj]")
        program = from_source(f"""
@T.prim_func
def main(R: T.Buffer(({n},), "int32"), V: T.Buffer(({n}, {width}), "{dtype}"),
         C: T.Buffer(({rows}, {width}), "{dtype}")):
    for p, j in T.grid({n}, {width}):
        with T.block("scatter"):
            vp, vj = T.axis.remap("RS", [p, j])
            T.block_attr({{"atomic": True}})
            {element} = {value}
""")
        given = draw.integers(0, rows, n).astype("int32"), draw.integers(0, 100, (n, width)).astype(dtype)
        starts = draw.integers(0, 100, (rows, width)).astype(dtype)
        wanted = starts.copy()
        OPERATIONS[op][1].at(wanted, given[0], given[1])
        for target in ("llvm", "opencl"):
            sch = tw.Schedule(program)
            loops = sch.get_loops("scatter")
            outer, inner = sch.split(sch.fuse(*loops) if draw.integers(0, 2) else loops[0], [None, 16])
            if target == "llvm":
                sch.parallel(outer if draw.integers(0, 2) else inner)
            else:
                sch.bind(outer, "blockIdx.x")
                sch.bind(inner, "threadIdx.x")
            found = starts.copy()
            tw.compile(sch, target=target)(*given, found)
            np.testing.assert_array_equal(found, wanted, err_msg=f"{seed} {target}\n{sch.mod.script()}")
            found = starts.copy()
            _core.interpret(sch.mod, "main", *given, found)
            np.testing.assert_array_equal(found, wanted, err_msg=f"{seed} {target}")


def rows_with_a_part(is_atomic, extra=""):
    """Rows of a list add up in a buffer of their own first."""
    return from_source(f"""
@T.prim_func
def main(R: T.Buffer((24,), "int32"), V: T.Buffer((24, 4), "float32"), C: T.Buffer((5,), "float32"),
         D: T.Buffer((24,), "float32")):
    with T.block("root"):
        T.assume_buffer_domain(R, [0, 5])
        for p in range(24):
            with T.block("row"):
                vp = T.axis.reduce(24, p)
                T.reads(R[vp], V[vp, 0:4], C[R[vp]])
                T.writes(C[R[vp]]{", D[vp]" if extra else ""})
                part = T.alloc_buffer((1,), scope="local")
                for k in range(4):
                    with T.block("part"):
                        vk = T.axis.reduce(4, k)
                        with T.init():
                            part[0] = T.float32(0)
                        part[0] = part[0] + V[vp, vk]
                with T.block("add"):
                    T.reads(R[vp], C[R[vp]], part[0])
                    T.writes(C[R[vp]])
                    T.block_attr({{"atomic": {is_atomic}}})
                    C[R[vp]] = C[R[vp]] + part[0]
{extra}
""")


def test_blocks_in_a_block_may_make_its_atomic_steps():
    rows = (np.arange(24) * 7 % 5).astype("int32")
    values = np.arange(96, dtype="float32").reshape(24, 4)
    wanted = np.bincount(rows, values.sum(1), 5)
    for target, run in (("llvm", lambda sch, loop: sch.parallel(loop)),
                        ("opencl", lambda sch, loop: sch.bind(loop, "blockIdx.x"))):  # fmt: skip
        sch = tw.Schedule(rows_with_a_part(True))
        run(sch, sch.get_loops("row")[0])
        found = np.zeros(5, "float32")
        tw.compile(sch, target=target)(rows, values, found, np.zeros(24, "float32"))
        np.testing.assert_array_equal(found, wanted)


def test_what_else_a_block_does_needs_an_order():
    reads = """
                with T.block("read"):
                    T.reads(R[vp], C[R[vp]])
                    T.writes(D[vp])
                    D[vp] = C[R[vp]]
"""
    writes = """
                with T.block("write"):
                    T.reads()
                    T.writes(D[vp])
                    D[vp] = T.float32(1)
"""
    for program in (rows_with_a_part(False), rows_with_a_part(True, reads), rows_with_a_part(True, writes)):
        sch = tw.Schedule(program)
        with pytest.raises(tw.ScheduleError):
            sch.parallel(sch.get_loops("row")[0])
