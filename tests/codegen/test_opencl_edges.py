"""Edges of kernels on OpenCL: names, arithmetic of bool and short floats, bounds of loops, calls that end early."""

from __future__ import annotations

import ctypes
import os
import signal
import threading

import numpy as np
import pytest

import tilewright as tw
from codegen.test_opencl import elementwise, filled
from tilewright.script import from_source


def test_arithmetic_of_bool_is_modulo_2():
    a, b = filled([True, False, True, False], "bool"), filled([True, True, False, False], "bool")
    for operation, expected in [("+", a ^ b), ("-", a ^ b), ("*", a & b)]:
        kernel, _ = elementwise(["bool", "bool"], "bool", f"<a> {operation} <b>")
        np.testing.assert_array_equal(kernel(a, b), expected, err_msg=operation)


def test_floor_division_of_float16_is_rounded_once():
    a, b = filled([-1, -2.5, 7, 1], "float16"), filled([0.1, 0.1, 0.1, 3], "float16")
    kernel, _ = elementwise(["float16", "float16"], "float16", "<a> // <b>")
    exact = np.floor(a.astype("float64") / b.astype("float64"))
    np.testing.assert_array_equal(kernel(a, b), exact.astype("float16"))


@pytest.mark.parametrize(
    "name", ["M_PI", "CLK_LOCAL_MEM_FENCE", "image2d_t", "vec_step", "kernel", "get_local_id", "tw_min_i32", "a_1", "_"]
)
def test_names_of_the_language_are_names_of_parameters(name):
    program = from_source(f"""
@T.prim_func
def main({name}: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    for i in T.thread_binding(8, thread="threadIdx.x"):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            B[v] = T.min({name}[v], 5)
""")
    a = np.arange(8, dtype="int32")
    np.testing.assert_array_equal(tw.compile(program, target="opencl")(a), np.minimum(a, 5))


def test_barriers_in_a_loop_of_a_block_of_two_threads():
    """PoCL 3.1 ended the process: it copied such kernels once for each thread."""
    program = from_source("""
@T.prim_func
def main(A: T.Buffer((17, 37), "int64"), R: T.Buffer((17,), "int64")):
    A_shared = T.alloc_buffer((17, 37), "int64", scope="shared")
    for i_0 in T.thread_binding(5, thread="blockIdx.x"):
        for i_2 in T.thread_binding(2, thread="threadIdx.x"):
            for k_0 in T.serial(13, annotations={"software_pipeline_order": [1, 0], "software_pipeline_stage": [0, 1]}):
                for j_0 in range(2):
                    for j_1 in T.thread_binding(2, thread="threadIdx.x"):
                        for j_2 in T.vectorized(4):
                            with T.block("A_shared"):
                                v0 = T.axis.spatial(17, i_0 * 4 + (j_0 * 8 + j_1 * 4 + j_2) // 3)
                                v1 = T.axis.spatial(37, k_0 * 3 + (j_0 * 8 + j_1 * 4 + j_2) % 3)
                                T.where(
                                    i_0 * 4 + (j_0 * 8 + j_1 * 4 + j_2) // 3 < 17
                                    and k_0 * 3 + (j_0 * 8 + j_1 * 4 + j_2) % 3 < 37
                                    and j_0 * 8 + j_1 * 4 + j_2 < 12
                                )
                                A_shared[v0, v1] = A[v0, v1]
                for k_1, i_3 in T.grid(3, 2):
                    with T.block("R"):
                        vi = T.axis.spatial(17, i_0 * 4 + i_2 * 2 + i_3)
                        vk = T.axis.reduce(37, k_0 * 3 + k_1)
                        T.where(i_0 * 4 + i_2 * 2 + i_3 < 17 and k_0 * 3 + k_1 < 37)
                        with T.init():
                            R[vi] = T.int64(0)
                        R[vi] = R[vi] + A_shared[vi, vk]
""")
    a = np.arange(17 * 37).reshape(17, 37)
    np.testing.assert_array_equal(tw.compile(program, target="opencl", schedule="as written")(a), a.sum(axis=1))


def test_a_pointer_to_what_threads_exchange_may_alias():
    program = from_source("""
@T.prim_func
def main(A: T.Buffer((2,), "int32"), G: T.Buffer((2,), "int32"), P: T.Buffer((2,), "int32")):
    for x in T.thread_binding(1, thread="blockIdx.x"):
        with T.block("b"):
            vb = T.axis.spatial(1, x)
            for t in T.thread_binding(2, thread="threadIdx.x"):
                G[t] = A[t]
            for t in T.thread_binding(2, thread="threadIdx.x"):
                P[t] = G[1 - t]
            G[0] = 7
            for t in T.thread_binding(2, thread="threadIdx.x"):
                P[t] = P[t] + G[0]
""")
    kernel = tw.compile(program, target="opencl")
    g, p = np.zeros(2, "int32"), np.zeros(2, "int32")
    kernel(np.array([1, 2], "int32"), g, p)
    np.testing.assert_array_equal(g, [7, 2])
    np.testing.assert_array_equal(p, [9, 8])
    head = next(line for line in kernel.inspect("opencl").splitlines() if "tw_main_kernel(" in line)
    assert head.count("restrict") == 1  # of A, which is only read


def test_a_bound_is_evaluated_once():
    program = from_source("""
@T.prim_func
def main(A: T.Buffer((4,), "int32"), G: T.Buffer((4,), "int32"), N: T.Buffer((4,), "int32")):
    for t in T.thread_binding(4, thread="threadIdx.x"):
        with T.block("b"):
            v = T.axis.spatial(4, t)
            G[v] = A[v]
            N[v] = 0
            for k in range(G[v]):
                G[v] = G[v] - 2
                N[v] = N[v] + 1
""")
    a, g, n = np.arange(4, 8, dtype="int32"), np.zeros(4, "int32"), np.zeros(4, "int32")
    tw.compile(program, target="opencl")(a, g, n)
    np.testing.assert_array_equal(n, a)
    np.testing.assert_array_equal(g, -a)


def test_a_forked_process_is_told_that_the_driver_is_not_there():
    kernel, _ = elementwise(["float32"], "float32", "<a>")
    a = filled([1], "float32")
    kernel(a)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            kernel(a)
            os.write(writing, b"ran")
        except tw.ResourceError as error:
            os.write(writing, error.code.encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reading, 100) == b"call/no-device"
    os.close(reading)
    os.close(writing)


def test_ctrl_c_returns_from_a_kernel_that_runs_on():
    """The kernel ends later by itself."""
    kernel, _ = elementwise(["float32"], "float32", "<a>")
    slow = tw.compile(
        from_source("""
@T.prim_func
def main(A: T.Buffer((4,)), B: T.Buffer((4,))):
    for t in T.thread_binding(4, thread="threadIdx.x"):
        with T.block("B"):
            v = T.axis.spatial(4, t)
            B[v] = A[v]
            for k in range(3000000):
                B[v] = T.sin(B[v] + A[v])
"""),
        target="opencl",
    )
    timer = threading.Timer(0.3, os.kill, [os.getpid(), signal.SIGINT])
    b = np.full(4, -7, "float32")
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        slow(np.ones(4, "float32"), b)
    timer.join()
    np.testing.assert_array_equal(b, np.full(4, -7))  # nothing was copied back
    a = filled([1, 2], "float32")
    np.testing.assert_array_equal(kernel(a), a)


@pytest.mark.parametrize("n", [0, 1, 5, 70001])
@pytest.mark.parametrize("axes", [("blockIdx.y", "blockIdx.x"), ("blockIdx.z", "blockIdx.y")])
def test_a_grid_of_open_extents_is_folded(n, axes):
    """Along y and z, CUDA has 65,535 blocks; how many there are is known at the call only."""
    program = from_source("""
@T.prim_func
def main(a: T.handle, b: T.handle, n: T.int32):
    A = T.match_buffer(a, (n, 3), "int32")
    B = T.match_buffer(b, (n, 3), "int32")
    for i, j in T.grid(n, 3):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + vi * 2 + vj
""")
    sch = tw.Schedule(program)
    for loop, axis in zip(sch.get_loops("B"), axes, strict=True):
        sch.bind(loop, axis)
    kernel = tw.compile(sch, target="opencl")
    a = np.arange(n * 3, dtype="int32").reshape(n, 3)
    b = np.zeros_like(a)
    kernel(a, b, n)
    np.testing.assert_array_equal(b, a + 2 * np.arange(n)[:, None] + np.arange(3))
    assert "get_group_id(1)" not in kernel.inspect("opencl") and "get_group_id(2)" not in kernel.inspect("opencl")
    cuda = tw.compile(sch, target="cuda")
    assert cuda.report["kernels"] and "blockIdx.y" not in cuda.inspect("cuda")


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64", "float32"])
@pytest.mark.parametrize("condition", ["x * 4 + k < 1", "3 <= k - x * 4", "x == k"])
def test_private_memory_that_some_threads_set_in_one_loop_and_use_in_another(dtype: str, condition: str) -> None:
    """PoCL 3.1 loses such values where they have none to begin with."""
    program = from_source(f"""
@T.prim_func
def main(A: T.Buffer((7,), "{dtype}"), R: T.Buffer((7,), "{dtype}")):
    for y in T.thread_binding(7, thread="threadIdx.y"):
        for x in T.thread_binding(32, thread="threadIdx.x"):
            P = T.decl_buffer((4,), "{dtype}", scope="local")
            Q = T.decl_buffer((4,), "{dtype}", scope="local")
            for k in range(4):
                if {condition}:
                    P[3] = A[y]
            for k in range(4):
                if {condition}:
                    Q[0] = P[3]
            for k in range(4):
                if x == 0 and {condition}:
                    R[y] = Q[0]
""")
    a, r = np.arange(1, 8).astype(dtype), np.full(7, 77, dtype)
    tw.compile(program, target="opencl")(a, r)
    np.testing.assert_array_equal(r, a)


@pytest.mark.parametrize(("stored", "to"), [("uint8", "int8"), ("uint16", "float16"), ("int16", "uint16")])
@pytest.mark.parametrize("choice", ["T.Select", "T.if_then_else"])
def test_bits_of_a_choice_between_short_integers(stored: str, to: str, choice: str) -> None:
    program = from_source(f"""
@T.prim_func
def main(A: T.Buffer((4,), "{stored}"), B: T.Buffer((4,), "{stored}"), C: T.Buffer((4,), "{to}")):
    for i in T.thread_binding(4, thread="threadIdx.x"):
        C[i] = T.reinterpret("{to}", {choice}(A[i] > B[i], A[i], B[i]))
""")
    a, b, c = np.array([100, 3, 7, 60], stored), np.array([1, 90, 8, 0], stored), np.zeros(4, to)
    tw.compile(program, target="opencl")(a, b, c)
    np.testing.assert_array_equal(c.view(stored), np.maximum(a, b))
    assert tw.compile(program, target="cuda").report["kernels"]


@pytest.mark.parametrize("target", ["interpreter", "llvm", "opencl"])
@pytest.mark.parametrize("dtype", ["int64", "uint32", "uint64", "int8", "int32"])
def test_powers_beyond_all_exponents_give_infinity_or_zero(target: str, dtype: str) -> None:
    """A power of 2^32 is not one of 0."""
    loop = "range(8)" if target == "llvm" else 'T.thread_binding(8, thread="threadIdx.x")'
    program = from_source(f"""
@T.prim_func
def main(A: T.Buffer((8,), "float32"), P: T.Buffer((8,), "{dtype}"), B: T.Buffer((8,), "float32")):
    for i in {loop}:
        B[i] = T.ldexp(A[i], P[i])
""")
    ends = np.iinfo(dtype)
    beyond = {"int64": 2**32 + 1, "uint32": 2**31, "uint64": 2**63, "int8": 100, "int32": 2**20}[dtype]
    powers = np.array([ends.max, ends.min, beyond, 3, 0, 1, 2, 4], dtype)
    a, b = np.arange(1, 9, dtype="float32"), np.zeros(8, "float32")
    with np.errstate(over="ignore"):
        limited = [min(max(int(power), -1000), 1000) for power in powers]
        expected = np.ldexp(a.astype("float64"), limited).astype("float32")
    tw.compile(program, target=target)(a, powers, b)
    np.testing.assert_array_equal(b, expected)


def test_kernels_whose_names_have_other_letters_are_kept_apart() -> None:
    functions = {
        name: from_source(f"""
@T.prim_func
def {name}(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
    T.func_attr({{"global_symbol": "{name}"}})
    for i in T.thread_binding(4, thread="threadIdx.x"):
        B[i] = A[i] + {number}
""")
        for number, name in enumerate(["α", "β", "αZ", "__"])
    }
    module = tw.ir.Module(functions)
    a, kernels = np.arange(4, dtype="int32"), tw.compile(module, target="opencl")
    for number, name in enumerate(functions):
        b = np.zeros(4, "int32")
        kernels[name](a, b)
        np.testing.assert_array_equal(b, a + number)
    assert all(
        use["kernel"] in kernel.inspect("opencl") for kernel in kernels.values() for use in kernel.report["kernels"]
    )
    for kernel in tw.compile(module, target="cuda").values():
        assert kernel.report["kernels"] and all(use["occupancy"] for use in kernel.report["kernels"])


def test_results_between_one_another_are_all_kept():
    """Of strided arrays of the host, only the elements are written: not what lies between them."""
    program = from_source("""
@T.prim_func
def main(x: T.handle, a: T.handle, b: T.handle):
    s, t, u = T.int64(), T.int64(), T.int64()
    X = T.match_buffer(x, (2, 4), "float32")
    A = T.match_buffer(a, (2, 4), "float32", strides=(s, 2))
    B = T.match_buffer(b, (2, 4), "float32", strides=(t, u))
    for i in T.thread_binding(8, thread="threadIdx.x"):
        with T.block("b"):
            v = T.axis.spatial(8, i)
            A[v // 4, v % 4] = X[v // 4, v % 4] + T.float32(1)
            B[v // 4, v % 4] = X[v // 4, v % 4] + T.float32(2)
""")
    kernel = tw.compile(program, target="opencl")
    x = np.arange(8, dtype="float32").reshape(2, 4)
    both, want = np.full((3, 12), -1, "float32"), np.full((3, 12), -1, "float32")
    kernel(x, both[::2, 0:8:2], both[::2, 1:8:2])
    want[::2, 0:8:2], want[::2, 1:8:2] = x + 1, x + 2
    np.testing.assert_array_equal(both, want)


class Tensor(ctypes.Structure):
    """DLTensor."""

    _fields_ = [
        *(("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32)),
        *(("dtype", ctypes.c_uint8 * 4), ("shape", ctypes.POINTER(ctypes.c_int64))),
        *(("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)),
    ]


def test_an_array_without_elements_has_any_strides(tmp_path):
    program = from_source("""
@T.prim_func
def copy(x: T.handle, y: T.handle):
    n, s, t = T.int64(), T.int64(), T.int64()
    X = T.match_buffer(x, (n, 4), "float32", strides=(s, t))
    Y = T.match_buffer(y, (n, 4), "float32")
    for b in T.thread_binding(n, thread="blockIdx.x"):
        for i in T.thread_binding(4, thread="threadIdx.x"):
            with T.block("b"):
                vb, vi = T.axis.remap("SS", [b, i])
                Y[vb, vi] = X[vb, vi]
""")
    library = ctypes.CDLL(str(tw.compile(program, target="opencl").export(tmp_path).library))
    library.copy_last_error.restype = ctypes.c_char_p
    sizes = ctypes.c_int64 * 2
    x, y = (Tensor(None, (1, 0), 2, (2, 32, 1, 0), sizes(0, 4), sizes(4, step), 0) for step in (-1, 1))
    tensors = (ctypes.POINTER(Tensor) * 2)(ctypes.pointer(x), ctypes.pointer(y))
    assert library.copy(None, tensors, None) == 0, library.copy_last_error()
