"""tw.compile(check_bounds=True): a call that would leave a buffer is an error that names the access."""

import numpy as np
import pytest
from tests.sparse_programs import SPMV, function

import tilewright as tw
from tilewright import script
from tilewright.script import tir as T

HEADER = "from tilewright.script import tir as T\n\n@T.prim_func\n"


def gather(loop="range"):
    return script.from_source(f"""{HEADER}def main(A: T.Buffer((8,)), I: T.Buffer((8,), "int32"), B: T.Buffer((8,))):
    for i in T.{loop if loop != "range" else "serial"}(8):
        with T.block("gather"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[I[vi]]
""")


def arguments(bad=None):
    a = np.arange(8, dtype="float32")
    indices = np.array([3, 1, 7, 0, 2, 6, 5, 4], "int32")
    if bad is not None:
        indices[5] = bad
    return a, indices, np.full(8, -1, "float32")


@pytest.mark.parametrize("loop", ["range", "parallel", "vectorized", "unroll"])
def test_an_index_from_memory(loop):
    kernel = tw.compile(gather(loop), check_bounds=True, schedule="as written")
    a, indices, b = arguments()
    kernel(a, indices, b)
    assert b.tolist() == a[indices].tolist()
    for bad in (8, -1, 2**31 - 1, -(2**31)):
        with pytest.raises(tw.ArgumentError) as info:
            kernel(*arguments(bad))
        assert info.value.code == "call/assertion"
        assert f"block 'gather' reads 'A' at index I[i] = {bad} of dimension 0, which is not in [0, 8)" in str(
            info.value
        )
    kernel(a, indices, b)  # the kernel is as good as before


def test_a_scatter_stops_before_it_writes():
    func = script.from_source(f"""{HEADER}def main(A: T.Buffer((8,)), I: T.Buffer((8,), "int32"), B: T.Buffer((8,))):
    for i in range(8):
        with T.block("scatter"):
            vi = T.axis.opaque(8, i)
            B[I[vi]] = A[vi]
""")
    a, indices, b = arguments(bad=8)
    memory = np.full(16, -1, "float32")
    with pytest.raises(tw.ArgumentError, match="block 'scatter' writes 'B' at index"):
        tw.compile(func, check_bounds=True, schedule="as written")(a, indices, memory[:8])
    assert (memory[8:] == -1).all()


@pytest.mark.parametrize(
    "value",
    [
        "T.if_then_else(I[vi] >= 0 and I[vi] < 8, A[I[vi]], T.float32(9))",
        "T.if_then_else(I[vi] < 0 or I[vi] >= 8, T.float32(9), A[I[vi]])",
    ],
)
def test_an_access_behind_a_condition_is_checked_where_it_happens(value):
    func = script.from_source(f"""{HEADER}def main(A: T.Buffer((8,)), I: T.Buffer((8,), "int32"), B: T.Buffer((8,))):
    for i in range(8):
        with T.block("S"):
            vi = T.axis.spatial(8, i)
            B[vi] = {value}
""")
    a, indices, b = arguments(bad=100)
    tw.compile(func, check_bounds=True, schedule="as written")(a, indices, b)
    assert b.tolist() == [3, 1, 7, 0, 2, 9, 5, 4]


def test_indices_of_indices_and_loops_of_data():
    func = script.from_source(f"""{HEADER}def main(
    A: T.Buffer((8,)), I: T.Buffer((8,), "int32"), P: T.Buffer((4,), "int32"), B: T.Buffer((3,))
):
    for i in range(3):
        with T.block("rows"):
            vi = T.axis.spatial(3, i)
            B[vi] = T.float32(0)
            for j in range(P[vi], P[vi + 1]):
                B[vi] = B[vi] + A[I[j]]
""")
    kernel = tw.compile(func, check_bounds=True, schedule="as written")
    a, indices, _ = arguments()
    b = np.zeros(3, "float32")
    kernel(a, indices, np.array([0, 2, 5, 8], "int32"), b)
    assert b.tolist() == [4, 9, 15]
    with pytest.raises(tw.ArgumentError, match=r"block 'rows' reads 'I' at index j = 8 of dimension 0"):
        kernel(a, indices, np.array([0, 2, 5, 9], "int32"), b)
    indices[7] = -3
    with pytest.raises(tw.ArgumentError, match=r"block 'rows' reads 'A' at index I\[j\] = -3 of dimension 0"):
        kernel(a, indices, np.array([0, 2, 5, 8], "int32"), b)


def test_symbolic_sizes_and_two_dimensions():
    @T.prim_func
    def shifted(a: T.handle, b: T.handle, k: T.int32):
        n = T.int32()
        A = T.match_buffer(a, (n, n))
        B = T.match_buffer(b, (n, n))
        for i, j in T.grid(n, n):
            with T.block("shift"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj + k]

    kernel = tw.compile(shifted, check_bounds=True, schedule="as written")
    a, b = np.arange(9, dtype="float32").reshape(3, 3), np.zeros((3, 3), "float32")
    kernel(a, b, 0)
    assert (a == b).all()
    with pytest.raises(tw.ArgumentError, match=r"block 'shift' reads 'A' at index .* = 3 of dimension 1.* \[0, n\)"):
        kernel(a, b, 1)


def test_lanes_that_a_mask_lets_through_are_checked():
    func = script.from_source(f"""{HEADER}def main(A: T.Buffer((8,)), n: T.int32, m: T.int32, B: T.Buffer((8,))):
    lanes = T.Ramp(n, 1, 4)
    mask = lanes < T.Broadcast(m, 4)
    B.vstore([T.Ramp(0, 1, 4)], A.vload([lanes], predicate=mask), predicate=mask)
""")
    kernel = tw.compile(func, check_bounds=True, schedule="as written")
    a, b = np.arange(8, dtype="float32"), np.full(8, -1, "float32")
    kernel(a, 6, 8, b)  # lanes 8 and 9 are masked out
    assert b.tolist() == [6, 7, -1, -1, -1, -1, -1, -1]
    with pytest.raises(tw.ArgumentError, match="the program reads 'A' at index"):
        kernel(a, 6, 9, b)
    with pytest.raises(tw.ArgumentError, match="the program reads 'A' at index"):
        kernel(a, -1, 8, b)
    kernel(a, 6, 0, b)


def test_what_loops_prove_costs_nothing():
    @T.prim_func
    def plain(A: T.Buffer((64, 64)), B: T.Buffer((64, 64))):
        for i, j in T.grid(64, 64):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vj, 63 - vi]

    assert tw.compile(plain, check_bounds=True, schedule="as written").inspect("asm") == tw.compile(
        plain, schedule="as written"
    ).inspect("asm")
    unasked = tw.compile(gather(), schedule="as written")
    assert "assert" not in unasked.inspect("tir")


@pytest.mark.parametrize("n", [4, 5, 2**31 - 1, 2**31 + 1, 2**32 - 1, 2**32 + 2, 2**33])
def test_extents_beyond_the_type_of_indices(n):
    @T.prim_func
    def through(B: T.Buffer((4,), "int8"), I: T.Buffer((4,), "int32"), n: T.int64):
        A = T.alloc_buffer((n,), "int8")
        for i in range(4):
            with T.block("A"):
                v = T.axis.spatial(4, i)
                A[I[v]] = T.Cast("int8", v + 1)
        for i in range(4):
            with T.block("B"):
                v = T.axis.spatial(4, i)
                B[v] = A[I[3 - v]]

    kernel = tw.compile(through, check_bounds=True, schedule="as written")
    index, b = np.arange(4, dtype="int32"), np.zeros(4, "int8")
    kernel(b, index, n)
    assert b.tolist() == [4, 3, 2, 1]
    for far in (-1, n) if n < 2**31 else (-1,):
        with pytest.raises(tw.ArgumentError, match="block 'A' writes 'A' at index"):
            kernel(b, np.array([0, 1, far, 3], "int32"), n)


@pytest.mark.parametrize("array, position, value", [(1, 3, 10**8), (1, 3, -5), (0, 2, 10**8), (0, 0, -7), (0, 4, 99)])
def test_structures_that_break_what_the_program_declares(array, position, value):
    """Proofs of bounds rely on the structure, so it is checked before anything is read through it."""
    kernel = tw.compile(function(SPMV), check_bounds=True)
    structure = [np.array([0, 2, 3, 3, 6], "int32"), np.array([0, 4, 2, 1, 3, 4], "int32")]
    values, x, y = np.ones(6, "float32"), np.ones(5, "float32"), np.full(4, -1, "float32")
    kernel(values, x, y, *structure, 4, 5, 6)
    assert y.tolist() == [2, 1, 0, 3]
    y[:] = -1
    structure[array][position] = value
    with pytest.raises(tw.ArgumentError, match=f"{'pq'[array]}_data\\[") as info:
        kernel(values, x, y, *structure, 4, 5, 6)
    assert info.value.code == "call/assertion" and (y == -1).all()


def test_devices_do_not_rely_on_declarations():
    """The host cannot read arrays of a device, so its kernels check what a declaration would prove."""
    kernel = tw.compile(function(SPMV), "opencl", check_bounds=True)
    p, q = np.array([0, 2, 3, 3, 6], "int32"), np.array([0, 4, 2, 1, 3, 4], "int32")
    values, x, y = np.ones(6, "float32"), np.arange(5, dtype="float32"), np.full(4, -1, "float32")
    kernel(values, x, y, p, q, 4, 5, 6)
    assert y.tolist() == [4, 2, 0, 8]
    for wrong_p, wrong_q in ((p, np.array([0, 4, 2, 1, 5, 4], "int32")), (np.array([0, 2, 3, 3, 7], "int32"), q)):
        with pytest.raises(tw.ArgumentError, match="which is not in") as info:
            kernel(values, x, y, wrong_p, wrong_q, 4, 5, 6)
        assert info.value.code == "call/assertion"


@pytest.mark.parametrize("factor", [32, 100])
def test_devices_take_what_is_proved(factor):
    """With the conditions around an access: those of blocks, of statements and of values."""
    sch = tw.Schedule(
        script.from_source(f"""{HEADER}def main(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,))
    B = T.match_buffer(b, (n,))
    for i in range(n):
        with T.block("B"):
            vi = T.axis.spatial(n, i)
            B[vi] = T.if_then_else(vi > 0, A[vi - 1], T.float32(0))
""")
    )
    block, thread = sch.split(sch.get_loops("B")[0], [None, factor])
    sch.bind(block, "blockIdx.x")
    sch.bind(thread, "threadIdx.x")
    kernel = tw.compile(sch, "opencl", check_bounds=True)
    a, b = np.arange(70, dtype="float32"), np.full(70, -1, "float32")
    kernel(a, b)
    assert b.tolist() == [0, *range(69)]


def test_devices_report_the_access():
    kernel = tw.compile(gather(), "opencl", check_bounds=True)
    a, indices, b = arguments()
    kernel(a, indices, b)
    assert b.tolist() == a[indices].tolist()
    for bad in (-1, 8, 2**31 - 1, -(2**31)):
        a, indices, b = arguments(bad)
        with pytest.raises(tw.ArgumentError) as info:
            kernel(a, indices, b)
        assert info.value.code == "call/assertion"
        found = f"block 'gather' reads 'A' at index I[i_0 * 32 + i_1] = {bad} of dimension 0, which is not in [0, 8)"
        assert found in str(info.value)
        assert ":8:13" in str(info.value)  # the statement


def test_rows_that_are_declared_to_be_disjoint():
    """The marks of the check are memory of the kernel."""
    func = script.from_source(f"""{HEADER}def main(
    R: T.Buffer((3,), "int32"), S: T.Buffer((3,), "int32"), Y: T.Buffer((9,))
):
    T.assume_buffer_domain(R, [0, 9], order="increasing")
    T.assume_buffer_domain(S, [0, 9], order="increasing")
    T.assume_disjoint(R, S)
    for i in range(3):
        with T.block("R"):
            vi = T.axis.spatial(3, i)
            Y[R[vi]] = 1.0
    for i in range(3):
        with T.block("S"):
            vi = T.axis.spatial(3, i)
            Y[S[vi]] = 2.0
""")
    kernel = tw.compile(func, check_bounds=True, schedule="as written")
    rows, y = np.array([0, 4, 7], "int32"), np.zeros(9, "float32")
    kernel(rows, rows + 1, y)
    assert y.tolist() == [1, 2, 0, 0, 1, 2, 0, 1, 2]
    for wrong in (np.array([1, 4, 8], "int32"), np.array([1, 9, 10], "int32"), np.array([3, 2, 1], "int32")):
        y[:] = 0
        with pytest.raises(tw.ArgumentError, match="S\\["):
            kernel(rows, wrong, y)
        assert not y.any()
