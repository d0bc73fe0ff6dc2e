"""Kernels on an OpenCL device: results equal NumPy's, and a simulator of devices finds no race."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from tests.processes import in_process

import tilewright as tw
from lower.test_gpu import matmul, numbers, tiled
from tilewright import _core
from tilewright.script import from_source


def elementwise(sources: list[str], result: str, expression: str, n: int = 64) -> Any:
    """Return a kernel of one thread for each element of `expression` over a, b, ..."""
    names = "abcd"[: len(sources)]
    parameters = ", ".join(
        f"{name.upper()}: T.Buffer(({n},), '{dtype}')" for name, dtype in zip(names, sources, strict=True)
    )
    reads = expression
    for name in names:
        reads = reads.replace(f"<{name}>", f"{name.upper()}[v]")
    sch = tw.Schedule(
        from_source(f"""
@T.prim_func
def main({parameters}, R: T.Buffer(({n},), "{result}")):
    for i in range({n}):
        with T.block("R"):
            v = T.axis.spatial({n}, i)
            R[v] = {reads}
""")
    )
    bx, tx = sch.split(sch.get_loops("R")[0], [None, 16])
    sch.bind(bx, "blockIdx.x")
    sch.bind(tx, "threadIdx.x")
    return tw.compile(sch, target="opencl"), sch


def filled(values: list[Any], dtype: str, n: int = 64) -> np.ndarray:
    return np.resize(np.array(values).astype(dtype), n)


INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


def extremes(dtype: str) -> np.ndarray:
    limits = np.iinfo(dtype)
    values = [0, 1, 2, 3, 5, 7, limits.max, limits.max - 1, limits.min, limits.min + 1, limits.max // 2]
    if limits.min < 0:
        values += [-1, -2, -3, -7]
    return np.array(values, dtype)


def pairs(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    values = extremes(dtype)
    a, b = np.meshgrid(values, values)
    return a.ravel(), b.ravel()


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_at_their_limits(dtype):
    a, b = pairs(dtype)
    n = (len(a) + 15) // 16 * 16
    a, b = np.resize(a, n), np.resize(b, n)
    nonzero = np.where(b == 0, np.ones_like(b), b)
    exact_a, exact_b = a.astype(object), nonzero.astype(object)
    bits = np.iinfo(dtype).bits

    def wrapped(values: np.ndarray) -> np.ndarray:
        return np.array([int(value) % 2**bits for value in values], "uint64").astype(f"uint{bits}").view(dtype)

    quotient = exact_a // exact_b
    truncated = np.empty(n, object)
    for i, (x, y) in enumerate(zip(exact_a, exact_b, strict=True)):
        truncated[i] = abs(int(x)) // abs(int(y)) * (1 if (x < 0) == (y < 0) else -1)
    expected = {
        "<a> + <b>": wrapped(a.astype(object) + nonzero.astype(object)),
        "<a> - <b>": wrapped(exact_a - exact_b),
        "<a> * <b>": wrapped(exact_a * exact_b),
        "T.floordiv(<a>, <b>)": wrapped(quotient),
        "T.floormod(<a>, <b>)": wrapped(exact_a - quotient * exact_b),
        "T.truncdiv(<a>, <b>)": wrapped(truncated),
        "T.truncmod(<a>, <b>)": wrapped(exact_a - truncated * exact_b),
        "T.min(<a>, <b>)": np.minimum(a, nonzero),
        "T.max(<a>, <b>)": np.maximum(a, nonzero),
        "T.bitwise_and(<a>, <b>)": a & nonzero,
        "T.bitwise_xor(<a>, <b>)": a ^ nonzero,
        "T.bitwise_not(<a>)": ~a,
    }
    for expression, wanted in expected.items():
        kernel, _ = elementwise([dtype, dtype], dtype, expression, n)
        result = np.zeros(n, dtype)
        kernel(a, nonzero, result)
        np.testing.assert_array_equal(result, wanted, err_msg=expression)


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint32", "int64"])
def test_shifts_beyond_the_type(dtype):
    bits = np.iinfo(dtype).bits
    values, amounts = np.meshgrid(extremes(dtype), np.array([0, 1, bits - 1, bits, bits + 1], dtype))
    a, b = np.resize(values.ravel(), 80), np.resize(amounts.ravel(), 80)
    left = np.array([int(x) << int(y) if y < bits else 0 for x, y in zip(a, b, strict=True)], object)
    right = np.array([int(x) >> min(int(y), bits) for x, y in zip(a, b, strict=True)], dtype)
    for expression, wanted in [
        ("T.shift_left(<a>, <b>)", np.array([v % 2**bits for v in left], "uint64").astype(f"uint{bits}").view(dtype)),
        ("T.shift_right(<a>, <b>)", right),
    ]:
        kernel, _ = elementwise([dtype, dtype], dtype, expression, 80)
        result = np.zeros(80, dtype)
        kernel(a, b, result)
        np.testing.assert_array_equal(result, wanted, err_msg=expression)


FLOATS = [0.0, -0.0, 1.0, -1.5, 0.1, np.inf, -np.inf, np.nan, 1e-40, 3e38, 7.25]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_floats_at_their_edges(dtype):
    x, y = np.meshgrid(np.array(FLOATS, dtype), np.array(FLOATS, dtype))
    a, b = np.resize(x.ravel(), 128), np.resize(y.ravel(), 128)
    with np.errstate(all="ignore"):
        expected = {
            "<a> + <b>": a + b,
            "<a> * <b>": a * b,
            "<a> / <b>": a / b,
            "T.min(<a>, <b>)": np.minimum(a, b),
            "T.max(<a>, <b>)": np.maximum(a, b),
            "T.sqrt(<a>)": np.sqrt(a),
            "T.floor(<a>)": np.floor(a),
            "T.nearbyint(<a>)": np.rint(a),
            "T.trunc(<a>)": np.trunc(a),
        }
    for expression, wanted in expected.items():
        kernel, _ = elementwise([dtype, dtype], dtype, expression, 128)
        result = np.zeros(128, dtype)
        kernel(a, b, result)
        np.testing.assert_array_equal(result, wanted, err_msg=expression)


@pytest.mark.parametrize("to", INTEGERS)
def test_casts_of_floats_saturate(to):
    limits = np.iinfo(to)
    values = np.array([0.0, -0.9, 1.9, -1.9, np.nan, np.inf, -np.inf, 3e38, -3e38, 2.0**31, 2.0**63, 100.5], "float32")
    a = np.resize(values, 16)
    wanted = [0 if np.isnan(v) else int(min(max(float(v), float(limits.min)), float(limits.max))) for v in a]
    wanted = [min(max(v, limits.min), limits.max) for v in wanted]
    kernel, _ = elementwise(["float32"], to, f'T.cast(<a>, "{to}")', 16)
    result = np.zeros(16, to)
    kernel(a, result)
    np.testing.assert_array_equal(result, np.array(wanted, to))


def test_half_precision_rounds_after_each_operation():
    values = np.array([0.1, 1.0, 1000.0, 65504.0, 6e-8, -2.5, np.inf, np.nan], "float16")
    a, b = (np.resize(v.ravel(), 64) for v in np.meshgrid(values, values))
    for expression, wanted in [
        ("<a> + <b>", (a.astype("float32") + b.astype("float32")).astype("float16")),
        ("<a> * <b>", (a.astype("float32") * b.astype("float32")).astype("float16")),
        ("T.max(<a>, <b>)", np.maximum(a, b)),
    ]:
        kernel, _ = elementwise(["float16", "float16"], "float16", expression)
        result = np.zeros(64, "float16")
        kernel(a, b, result)
        np.testing.assert_array_equal(result, wanted, err_msg=expression)


@pytest.mark.parametrize("shape", [(16, 32, 12), (20, 9, 10), (64, 64, 64)])
@pytest.mark.parametrize("virtual", [False, True])
def test_a_product_with_shared_tiles(shape, virtual):
    m, n, k = shape
    a, b = numbers(m, k), numbers(k, n, seed=1)
    kernel = tw.compile(tiled(m, n, k, virtual), target="opencl")
    c = np.zeros((m, n), "float32")
    kernel(a, b, c)
    np.testing.assert_array_equal(c, a @ b)
    assert kernel(a, b).tolist() == c.tolist()  # an omitted output
    text = kernel.inspect("opencl")
    assert "__kernel" in text and "barrier(CLK_LOCAL_MEM_FENCE);" in text and "reqd_work_group_size(4, 4, 1)" in text


def softmax(rows: int, length: int, threads: int) -> tw.Schedule:
    """A softmax whose blocks reduce a row each, across their threads."""
    sch = tw.Schedule(
        from_source(f"""
@T.prim_func
def main(A: T.Buffer(({rows}, {length})), B: T.Buffer(({rows}, {length}))):
    M = T.alloc_buffer(({rows},))
    S = T.alloc_buffer(({rows},))
    for i, k in T.grid({rows}, {length}):
        with T.block("M"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                M[vi] = T.min_value("float32")
            M[vi] = T.max(M[vi], A[vi, vk])
    for i, k in T.grid({rows}, {length}):
        with T.block("S"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                S[vi] = T.float32(0)
            S[vi] = S[vi] + T.exp(A[vi, vk] - M[vi])
    for i, j in T.grid({rows}, {length}):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = T.exp(A[vi, vj] - M[vi]) / S[vi]
""")
    )
    i, j = sch.get_loops("B")
    sch.bind(i, "blockIdx.x")
    _, tx = sch.split(j, [None, threads])
    sch.bind(tx, "threadIdx.x")
    for name in ("S", "M"):
        block = sch.get_block(name)
        sch.set_scope(block, 0, "shared")
        sch.compute_at(block, i, preserve_unit_loops=True)
        _, tx = sch.split(sch.get_loops(block)[-1], [None, threads])
        sch.bind(tx, "threadIdx.x")
    return sch


@pytest.mark.parametrize(("rows", "length", "threads"), [(4, 64, 16), (3, 50, 16), (2, 7, 32)])
def test_a_softmax_reduced_across_threads(rows, length, threads):
    sch = softmax(rows, length, threads)
    a = np.random.default_rng(0).normal(size=(rows, length)).astype("float32") * 4
    expected = np.exp(a - a.max(axis=1, keepdims=True))
    expected /= expected.sum(axis=1, keepdims=True)
    for module in (module for _, module in _core.lower_stages(sch.mod, "opencl")):
        found = np.zeros_like(a)
        _core.interpret(module, "main", a, found)
        np.testing.assert_allclose(found, expected, rtol=1e-5)
    b = np.zeros_like(a)
    tw.compile(sch, target="opencl")(a, b)
    np.testing.assert_allclose(b, expected, rtol=1e-5)


def test_sizes_of_arguments_and_of_grids():
    program = from_source("""
@T.prim_func
def main(a: T.handle, b: T.handle, s: T.float32):
    n = T.int32()
    A = T.match_buffer(a, (n,))
    B = T.match_buffer(b, (n,))
    for i in range(n):
        with T.block("B"):
            v = T.axis.spatial(n, i)
            B[v] = A[v] * s
""")
    sch = tw.Schedule(program)
    bx, tx = sch.split(sch.get_loops("B")[0], [None, 32])
    sch.bind(bx, "blockIdx.x")
    sch.bind(tx, "threadIdx.x")
    kernel = tw.compile(sch, target="opencl")
    for n in (0, 1, 32, 1000):
        a, b = numbers(n), np.zeros(n, "float32")
        kernel(a, b, 3.0)
        np.testing.assert_array_equal(b, 3 * a)
    with pytest.raises(tw.ArgumentError) as raised:
        kernel(np.zeros(3, "float32"), np.zeros(4, "float32"), 1.0)
    assert raised.value.code == "call/shape"


def test_intermediate_results_stay_on_the_device():
    program = from_source("""
@T.prim_func
def main(A: T.Buffer((64,)), B: T.Buffer((64,))):
    M = T.alloc_buffer((64,))
    for i in T.thread_binding(64, thread="blockIdx.x"):
        with T.block("M"):
            v = T.axis.spatial(64, i)
            M[v] = A[v] + T.float32(1)
    for i in T.thread_binding(64, thread="blockIdx.x"):
        with T.block("B"):
            v = T.axis.spatial(64, i)
            B[v] = M[63 - v]
""")
    kernel = tw.compile(tw.Schedule(program), target="opencl")
    a, b = numbers(64), np.zeros(64, "float32")
    kernel(a, b)
    np.testing.assert_array_equal(b, a[::-1] + 1)
    assert kernel.inspect("opencl").count("__kernel") == 2


def test_an_exported_library_carries_the_kernels(tmp_path):
    exported = tw.compile(tiled(16, 16, 8), target="opencl").export(tmp_path, "product")
    kernel = tw.load(exported.library)
    a, b, c = numbers(16, 8), numbers(8, 16), np.zeros((16, 16), "float32")
    kernel(a, b, c)
    np.testing.assert_array_equal(c, a @ b)


def test_read_only_inputs():
    a, b, c = numbers(16, 8), numbers(8, 16), np.zeros((16, 16), "float32")
    a.flags.writeable = b.flags.writeable = False
    tw.compile(tiled(16, 16, 8), target="opencl")(a, b, c)
    np.testing.assert_array_equal(c, a @ b)


PROGRAM = """
import numpy as np
import tilewright as tw
from codegen.test_opencl import numbers, softmax, tiled
from lower.test_software_pipelines import pipelined

a, b, c = numbers(20, 10), numbers(10, 9), np.zeros((20, 9), "float32")
tw.compile(tiled(20, 9, 10), target="opencl")(a, b, c)
assert (c == a @ b).all()
rows = np.arange(100, dtype="float32").reshape(2, 50) / 10
found = np.zeros((2, 50), "float32")
tw.compile(softmax(2, 50, 16), target="opencl")(rows, found)
np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-5)
for k in (4, 30):
    a, b, c = numbers(16, k), numbers(k, 9), np.zeros((16, 9), "float32")
    tw.compile(pipelined((16, 9, k), (0, 0, 2), (0, 1, 2)), target="opencl")(a, b, c)
    assert (c == a @ b).all()
print("ran")
"""


@pytest.mark.preloads
def test_a_simulated_device_finds_no_race_and_no_access_out_of_bounds():
    outcome = in_process(PROGRAM, "oclgrind", "--data-races")
    report = outcome.stdout + outcome.stderr
    assert outcome.returncode == 0 and "ran" in outcome.stdout, report
    assert not any(word in report for word in ("race", "Invalid", "divergen", "Oclgrind")), report


def test_without_a_driver_the_error_says_what_to_install(tmp_path):
    outcome = in_process(PROGRAM, OCL_ICD_VENDORS=str(tmp_path))
    assert outcome.returncode != 0
    assert "call/no-device" in outcome.stderr and "pocl-opencl-icd" in outcome.stderr, outcome.stderr


def test_what_opencl_does_not_have_is_refused():
    sch = tw.Schedule(matmul(16, 16, 16))
    with pytest.raises(tw.Error) as raised:
        tw.compile(sch, target="opencl")
    assert raised.value.code == "lower/not-on-device"
    with pytest.raises(tw.ArgumentError) as raised:
        tw.compile(matmul(16, 16, 16)).inspect("opencl")
    assert raised.value.code == "kernel/inspect"


def test_devices_are_listed():
    described = _core.opencl_devices()
    assert described and all(len(text.split("\n")) == 4 for text in described)
    outcome = subprocess.run(
        [sys.executable, "-m", "tilewright", "info", "--json"], capture_output=True, text=True, timeout=300, check=True
    )
    assert [device["name"] for device in json.loads(outcome.stdout)["opencl"]] == [
        text.split("\n")[0] for text in described
    ]


@pytest.mark.parametrize(
    ("declared", "store"),
    [
        ("", "B[i] = T.q_multiply_shift_per_axis(1, 1, 1, 1, 1, True, True)"),
        ("W = T.decl_buffer((16,), scope='warp')", "W[i] = A[i]; B[i] = W[i]"),
    ],
)
def test_what_the_text_cannot_say_is_refused(declared, store):
    lines = "\n            ".join([declared or "pass", *store.split("; ")])
    program = from_source(
        f"""
@T.prim_func
def main(A: T.Buffer((16,)), B: T.Buffer((16,))):
    for x in T.thread_binding(1, thread="blockIdx.x"):
        for i in T.thread_binding(16, thread="threadIdx.x"):
            {lines}
""".replace("            pass\n", "")
    )
    with pytest.raises(tw.ScriptError) as raised:
        tw.compile(program, target="opencl")
    assert raised.value.code == "codegen/not-on-device"


def test_a_launch_beyond_the_limits_of_the_device():
    program = from_source("""
@T.prim_func
def main(B: T.Buffer((16384,), "int32")):
    for i in T.thread_binding(16384, thread="threadIdx.x"):
        B[i] = i
""")
    kernel = tw.compile(program, target="opencl -max_threads_per_block=16384")
    with pytest.raises(tw.ResourceError) as raised:
        kernel(np.zeros(16384, "int32"))
    assert raised.value.code == "call/launch" and "threads in a block" in str(raised.value)
