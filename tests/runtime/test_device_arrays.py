"""Arrays on a device: kernels take them without copies and without waiting, and free them after their last use."""

from __future__ import annotations

import gc
import pickle
import subprocess
import textwrap
import threading
from typing import Any

import numpy as np
import pytest
from tests.processes import in_process

import tilewright as tw
from tilewright import _core
from tilewright.script import from_source


def bound(source: str, threads: int = 32) -> tw.Schedule:
    """Return the program with the loop of its block B bound."""
    sch = tw.Schedule(from_source(textwrap.dedent(source)))
    bx, tx = sch.split(sch.get_loops("B")[0], [None, threads])
    sch.bind(bx, "blockIdx.x")
    sch.bind(tx, "threadIdx.x")
    return sch


def scaled(n: int | str = "n", extra: str = "", strides: str = "") -> tw.Schedule:
    return bound(
        f"""
        @T.prim_func
        def scaled(a: T.handle, b: T.handle, s: T.float32):
            n = T.int32()
            {extra or "pass"}
            A = T.match_buffer(a, ({n},){strides})
            B = T.match_buffer(b, ({n},))
            for i in range({n}):
                with T.block("B"):
                    v = T.axis.spatial({n}, i)
                    B[v] = A[v] * s
    """.replace("            pass\n", "")
    )


def added() -> tw.Schedule:
    """Adds to its first argument, in place."""
    return bound("""
        @T.prim_func
        def added(A: T.Buffer((64,)), B: T.Buffer((64,))):
            for i in range(64):
                with T.block("B"):
                    v = T.axis.spatial(64, i)
                    A[v] = A[v] + B[v]
    """)


def slow(n: int = 1024, steps: int = 20_000_000) -> tw.Schedule:
    """Takes about a tenth of a second, which no compiler can skip; NumPy needs `steps` / `n` rounds to repeat it."""
    return bound(f"""
        @T.prim_func
        def slow(A: T.Buffer(({n},), "int32"), B: T.Buffer(({n},), "int32")):
            for i in range({n}):
                with T.block("B"):
                    v = T.axis.spatial({n}, i)
                    x = T.alloc_buffer((1,), "int32", scope="local")
                    x[0] = A[v]
                    for k in range({steps // n}):
                        x[0] = T.bitwise_xor(x[0] * 1664525 + 1013904223, k)
                    B[v] = x[0]
    """)


def expected_of_slow(a: np.ndarray, steps: int = 20_000_000) -> np.ndarray:
    x = a.astype("uint32")
    for k in range(steps // len(a)):
        x = (x * np.uint32(1664525) + np.uint32(1013904223)) ^ np.uint32(k)
    return x.view("int32")


def opencl(sch: Any) -> Any:
    return tw.compile(sch, target="opencl")


@pytest.fixture
def device() -> Any:
    return tw.device("opencl:0")


@pytest.fixture(autouse=True, scope="module")
def _older_objects_are_not_collected():
    """Libraries that earlier tests have imported are a tenth of a second of each collection below."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _nothing_is_left():
    gc.collect()
    before = _core.count_device_memory()
    yield
    gc.collect()
    assert _core.count_device_memory() == before


def test_a_kernel_takes_arrays_of_the_device(device):
    a = np.arange(100, dtype="float32")
    x, y = device.array(a), device.zeros(100)
    assert opencl(scaled())(x, y, 3.0) is None
    np.testing.assert_array_equal(y.numpy(), 3 * a)
    np.testing.assert_array_equal(x.numpy(), a)
    assert (x.shape, x.dtype, x.nbytes, x.device, len(x)) == ((100,), np.dtype("float32"), 400, device, 100)


def test_arrays_of_the_host_and_of_the_device_may_be_mixed(device):
    a, b = np.arange(40, dtype="float32"), np.zeros(40, "float32")
    opencl(scaled())(device.array(a), b, 2.0)  # waits, since it returns in an array of the host
    np.testing.assert_array_equal(b, 2 * a)
    y = device.empty(40)
    opencl(scaled())(a, y, 4.0)
    np.testing.assert_array_equal(y.numpy(), 4 * a)
    # An array of the processor is one of the host.
    z = tw.device("cpu").zeros(40)
    opencl(scaled())(tw.device("cpu").array(a), z, 5.0)
    np.testing.assert_array_equal(z.numpy(), 5 * a)
    # So it is for a kernel that runs there.
    cpu = tw.compile(unbound(), target="native")
    cpu(tw.device("cpu").array(a), z, 6.0)
    np.testing.assert_array_equal(np.asarray(z), 6 * a)


def unbound() -> Any:
    return from_source("""
@T.prim_func
def scaled(a: T.handle, b: T.handle, s: T.float32):
    n = T.int32()
    A = T.match_buffer(a, (n,))
    B = T.match_buffer(b, (n,))
    for i in range(n):
        with T.block("B"):
            v = T.axis.spatial(n, i)
            B[v] = A[v] * s
""")


def test_results_feed_the_next_kernel_in_the_order_of_calls(device):
    kernel, a = opencl(scaled()), np.arange(50, dtype="float32")
    x, y = device.array(a), device.zeros(50)
    for _ in range(5):
        kernel(x, y, 2.0)
        kernel(y, x, 1.0)
    np.testing.assert_array_equal(x.numpy(), 32 * a)


def test_omitted_outputs_are_on_the_device_of_the_inputs(device):
    kernel = opencl(
        bound("""
        @T.prim_func
        def doubled(A: T.Buffer((64,)), B: T.Buffer((64,))):
            for i in range(64):
                with T.block("B"):
                    v = T.axis.spatial(64, i)
                    B[v] = A[v] * T.float32(2)
    """)
    )
    a = np.arange(64, dtype="float32")
    result = kernel(device.array(a))
    assert isinstance(result, tw.DeviceArray) and result.device == device
    np.testing.assert_array_equal(result.numpy(), 2 * a)
    assert isinstance(kernel(a), np.ndarray)


def test_arrays_are_updated_in_place(device):
    kernel = opencl(added())
    a, b = np.arange(64, dtype="float32"), np.ones(64, "float32")
    x, y = device.array(a), device.array(b)
    kernel(x, y)
    kernel(x, y)
    np.testing.assert_array_equal(x.numpy(), a + 2)
    kernel(x, x)
    np.testing.assert_array_equal(x.numpy(), 2 * (a + 2))


def of_one_input(expression: str) -> Any:
    return from_source(f"""
@T.prim_func
def main(A: T.Buffer((1024,)), B: T.Buffer((1024,))):
    for i in range(1024):
        with T.block("B"):
            v = T.axis.spatial(1024, i)
            B[v] = {expression}
""")


def test_an_input_may_be_the_output_where_each_element_is_stored_once(device):
    sch = tw.Schedule(of_one_input("A[v] * T.float32(2) + T.float32(1)"))
    block, thread = sch.split(sch.get_loops("B")[0], [None, 64])
    sch.bind(block, "blockIdx.x")
    sch.bind(thread, "threadIdx.x")
    kernel = tw.compile(sch, target="opencl")
    a = np.arange(1024, dtype="float32")
    x = device.array(a)
    kernel(x, x)
    np.testing.assert_array_equal(x.numpy(), a * 2 + 1)
    # Compilers must not take what is read for other memory.
    assert "restrict" not in kernel.inspect("opencl")
    assert "__restrict__" not in tw.compile(sch, target="cuda").inspect("cuda")


def test_an_input_is_not_the_output_where_other_elements_are_read(device):
    kernel = tw.compile(of_one_input("A[1023 - v]"), target="opencl")
    x = device.array(np.arange(1024, dtype="float32"))
    with pytest.raises(tw.ArgumentError, match="overlaps argument") as raised:
        kernel(x, x)
    assert raised.value.code == "call/overlap"
    assert "restrict" in kernel.inspect("opencl")


def test_memory_outlives_the_kernels_that_use_it(device):
    kernel = opencl(slow())
    a = np.arange(1024, dtype="int32")
    wanted = expected_of_slow(a)
    x, y = device.array(a), device.zeros(1024, "int32")
    kernel(x, y)  # takes a tenth of a second
    del x
    others = [device.array(np.full(1024, -1, "int32")) for _ in range(8)]
    np.testing.assert_array_equal(y.numpy(), wanted)
    x, y = device.array(a), device.zeros(1024, "int32")
    kernel(x, y)
    x.free()
    others += [device.array(np.full(1024, -1, "int32")) for _ in range(8)]
    np.testing.assert_array_equal(y.numpy(), wanted)


def test_a_view_begins_at_an_offset(device):
    a = np.arange(100, dtype="float32")
    x, y = device.array(a), device.zeros(100)
    kernel = opencl(scaled())
    kernel(x[10:30], y[61:81], 2.0)
    wanted = np.zeros(100, "float32")
    wanted[61:81] = 2 * a[10:30]
    np.testing.assert_array_equal(y.numpy(), wanted)
    # Two parts of one array do not overlap, and parts that do are refused.
    kernel(x[:40], x[40:80], 3.0)
    np.testing.assert_array_equal(x.numpy()[40:80], 3 * a[:40])
    with pytest.raises(tw.ArgumentError, match="byte offset 156") as raised:
        kernel(x[:40], x[39:79], 3.0)
    assert raised.value.code == "call/overlap"


def test_views_index_as_those_of_numpy(device):
    a = np.arange(120, dtype="int16").reshape(4, 5, 6)
    x = device.array(a)
    indices = [1, -1, (0, 2), slice(1, 3), (slice(None), 4), (..., 5), (slice(0, 4, 2), slice(1, None, 3)), (3, 4, 5)]
    for index in [*indices, slice(4, 4), (slice(None), slice(3, 1))]:
        np.testing.assert_array_equal(x[index].numpy(), a[index], err_msg=str(index))
    np.testing.assert_array_equal(x[1][2:4, ::2].numpy(), a[1][2:4, ::2])
    for index in (4, (0, 0, 0, 0), slice(None, None, -1), "x", (0, -6)):
        with pytest.raises(IndexError):
            x[index]
    with pytest.raises(TypeError):
        iter(x)
    with pytest.raises(TypeError):
        len(x[0, 0, 0])


def test_strides_are_those_that_the_program_declares(device):
    sch = bound("""
        @T.prim_func
        def every(a: T.handle, B: T.Buffer((16,))):
            s = T.int32()
            A = T.match_buffer(a, (16,), strides=(s,))
            for i in range(16):
                with T.block("B"):
                    v = T.axis.spatial(16, i)
                    B[v] = A[v]
    """)
    a = np.arange(64, dtype="float32")
    y = device.empty(16)
    opencl(sch)(device.array(a)[1::4], y)
    np.testing.assert_array_equal(y.numpy(), a[1::4])
    with pytest.raises(tw.ArgumentError) as raised:
        opencl(scaled())(device.array(a)[::4], y, 1.0)
    assert raised.value.code == "call/strides" and "argument A" in str(raised.value)


def test_an_element_offset_that_the_program_binds(device):
    sch = bound("""
        @T.prim_func
        def shifted(a: T.handle, B: T.Buffer((16,))):
            o = T.int32()
            A = T.match_buffer(a, (16,), elem_offset=o, offset_factor=1)
            for i in range(16):
                with T.block("B"):
                    v = T.axis.spatial(16, i)
                    B[v] = A[v]
    """)
    a, y = np.arange(64, dtype="float32"), device.empty(16)
    opencl(sch)(device.array(a)[5:21], y)
    np.testing.assert_array_equal(y.numpy(), a[5:21])


@pytest.mark.parametrize("n", [0, 1, 33])
@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "float8_e4m3fn"]
)
def test_elements_of_each_type_travel(device, n, dtype):
    from tilewright.support.numpy_dtype import numpy_dtype

    values = (np.arange(n) % 5).astype(numpy_dtype(dtype))
    for place in (device, tw.device("cpu")):
        x = place.array(values)
        assert (x.dtype, x.shape, x.size) == (values.dtype, (n,), n)
        np.testing.assert_array_equal(x.numpy().astype("float64"), values.astype("float64"))
    assert device.array(values.reshape(n, 1)).shape == (n, 1) and device.array(np.array(3, dtype="int8")).numpy() == 3


def test_copies_between_devices(device):
    a = np.arange(24, dtype="float32").reshape(4, 6)
    x = device.array(a)
    y = device.empty((4, 6)).copyfrom(x)
    cpu = x.copyto(tw.device("cpu"))
    assert str(cpu.device) == "cpu:0" and str(x.device) == "opencl:0"
    host = np.zeros((4, 6), "float32")
    assert x.copyto(host) is host
    for found in (
        y.numpy(),
        cpu.numpy(),
        host,
        np.asarray(x),
        device.array(x[:, 1:3]).numpy(),
        pickle.loads(pickle.dumps(x)).numpy(),
    ):
        np.testing.assert_array_equal(found, a[:, 1:3] if found.shape == (4, 2) else a)
    x[1:3].copyfrom(np.zeros((2, 6)))
    assert (x.numpy()[1:3] == 0).all() and (x.numpy()[0] == a[0]).all()
    assert (y.numpy() == a).all()
    np.testing.assert_array_equal(device.array(a, dtype="int32").numpy(), a.astype("int32"))
    for source, target in ((a[:2], x), (np.zeros((4, 2)), x[:, 1:3])):
        with pytest.raises(tw.ArgumentError) as raised:
            target.copyfrom(source)
        assert raised.value.code == "device/copy"


def test_dlpack_shares_the_memory(device):
    a = np.arange(64, dtype="float32")
    x = device.array(a)
    same = device.from_dlpack(x[4:20])
    opencl(scaled())(same, x[20:36], 2.0)
    with pytest.raises(tw.ArgumentError, match="overlaps"):
        opencl(scaled())(same, x[19:35], 2.0)
    x = None
    np.testing.assert_array_equal(same.numpy(), a[4:20])
    x = device.array(a)
    cpu = tw.device("cpu").array(a)
    shared = np.from_dlpack(cpu)
    shared[3] = 100
    assert cpu.numpy()[3] == 100 and x.__dlpack_device__() == (4, 0)
    np.testing.assert_array_equal(tw.device("cpu").from_dlpack(shared).numpy(), shared)
    for call in (lambda: np.from_dlpack(x), lambda: x.__dlpack__(copy=True), lambda: x.__dlpack__(dl_device=(1, 0))):
        with pytest.raises((BufferError, RuntimeError)):
            call()
    with pytest.raises(tw.ArgumentError) as raised:
        tw.device("cpu").from_dlpack(x)
    assert raised.value.code == "device/elsewhere" and "opencl:0" in str(raised.value)
    with pytest.raises(tw.ArgumentError) as raised:
        tw.device("cpu").from_dlpack(np.zeros(3, "complex64"))
    assert raised.value.code == "device/dtype"


def test_a_kernel_takes_whatever_exports_memory_of_the_device(device):
    class Elsewhere:
        """As an array of another library."""

        def __init__(self, array: Any) -> None:
            self._array = array

        def __dlpack__(self, **options: Any) -> Any:
            return self._array.__dlpack__(**options)

        def __dlpack_device__(self) -> Any:
            return self._array.__dlpack_device__()

    a, y = np.arange(16, dtype="float32"), device.zeros(16)
    opencl(scaled())(Elsewhere(device.array(a)), Elsewhere(y), 2.0)
    np.testing.assert_array_equal(y.numpy(), 2 * a)


def test_what_does_not_fit_is_refused_in_the_words_of_the_user(device):
    kernel, x, longer = opencl(scaled(16)), device.zeros(16), device.zeros(17)
    refused = {
        "call/dtype": lambda: kernel(device.zeros(16, "float64"), x, 1.0),
        "call/shape": lambda: kernel(device.zeros(15), x, 1.0),
        "call/ndim": lambda: kernel(device.zeros((4, 4)), x, 1.0),
        "call/device": lambda: tw.compile(unbound())(x, device.zeros(16), 1.0),
        "call/overlap": lambda: kernel(longer[:16], longer[1:], 1.0),
    }
    for code, call in refused.items():
        with pytest.raises(tw.ArgumentError) as raised:
            call()
        assert raised.value.code == code and "scaled: argument" in str(raised.value), raised.value
    with pytest.raises(tw.ArgumentError, match=r"expected data on the CPU, got opencl:0"):
        refused["call/device"]()


def test_an_array_that_was_freed_is_refused(device):
    kernel, x, y = opencl(scaled(16)), device.zeros(16), device.zeros(16)
    view = x[:8]
    x.free()
    assert x.is_freed and view.is_freed and "freed" in repr(x)
    with pytest.raises(tw.ArgumentError, match=r"argument A.*freed") as raised:
        kernel(x, y, 1.0)
    assert raised.value.code == "call/argument"
    for call in (x.numpy, lambda: x[:4], lambda: y.copyfrom(x), x.__dlpack__, lambda: view.copyfrom(np.zeros(8))):
        with pytest.raises(tw.ArgumentError) as raised:
            call()
        assert raised.value.code == "device/freed"
    x.free()  # once more changes nothing


def test_arrays_that_cannot_be(device):
    with pytest.raises(tw.ArgumentError) as raised:
        device.zeros((3, -1))
    assert raised.value.code == "device/shape"
    with pytest.raises(tw.ArgumentError) as raised:
        device.empty(3, "float32x4")
    assert raised.value.code == "device/dtype"
    with pytest.raises(tw.ResourceError) as raised:
        device.empty(1 << 50, "int8")
    assert raised.value.code == "call/memory"


def test_names_of_devices():
    names = {"opencl": "opencl:0", "opencl:1": "opencl:1", "cuda": "cuda:0", "cuda:3": "cuda:3", "cpu": "cpu:0"}
    for name, wanted in {**names, "llvm -mcpu=znver3": "cpu:0", "opencl -max_threads_per_block=64": "opencl:0"}.items():
        assert str(tw.device(name)) == wanted
    assert tw.device("cuda", 2) == tw.device("cuda:2") != tw.device("cuda:1")
    assert tw.device("opencl:0").exist and tw.device("cpu").exist and not tw.device("opencl:15").exist
    assert repr(tw.device("opencl:0")) == "device('opencl:0')" and len({tw.device("cpu"), tw.device("cpu:0")}) == 1
    assert pickle.loads(pickle.dumps(tw.device("cuda:1"))) == tw.device("cuda:1")
    for name in ("vulkan", "opencl:x", ""):
        with pytest.raises(tw.ArgumentError) as raised:
            tw.device(name)
        assert raised.value.code == "device/name"
    for number in ("x", -1, 1.5):
        with pytest.raises(tw.ArgumentError, match="dev_id is"):
            tw.device("cpu", number)
    with pytest.raises(tw.ResourceError, match=r"no OpenCL device 15: .* there is 1") as raised:
        tw.device("opencl:15").zeros(3)
    assert raised.value.code == "call/no-device"


def test_an_exported_library_runs_on_arrays_of_the_device(device, tmp_path):
    kernel = tw.load(opencl(scaled()).export(tmp_path, "scaled").library)
    a = np.arange(40, dtype="float32")
    x, y = device.array(a), device.zeros(40)
    kernel(x, y, 3.0)
    kernel(y[:20], x[:20], 1.0)
    np.testing.assert_array_equal(y.numpy(), 3 * a)
    np.testing.assert_array_equal(x.numpy()[:20], 3 * a[:20])
    b = np.zeros(40, "float32")
    kernel(a, b, 2.0)  # on a queue of its own
    np.testing.assert_array_equal(b, 2 * a)


def test_intermediate_results_of_calls_that_do_not_wait(device):
    kernel = opencl(
        from_source("""
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
    )
    a = np.arange(64, dtype="float32")
    x, y = device.array(a), device.zeros(64)
    for _ in range(20):
        kernel(x, y)
        kernel(y, x)
    np.testing.assert_array_equal(x.numpy(), a + 40)


def test_threads_share_a_device(device):
    kernel, a = opencl(scaled()), np.arange(1000, dtype="float32")
    problems = []

    def work(factor: float) -> None:
        x, y = device.array(a), device.empty(1000)
        for _ in range(20):
            kernel(x, y, factor)
            if not (y.numpy() == factor * a).all():
                problems.append(factor)

    threads = [threading.Thread(target=work, args=(float(i),)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems


def test_two_devices():
    outcome = in_process(
        """
        import numpy as np, tilewright as tw
        from runtime.test_device_arrays import opencl, scaled
        one, two = tw.device("opencl:0"), tw.device("opencl:1")
        a, kernel = np.arange(40, dtype="float32"), opencl(scaled())
        for device in (two, one, two):
            y = device.zeros(40)
            kernel(device.array(a), y, 2.0)
            assert (y.numpy() == 2 * a).all() and y.device == device
        try:
            kernel(one.array(a), two.zeros(40), 1.0)
        except tw.ArgumentError as error:
            print(error.code, error)
        assert (two.array(one.array(a)).numpy() == a).all()
        """,
        POCL_DEVICES="pthread pthread",
    )
    assert outcome.returncode == 0, outcome.stderr
    assert "call/device" in outcome.stdout
    assert "expected data on opencl:0, where argument A is, got opencl:1" in outcome.stdout


SHIM = r"""
/* In front of the library of OpenCL: notes what is called, and says that kernels without numbers failed. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef struct object* handle;
#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
static int is_failing;
int clGetPlatformIDs(unsigned n, handle* p, unsigned* found) { return NEXT(clGetPlatformIDs)(n, p, found); }
int clSetKernelArg(handle kernel, unsigned index, size_t size, const void* value) {
  /* A number is passed to the kernel that succeeds. */
  if (index == 0) is_failing = getenv("TW_TEST_FAIL") != NULL;
  if (size == 4) is_failing = 0;
  return NEXT(clSetKernelArg)(kernel, index, size, value);
}
int clGetEventInfo(handle event, unsigned what, size_t size, void* value, size_t* got);
static handle failed[256];
static int count;
static void note(const char* name) {
  FILE* log = getenv("TW_TEST_LOG") ? fopen(getenv("TW_TEST_LOG"), "a") : NULL;
  if (log) fprintf(log, "%s\n", name), fclose(log);
}
int clFinish(handle q) { note("finish"); return NEXT(clFinish)(q); }
int clFlush(handle q) { note("flush"); return NEXT(clFlush)(q); }
int clEnqueueMarkerWithWaitList(handle q, unsigned n, const handle* w, handle* event) {
  note("marker");
  return NEXT(clEnqueueMarkerWithWaitList)(q, n, w, event);
}
int clEnqueueReadBuffer(handle q, handle m, unsigned b, size_t o, size_t s, void* p, unsigned n, const handle* w,
                        handle* e) {
  note("read");
  return NEXT(clEnqueueReadBuffer)(q, m, b, o, s, p, n, w, e);
}
int clEnqueueWriteBuffer(handle q, handle m, unsigned b, size_t o, size_t s, const void* p, unsigned n, const handle* w,
                         handle* e) {
  note("write");
  return NEXT(clEnqueueWriteBuffer)(q, m, b, o, s, p, n, w, e);
}
int clEnqueueNDRangeKernel(handle q, handle k, unsigned d, const size_t* o, const size_t* g, const size_t* l,
                           unsigned n, const handle* wait, handle* event) {
  note("launch");
  int code = NEXT(clEnqueueNDRangeKernel)(q, k, d, o, g, l, n, wait, event);
  if (is_failing && count < 256) failed[count++] = *event;
  return code;
}
int clGetEventInfo(handle event, unsigned what, size_t size, void* value, size_t* got) {
  int code = NEXT(clGetEventInfo)(event, what, size, value, got);
  for (int i = 0; i < count; ++i) {
    if (what == 0x11D3 && failed[i] == event && *(int*)value == 0) *(int*)value = -5, failed[i] = NULL;
  }
  return code;
}
"""


@pytest.fixture(scope="module")
def shim(tmp_path_factory: Any) -> str:
    """The value of LD_PRELOAD."""
    folder = tmp_path_factory.mktemp("shim")
    (folder / "shim.c").write_text(SHIM)
    subprocess.run(["cc", "-shared", "-fPIC", "-w", "-o", folder / "shim.so", folder / "shim.c", "-ldl"], check=True)
    return f"{folder}/shim.so libOpenCL.so.1"


@pytest.mark.preloads
def test_a_call_with_arrays_of_the_device_copies_nothing_and_does_not_wait(shim, tmp_path):
    log = tmp_path / "log"
    program = """
        import os
        import numpy as np, tilewright as tw
        from runtime.test_device_arrays import opencl, scaled
        device, kernel = tw.device("opencl:0"), opencl(scaled())
        x, y, a = device.zeros(8), device.zeros(8), np.zeros(8, "float32")

        def commands(call):
            open(os.environ["TW_TEST_LOG"], "w").close()
            call()
            with open(os.environ["TW_TEST_LOG"]) as file:
                print(*file.read().split())

        commands(lambda: kernel(x, y, 2.0))
        commands(lambda: tw._core.time_calls(kernel, 3, x, y, 2.0))
        commands(lambda: kernel(a, y, 2.0))
        commands(y.numpy)
    """
    outcome = in_process(program, LD_PRELOAD=shim, TW_TEST_LOG=str(log))
    wait = "marker flush finish"
    assert outcome.stdout.splitlines() == [
        "launch flush",
        f"{'launch flush ' * 3}{wait}",  # what is timed ends when the kernels have
        f"marker flush write launch {wait}",
        f"{wait} read",
    ], outcome.stderr


@pytest.mark.preloads
def test_what_fails_is_said_at_the_next_wait_with_the_name_of_the_kernel(shim):
    program = """
        import numpy as np, tilewright as tw
        from runtime.test_device_arrays import added, opencl, scaled
        device = tw.device("opencl:0")
        a, b = device.zeros(64), device.zeros(64)
        sound, failing = opencl(scaled()), opencl(added())

        def said(call):
            try:
                call()
            except tw.ResourceError as error:
                print(error.code, str(error).splitlines()[0])
            else:
                print("fine")

        for wait in (device.sync, a.numpy, lambda: sound(np.zeros(3, "float32"), np.zeros(3, "float32"), 1.0)):
            failing(a, b)       # says nothing
            sound(a, b, 2.0)
            said(wait)
            said(wait)
        for _ in range(100):
            failing(a, b)
        said(device.sync)
    """
    outcome = in_process(program, LD_PRELOAD=shim, TW_TEST_FAIL="1")
    message = "call/launch [call/launch] added: kernel tw_main_kernel failed on the device: OpenCL reports error -5"
    assert outcome.stdout.splitlines() == [*[message, "fine"] * 3, message], outcome.stderr
