"""Lesson 17: a matrix product and a softmax for GPUs, scheduled by hand, as OpenCL, CUDA and machine code.

python examples/17_kernels_for_a_gpu.py

The kernels run on an OpenCL device, which may be the processor (PoCL). No GPU is needed to compile them for CUDA.
"""

import re
from collections import Counter

import numpy as np

import tilewright as tw
from tilewright.script import tir as T

M, N, K = 128, 192, 96
ROWS, COLUMNS = 64, 1000


@T.prim_func
def matmul(A: T.Buffer((M, K), "float32"), B: T.Buffer((K, N), "float32"), C: T.Buffer((M, N), "float32")):
    for i, j, k in T.grid(M, N, K):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] += A[vi, vk] * B[vk, vj]


@T.prim_func
def softmax(X: T.Buffer((ROWS, COLUMNS), "float32"), Y: T.Buffer((ROWS, COLUMNS), "float32")):
    largest = T.alloc_buffer((ROWS,), "float32")
    power = T.alloc_buffer((ROWS, COLUMNS), "float32")
    total = T.alloc_buffer((ROWS,), "float32")
    for i, j in T.grid(ROWS, COLUMNS):
        with T.block("largest"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                largest[vi] = T.min_value("float32")
            largest[vi] = T.max(largest[vi], X[vi, vj])
    for i, j in T.grid(ROWS, COLUMNS):
        with T.block("power"):
            vi, vj = T.axis.remap("SS", [i, j])
            power[vi, vj] = T.exp(X[vi, vj] - largest[vi])
    for i, j in T.grid(ROWS, COLUMNS):
        with T.block("total"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                total[vi] = T.float32(0)
            total[vi] += power[vi, vj]
    for i, j in T.grid(ROWS, COLUMNS):
        with T.block("Y"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = power[vi, vj] / total[vi]


def schedule_matmul() -> tw.Schedule:
    """Blocks of 16 x 16 threads compute tiles of 64 x 64 results, each thread 4 x 4 of them in registers."""
    sch = tw.Schedule(matmul)
    block = sch.get_block("C")
    write = sch.cache_write(block, 0, "local")
    i, j, k = sch.get_loops(block)
    block_y, thread_y, y = sch.split(i, [None, 16, 4])
    block_x, thread_x, x = sch.split(j, [None, 16, 4])
    step, k = sch.split(k, [None, 16])
    sch.reorder(block_y, block_x, thread_y, thread_x, step, k, y, x)
    sch.bind(block_y, "blockIdx.y")
    sch.bind(block_x, "blockIdx.x")
    sch.bind(thread_y, "threadIdx.y")
    sch.bind(thread_x, "threadIdx.x")
    sch.reverse_compute_at(write, thread_x)
    for operand in (0, 1):
        # All threads of a block copy a tile of each operand into shared memory, four elements each.
        copy = sch.cache_read(block, operand, "shared")
        sch.compute_at(copy, step)
        elements = sch.fuse(*sch.get_loops(copy)[-2:])
        _, own_y, own_x, lanes = sch.split(elements, [None, 16, 16, 4])
        sch.bind(own_y, "threadIdx.y")
        sch.bind(own_x, "threadIdx.x")
        sch.vectorize(lanes)
    sch.decompose_reduction(block, step)
    sch.unroll(y)
    sch.unroll(x)
    return sch


def schedule_softmax(threads: int = 128) -> tw.Schedule:
    """Each row has a block of threads, which share the reductions, and keep the row in shared memory."""
    sch = tw.Schedule(softmax)
    row, _ = sch.get_loops("Y")
    sch.bind(row, "blockIdx.x")
    for name in ("total", "power", "largest"):
        sch.compute_at(sch.get_block(name), row)
        sch.set_scope(sch.get_block(name), 0, "shared")
    for name in ("largest", "power", "total", "Y"):
        _, thread = sch.split(sch.get_loops(name)[-1], [None, threads])
        sch.bind(thread, "threadIdx.x")
    return sch


INSTRUCTIONS = {
    "FFMA": "multiply-adds",
    "LDG": "loads from main memory",
    "STG": "stores to main memory",
    "LDS": "loads from shared memory",
    "STS": "stores to shared memory",
    "BAR": "barriers",
    "SHFL": "exchanges between the lanes of a warp",
}


def instructions(sass: str) -> str:
    """Count the SASS instructions of each kind in INSTRUCTIONS, in the code for the first architecture."""
    first = sass.split("// sm_")[1]
    found = Counter(re.findall(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9]*)", first))
    return ", ".join(f"{found[name]} {kind} ({name})" for name, kind in INSTRUCTIONS.items())


def show(name: str, sch: tw.Schedule) -> None:
    """Print how a kernel uses a GPU."""
    kernel = tw.compile(sch, target="cuda")
    waits = kernel.inspect("cuda").count("__syncthreads")
    print(f"{name}: {waits} barriers in {len(kernel.inspect('cuda').splitlines())} lines of CUDA")
    print(kernel.inspect("memory"))
    for use in kernel.report["kernels"]:
        print(f"  {use['arch']}: {use['registers']} registers, occupancy {use['occupancy']:.2f}")
    try:
        print("  machine code:", instructions(kernel.inspect("sass")))
    except tw.Error as error:  # no compiler for CUDA, or no disassembler
        print(f"  no machine code: {error}")


def main() -> None:
    random = np.random.default_rng(0)
    a, b = (random.integers(-3, 4, shape).astype("float32") for shape in ((M, K), (K, N)))
    x = random.standard_normal((ROWS, COLUMNS)).astype("float32")
    product, rows = schedule_matmul(), schedule_softmax()
    show("matmul", product)
    show("softmax", rows)
    np.testing.assert_array_equal(tw.compile(product, target="opencl")(a, b), a @ b)
    power = np.exp(x - x.max(axis=1, keepdims=True).astype("float64"))
    np.testing.assert_allclose(
        tw.compile(rows, target="opencl")(x), power / power.sum(axis=1, keepdims=True), rtol=1e-5
    )
    print("both kernels agree with NumPy on an OpenCL device")


if __name__ == "__main__":
    main()
