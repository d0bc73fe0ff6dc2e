"""Kernels for CUDA: the compiler of NVIDIA accepts every text without a warning; a simulated driver runs one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.processes import in_process

import tilewright as tw
from codegen.test_opencl import FLOATS, INTEGERS, elementwise, softmax
from lower.test_gpu import matmul, numbers, tiled
from tilewright import _core
from tilewright.script import from_source


def compiled(sch: Any, target: str = "cuda") -> Any:
    """Return the kernel for CUDA, after the compiler has accepted its text without a warning."""
    kernel = tw.compile(sch, target=target)
    assert not [note for note in kernel.report["notes"] if "device" in note["code"]], kernel.report["notes"]
    assert kernel.report["kernels"], "there is neither NVRTC nor nvcc"
    return kernel


OF_INTEGERS = [
    *("<a> + <b>", "<a> * <b>", "T.floordiv(<a>, <b>)", "T.floormod(<a>, <b>)", "T.truncdiv(<a>, <b>)"),
    *("T.truncmod(<a>, <b>)", "T.min(<a>, <b>)", "T.max(<a>, <b>)", "T.bitwise_xor(<a>, <b>)", "T.bitwise_not(<a>)"),
    *("T.shift_left(<a>, <b>)", "T.shift_right(<a>, <b>)", "T.popcount(<a>)", "T.clz(<a>)", "T.abs(<a>)"),
]


def many(sources: list[str], result: str, expressions: list[str]) -> tw.Schedule:
    """One kernel that computes each expression, so that the compiler runs once."""
    names = "abcd"[: len(sources)]
    buffers = [f"{name.upper()}: T.Buffer((64,), '{dtype}')" for name, dtype in zip(names, sources, strict=True)]
    results = [f"R{number}: T.Buffer((64,), '{result}')" for number in range(len(expressions))]
    blocks = ""
    for number, expression in enumerate(expressions):
        for name in names:
            expression = expression.replace(f"<{name}>", f"{name.upper()}[v]")
        if expression.startswith("T.clz"):
            expression = f'T.cast({expression}, "{result}")'
        blocks += f"""
            with T.block("R{number}"):
                v = T.axis.spatial(64, i * 16 + j)
                R{number}[v] = {expression}"""
    return tw.Schedule(
        from_source(f"""
@T.prim_func
def main({", ".join(buffers + results)}):
    for i in T.thread_binding(4, thread="blockIdx.x"):
        for j in T.thread_binding(16, thread="threadIdx.x"):{blocks}
""")
    )


@pytest.mark.parametrize("dtype", INTEGERS)
def test_operations_on_integers(dtype):
    kernel = compiled(many([dtype, dtype], dtype, OF_INTEGERS))
    assert {use["arch"] for use in kernel.report["kernels"]} == {"sm_80", "sm_90a"}


#: beside the intrinsics of test_device_intrinsics.py
OF_FLOATS = [
    *("<a> + <b>", "<a> * <b>", "<a> / <b>", "T.min(<a>, <b>)", "T.max(<a>, <b>)", "T.floormod(<a>, <b>)"),
    *("T.ldexp(<a>, 3)", "T.Select(T.isnan(<a>), <b>, <a>)", "T.Select(T.isinf(<a>), <b>, <a>)"),
]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_operations_on_floats(dtype):
    constants = [f'<a> + T.{name}("{dtype}")' for name in ("infinity", "min_value", "max_value")]
    compiled(many([dtype, dtype], dtype, OF_FLOATS + constants), "cuda -arch=sm_80")


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_casts(dtype):
    for to in [*INTEGERS, "bool", "float16", "bfloat16", "float32", "float64"]:
        if to != dtype:
            text = tw.compile(elementwise([dtype], to, f'T.cast(<a>, "{to}")')[1], target="cuda").inspect("cuda")
            assert "__global__" in text
    both = [*INTEGERS, "float16", "bfloat16", "float32", "float64"]
    compiled(many([dtype], dtype, [f'T.cast(T.cast(<a>, "{to}"), "{dtype}")' for to in both]), "cuda -arch=sm_80")


def test_bits_as_another_type():
    for one, other in [("float32", "int32"), ("float64", "int64"), ("float16", "uint16"), ("uint8", "int8")]:
        compiled(many([one], other, [f'T.reinterpret(<a>, dtype="{other}")']), "cuda -arch=sm_80")
        compiled(many([other], one, [f'T.reinterpret(<a>, dtype="{one}")']), "cuda -arch=sm_80")


def test_names_that_the_language_has():
    program = from_source("""
@T.prim_func
def main(float4: T.Buffer((64,)), co_yield: T.Buffer((64,)), M_PI: T.Buffer((64,)), __syncthreads: T.Buffer((64,))):
    for threadIdx in T.thread_binding(64, thread="threadIdx.x"):
        with T.block("B"):
            static_cast = T.axis.spatial(64, threadIdx)
            M_PI[static_cast] = float4[static_cast] + co_yield[static_cast] + __syncthreads[static_cast]
""")
    compiled(program)


def test_a_constant_array():
    values = ", ".join(f"{v!r}" if np.isfinite(v) else f'float("{v}")' for v in FLOATS)
    program = from_source(f"""
@T.prim_func
def main(B: T.Buffer(({len(FLOATS)},))):
    K = T.allocate_const([{values}], "float32", [{len(FLOATS)}])
    C = T.Buffer(({len(FLOATS)},), data=K)
    for i in T.thread_binding({len(FLOATS)}, thread="threadIdx.x"):
        B[i] = C[i]
""")
    text = compiled(program).inspect("cuda")
    bits = ", ".join(f"{value}u" for value in np.array(FLOATS, "float32").view("uint32"))
    assert f"static __device__ const unsigned int tw_main_kernel_K[{len(FLOATS)}] = {{{bits}}};" in text


def test_a_product_with_shared_tiles():
    kernel = compiled(tiled(64, 64, 64))
    text = kernel.inspect("cuda")
    assert 'extern "C" __global__ void __launch_bounds__(16) tw_main_kernel' in text
    assert text.count("__syncthreads();") == 2 and "__shared__ __align__(128) unsigned char" in text
    use = kernel.report["kernels"][0]
    # Two tiles of 8 x 4 floats; accumulators and operands are in registers.
    assert use["kernel"] == "tw_main_kernel" and use["shared_bytes"] == 2 * 8 * 4 * 4
    assert 16 <= use["registers"] <= 255 and use["spill_stores"] == use["spill_loads"] == 0
    assert ".target sm_80" in kernel.inspect("ptx")


def test_a_softmax_reduced_across_threads():
    compiled(softmax(4, 64, 16), "nvidia/nvidia-h100")


def test_shared_memory_beyond_what_a_kernel_may_declare_is_dynamic():
    program = from_source("""
@T.prim_func
def main(A: T.Buffer((16384,)), B: T.Buffer((16384,))):
    S = T.alloc_buffer((16384,), scope="shared")
    for b in T.thread_binding(1, thread="blockIdx.x"):
        for i in range(64):
            for t in T.thread_binding(256, thread="threadIdx.x"):
                with T.block("S"):
                    v = T.axis.spatial(16384, i * 256 + t)
                    S[v] = A[v]
        for i in range(64):
            for t in T.thread_binding(256, thread="threadIdx.x"):
                with T.block("B"):
                    v = T.axis.spatial(16384, i * 256 + t)
                    B[v] = S[16383 - v]
""")
    kernel = compiled(program, "cuda -arch=sm_80 -max_shared_memory_per_block=166912")
    assert "extern __shared__" in kernel.inspect("cuda")
    (use,) = kernel.report["kernels"]
    # 164 KiB hold two blocks of 64 KiB each, with 8 of the 64 warps each.
    assert use["shared_bytes"] == 65536 and use["occupancy"] == 0.25
    assert "i64 65536" in kernel.inspect("llvm")  # what the launch says


def test_without_a_device_a_call_says_what_is_missing():
    kernel = tw.compile(tiled(16, 16, 8), target="cuda")
    if _core.cuda_devices():
        a, b = numbers(16, 8), numbers(8, 16)
        np.testing.assert_array_equal(kernel(a, b), a @ b)
        return
    with pytest.raises(tw.ResourceError) as raised:
        kernel(numbers(16, 8), numbers(8, 16))
    assert raised.value.code == "call/no-device"
    assert "libcuda.so.1" in str(raised.value) and "NVIDIA GPU" in str(raised.value)


def test_what_is_asked_of_another_target_is_refused():
    with pytest.raises(tw.ArgumentError) as raised:
        tw.compile(tiled(16, 16, 8), target="cuda").inspect("opencl")
    assert raised.value.code == "kernel/inspect"
    with pytest.raises(tw.ArgumentError) as raised:
        tw.compile(tiled(16, 16, 8), target="cuda -arch=sm_90a").inspect("ptx")  # no device but that one runs it
    assert raised.value.code == "kernel/inspect"
    with pytest.raises(tw.Error) as raised:
        tw.compile(tiled(16, 16, 8), target="cuda -arch=sm_60")
    assert raised.value.code == "codegen/device-compiler" and "sm_60" in str(raised.value)
    for unknown in ("sm_42", "sm_80a", "sm_90x", "compute_80", "sm_"):
        with pytest.raises(tw.ArgumentError) as refused:
            tw.compile(tiled(16, 16, 8), target=f"cuda -arch={unknown}")
        assert refused.value.code == "target/arch" and "sm_75, sm_80, sm_86" in str(refused.value)
    assert _core.Target("cuda -arch=sm_130a").kind == "cuda"  # of a device to come


WITHOUT_NVRTC = """
    import tilewright as tw
    from lower.test_gpu import tiled
    kernel = tw.compile(tiled(16, 16, 8), target="cuda")
    uses = [(use["kernel"], use["arch"], use["shared_bytes"]) for use in kernel.report["kernels"]]
    print(sorted(uses), [arch for arch, _ in kernel._program.code.binaries], [note.code for note in kernel.notes])
"""


def test_nvcc_compiles_where_nvrtc_is_missing(tmp_path):
    """The program nvcc is one of the test's own: it takes apart its command line, and prints what the real one does."""
    fake = tmp_path / "nvcc"
    fake.write_text("""#!/bin/sh
for word in "$@"; do
  case "$previous" in -o) out=$word;; -gencode) echo "$word" >>"$0.gencode";; esac
  previous=$word
done
grep -q __global__ "$word" || exit 1
printf 'fatbin' >"$out"
for arch in sm_80 sm_90a; do
  echo "ptxas info    : Compiling entry function 'tw_main_kernel' for '$arch'"
  echo "ptxas warning : the test wants one"
  echo "ptxas info    : Function properties for tw_main_kernel"
  echo "    8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads"
  echo "ptxas info    : Used 40 registers, used 1 barriers, 256 bytes smem, 376 bytes cmem[0]"
done
""")
    fake.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    outcome = in_process(WITHOUT_NVRTC, TILEWRIGHT_NVRTC=str(tmp_path), PATH=path)
    uses = [("tw_main_kernel", "sm_80", 256), ("tw_main_kernel", "sm_90a", 256)]
    notes = ["codegen/device-compiler-warning", "codegen/spills", "codegen/spills"]
    assert outcome.stdout.strip() == f"{uses} ['sm_80,sm_90a'] {notes}", outcome.stderr
    gencode = ["arch=compute_80,code=[sm_80,compute_80]", "arch=compute_90a,code=sm_90a"]
    assert (tmp_path / "nvcc.gencode").read_text().split() == gencode
    (tmp_path / "nvcc").write_text("#!/bin/sh\necho 'kernels.cu(3): error: identifier is undefined'\nexit 2\n")
    outcome = in_process(WITHOUT_NVRTC, TILEWRIGHT_NVRTC=str(tmp_path), PATH=path)
    assert "codegen/device-compiler" in outcome.stderr and "kernels.cu(3): error" in outcome.stderr
    missing = {"TMPDIR": str(tmp_path / "nowhere")}
    outcome = in_process(WITHOUT_NVRTC, TILEWRIGHT_NVRTC=str(tmp_path), PATH=path, **missing)
    assert "codegen/temporary" in outcome.stderr


def test_without_a_compiler_the_module_holds_the_text(tmp_path):
    program = """
        import tilewright as tw
        from lower.test_gpu import tiled
        kernel = tw.compile(tiled(16, 16, 8), target="cuda")
        print([note.code for note in kernel.notes], "__global__" in kernel.inspect("cuda"))
    """
    outcome = in_process(program, TILEWRIGHT_NVRTC=str(tmp_path), PATH=str(tmp_path))
    assert "['codegen/no-device-compiler'] True" in outcome.stdout, outcome.stderr
    outcome = in_process(program, TILEWRIGHT_NVRTC=str(tmp_path / "nowhere"), PATH=str(tmp_path))
    assert "[codegen/nvrtc] the environment variable TILEWRIGHT_NVRTC is" in outcome.stderr


DRIVER = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* A driver whose device is the processor: it knows the kernel of the test. */
typedef unsigned long long pointer;
static int contexts;
/* What is called on streams, a line each. */
static void note(const char* what, void* stream) {
  FILE* log = getenv("TW_TEST_LOG") ? fopen(getenv("TW_TEST_LOG"), "a") : NULL;
  if (!log) return;
  fprintf(log, "%s %ld\n", what, (long)stream);
  fclose(log);
}
int cuInit(unsigned flags) { return 0; }
/* Copies of pageable memory that have not arrived on the device; work on their streams waits for them. */
static struct { pointer to; void* bytes; size_t count; void* stream; } late[16];
static void arrive(void* stream) {
  for (int i = 0; i < 16; ++i) {
    if (!late[i].bytes || late[i].stream != stream) continue;
    memcpy((void*)late[i].to, late[i].bytes, late[i].count);
    free(late[i].bytes);
    late[i].bytes = NULL;
  }
}
int cuDriverGetVersion(int* v) { *v = 13000; return 0; }
int cuDeviceGetCount(int* n) { *n = 1; return 0; }
int cuDeviceGet(int* d, int i) { *d = i; return 0; }
int cuDeviceGetName(char* name, int n, int d) { snprintf(name, n, "a simulated device"); return 0; }
int cuDeviceGetAttribute(int* v, int a, int d) { *v = a == 75 ? 9 : 0; return 0; }
int cuDevicePrimaryCtxRetain(void** c, int d) { *c = &contexts; return 0; }
int cuCtxPushCurrent_v2(void* c) { ++contexts; return c == &contexts ? 0 : 201; }
int cuCtxPopCurrent_v2(void** c) { --contexts; return 0; }
int cuStreamSynchronize(void* stream) {
  arrive(stream);
  return contexts != 1 ? 201 : getenv("TW_TEST_LATE") ? 719 : 0;
}
int cuModuleLoadData(void** m, const void* image) {
  /* A cubin is an ELF file, whose flags name the architecture: this device has 9.0. */
  const unsigned char* bytes = image;
  if (memcmp(bytes, "\x7f" "ELF", 4) != 0) return 218;
  if (getenv("TW_TEST_OLD") || bytes[0x30] != 90 && bytes[0x31] != 90) return 209;
  *m = (void*)image;
  return 0;
}
int cuModuleGetFunction(void** f, void* m, const char* name) {
  *f = (void*)name;
  return strcmp(name, "tw_main_kernel") == 0 ? 0 : 500;
}
int cuFuncSetAttribute(void* f, int what, int value) { return what == 8 ? 0 : 1; }
int cuLaunchKernel(void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void* stream, void** args, void** extra) {
  const float* a = *(float**)args[0];
  float* b = *(float**)args[1];
  int n = *(int*)args[2];
  float s = *(float*)args[3];
  if (getenv("TW_TEST_FAIL")) return 701;
  note("launch", stream);
  arrive(stream);
  for (unsigned i = 0; i < gx * bx && i < n; ++i) b[i] = a[i] * s;
  return gy * gz * by * bz == 1 && extra == NULL && shared == 0 ? 0 : 1;
}
int cuMemAlloc_v2(pointer* p, size_t n) { *p = (pointer)malloc(n); return 0; }
int cuMemFree_v2(pointer p) {
  for (int i = 0; i < 16; ++i) arrive(late[i].stream);
  free((void*)p);
  return 0;
}
int cuMemcpyHtoDAsync_v2(pointer to, const void* from, size_t n, void* stream) {
  for (int i = 0; i < 16; ++i) {
    if (late[i].bytes) continue;
    late[i].to = to;
    late[i].count = n;
    late[i].stream = stream;
    late[i].bytes = memcpy(malloc(n), from, n);
    return 0;
  }
  return 2;
}
/* Returns when the memory has been read, too. */
int cuMemcpyHtoD_v2(pointer to, const void* from, size_t n) { return cuMemcpyHtoDAsync_v2(to, from, n, NULL); }
int cuMemcpyDtoH_v2(void* to, pointer from, size_t n) { arrive(NULL); memcpy(to, (void*)from, n); return 0; }
int cuMemcpyDtoDAsync_v2(pointer to, pointer from, size_t n, void* stream) {
  arrive(stream);
  memcpy((void*)to, (void*)from, n);
  return stream != NULL;
}
int cuMemsetD8Async(pointer to, unsigned char value, size_t n, void* stream) {
  memset((void*)to, value, n);
  return stream != NULL;
}
int cuEventCreate(void** event, unsigned flags) { *event = &contexts; return flags & ~2; }
int cuEventDestroy_v2(void* event) { return event != &contexts; }
int cuEventRecord(void* event, void* stream) { note("record", stream); return event != &contexts; }
int cuStreamWaitEvent(void* stream, void* event, unsigned flags) { note("wait", stream); return flags; }
int cuEventElapsedTime(float* milliseconds, void* begin, void* end) { *milliseconds = 1; return 0; }
int cuGetErrorName(int e, const char** name) {
  *name = e == 701   ? "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"
          : e == 209 ? "CUDA_ERROR_NO_BINARY_FOR_GPU"
          : e == 719 ? "CUDA_ERROR_LAUNCH_FAILED"
                     : "another";
  return 0;
}
"""

SCALED = """
import numpy as np
import tilewright as tw

kernel = tw.load("LIBRARY")
for n in (0, 1, 32, 1000):
    a, b = np.arange(n, dtype="float32"), np.zeros(n, "float32")
    kernel(a, b, 3.0)
    np.testing.assert_array_equal(b, 3 * a)
device = tw.device("cuda:0")
x, y = device.array(np.arange(64, dtype="float32")), device.zeros(64)
kernel(x[8:40], y[16:48], 2.0)
z = device.empty(64).copyfrom(y)
assert device.exist and (z.numpy()[16:48] == 2 * np.arange(8, 40)).all() and (z.numpy()[:16] == 0).all()
shared = device.from_dlpack(z)
assert shared.__dlpack_device__() == (2, 0) and (shared.numpy() == y.numpy()).all()
print("ran", tw._core.cuda_devices())
"""

LATE = """
import os
import numpy as np
import tilewright as tw

kernel, device = tw.load("LIBRARY"), tw.device("cuda:0")
x, y = device.zeros(64), device.zeros(64)
os.environ["TW_TEST_LATE"] = "1"
kernel(x, y, 2.0)  # says nothing
a = np.zeros(3, "float32")
kernel(a, a.copy(), 2.0)
"""


def simulated_driver(folder: Path) -> dict[str, str]:
    """Return the environment in which the driver is that of `DRIVER`."""
    (folder / "driver.c").write_text(DRIVER)
    library = folder / "libcuda.so.1"
    subprocess.run(["cc", "-shared", "-fPIC", "-w", "-o", library, folder / "driver.c"], check=True)
    return {"LD_LIBRARY_PATH": str(folder)}


def export_for_a_simulated_driver(folder: Path) -> str:
    """Return the library of a kernel that the simulated driver, which is written beside it, knows: B = A * s."""
    simulated_driver(folder)
    sch = tw.Schedule(
        from_source("""
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
    )
    bx, tx = sch.split(sch.get_loops("B")[0], [None, 32])
    sch.bind(bx, "blockIdx.x")
    sch.bind(tx, "threadIdx.x")
    # Compiled here: NVRTC would call the simulated driver, too.
    return str(compiled(sch).export(folder, "scaled").library)


def test_a_simulated_driver_runs_kernels(tmp_path):
    exported = export_for_a_simulated_driver(tmp_path)
    program = SCALED.replace("LIBRARY", exported)
    paths = {"LD_LIBRARY_PATH": str(tmp_path)}
    outcome = in_process(program, **paths)
    device = "a simulated device\\ncompute capability 9.0\\ndriver for CUDA 13.0"
    assert outcome.stdout.strip() == f"ran ['{device}']", outcome.stderr
    outcome = in_process(program, **paths, TW_TEST_FAIL="1")
    assert "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES" in outcome.stderr and "call/launch" in outcome.stderr, outcome.stderr
    outcome = in_process(LATE.replace("LIBRARY", exported), **paths)
    message = "scaled: kernel tw_main_kernel failed on the device: CUDA reports CUDA_ERROR_LAUNCH_FAILED"
    assert "call/launch" in outcome.stderr and message in outcome.stderr, outcome.stderr
    outcome = in_process(program, **paths, TW_TEST_OLD="1")
    assert "CUDA_ERROR_NO_BINARY_FOR_GPU" in outcome.stderr and "-arch=sm_90a" in outcome.stderr, outcome.stderr
    command = (
        "import sys, runpy; sys.argv = ['', 'info', '--json']; runpy.run_module('tilewright', run_name='__main__')"
    )
    listed = in_process(command, **paths)
    assert json.loads(listed.stdout)["cuda"] == [
        {"name": "a simulated device", "capability": "compute capability 9.0", "driver": "driver for CUDA 13.0"}
    ]


BLOCKS = """
import numpy as np
import tilewright as tw

kernel = tw.load("LIBRARY")
a, b = np.ones(4, "float32"), np.zeros(4, "float32")
for n in (2**31, 2**32 + 4, 2**40):
    try:
        kernel(a, b, n, 3.0)
    except tw.ResourceError as error:
        assert f"needs a grid of {n} x 1 x 1 blocks" in str(error) and "let each block do more" in error.hint, error
        print(error.code)
assert (b == 0).all()
kernel(a, b, 4, 3.0)
assert (b == 3).all()
"""


def test_a_grid_that_is_too_large_is_refused_at_the_call(tmp_path):
    """Of 2^32 + 4 blocks, the driver would run four."""
    program = from_source("""
@T.prim_func
def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32"), n: T.int64, s: T.float32):
    for i in T.thread_binding(n, thread="blockIdx.x"):
        with T.block("B"):
            v = T.axis.spatial(n, i)
            T.where(i < T.int64(4))
            B[v] = A[v] * s
""")
    exported = str(compiled(program).export(tmp_path, "blocks").library)
    outcome = in_process(BLOCKS.replace("LIBRARY", exported), **simulated_driver(tmp_path))
    assert outcome.stdout.split() == ["call/launch"] * 3, outcome.stderr


VECTORS = """
import numpy as np
import tilewright as tw

kernel, device = tw.load("LIBRARY"), tw.device("cuda:0")
x, y = device.array(np.arange(72, dtype="float32")), device.zeros(72)
kernel(x[4:68], y[8:], 64, 2.0)
assert (y.numpy()[8:24] == 2 * np.arange(4, 20)).all()
a, b = np.arange(72, dtype="float32")[1:65], np.zeros(65, "float32")[1:]
kernel(a, b, 64, 2.0)  # copies are aligned
assert (b[:16] == 2 * a[:16]).all()
try:
    kernel(x[2:66], y[8:], 64, 2.0)
except tw.ArgumentError as error:
    print(error.code, error, sep="\\n")
"""


@pytest.mark.parametrize("align", ["", ", align=4", ", align=8"])
def test_vectors_need_aligned_arguments(tmp_path, align):
    """A GPU faults where a vector begins at no multiple of its size, so calls refuse what would; fewer bytes are read
    at once where the program says that a buffer is less aligned."""
    paths = simulated_driver(tmp_path)
    kernel = compiled(
        from_source(f"""
@T.prim_func
def main(A: T.Buffer((64,){align}), B: T.Buffer((64,), align=4), n: T.int32, s: T.float32):
    for i in T.thread_binding(16, thread="threadIdx.x"):
        for j in T.vectorized(4):
            B[i * 4 + j] = A[i * 4 + j] * s + T.cast(n, "float32") * T.float32(0)
""")
    )
    text = kernel.inspect("cuda")
    assert ("uint4" in text) == (align == "") and "uint2" not in text, text
    exported = kernel.export(tmp_path, "vectors").library
    outcome = in_process(VECTORS.replace("LIBRARY", str(exported)), **paths)
    assert outcome.returncode == 0, outcome.stderr
    if align == "":
        assert "call/alignment" in outcome.stdout and "argument A: expected data aligned to 16 bytes" in outcome.stdout
        assert "pass a copy, or declare the buffer with align=4" in outcome.stdout, outcome.stdout
    elif align == ", align=8":
        assert outcome.stdout == "", outcome.stdout  # 8 bytes are enough, and asked for


def test_what_a_kernel_gets_from_another_function_is_aligned(tmp_path):
    """The alignment that a kernel of a private function needs is asked of the arguments of the function around."""
    paths = simulated_driver(tmp_path)
    module = from_source("""
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def copy(A: T.Buffer((64,)), B: T.Buffer((64,))):
        for i in T.thread_binding(16, thread="threadIdx.x"):
            for j in T.vectorized(4):
                B[i * 4 + j] = A[i * 4 + j]

    @T.prim_func
    def main(A: T.Buffer((64,)), B: T.Buffer((64,))):
        Module.copy(A.data, B.data)
""")
    exported = compiled(module).export(tmp_path, "copies").library
    program = VECTORS.replace("LIBRARY", str(exported)).replace("kernel(x[4:68], y[8:], 64, 2.0)", "")
    program = program.replace("64, 2.0", "")
    program = "\n".join(line for line in program.splitlines() if "assert" not in line and "kernel(a, b" not in line)
    outcome = in_process(program, **paths)
    assert "call/alignment" in outcome.stdout, outcome.stdout + outcome.stderr


def test_the_command_compiles_for_cuda(tmp_path):
    (tmp_path / "scaled.py").write_text("""
import tilewright as tw
from tilewright.script import tir as T


@T.prim_func
def scaled(A: T.Buffer((64,)), B: T.Buffer((64,))):
    for i in T.thread_binding(64, thread="threadIdx.x"):
        with T.block("B"):
            v = T.axis.spatial(64, i)
            B[v] = A[v] * T.float32(2)
""")
    command = [sys.executable, "-m", "tilewright", "compile", "scaled.py", "--target", "cuda", "--out", "out"]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=300, capture_output=True)
    library = (tmp_path / "out" / "scaled.so").read_bytes()
    assert (
        b"tw_scaled_kernel" in library and library.count(b"\x7fELF") >= 3
    )  # itself, and a cubin for each architecture
    with pytest.raises(tw.ResourceError) as raised:
        tw.load(tmp_path / "out" / "scaled.so")(np.ones(64, "float32"), np.ones(64, "float32"))
    assert raised.value.code == "call/no-device"


def test_a_program_without_threads_is_refused():
    with pytest.raises(tw.Error) as raised:
        tw.compile(tw.Schedule(matmul(16, 16, 16)), target="cuda")
    assert raised.value.code == "lower/not-on-device"
