"""Programs written with T.match_buffer: no rule of ruff or of a strict type checker is switched off."""

from tilewright.script import ir as I
from tilewright.script import tir as T

N = 128


def n_threads() -> int:
    return 4


@T.macro
def add_one(A: T.Buffer, i: T.int32) -> None:
    A[i] = A[i] + T.float32(1)


@T.prim_func
def matmul(a: T.handle, b: T.handle, c: T.handle) -> None:
    T.func_attr({"tir.noalias": True})
    A = T.match_buffer(a, (N, N), "float32")
    B = T.match_buffer(b, (N, N), "float32")
    C = T.match_buffer(c, (N, N), "float32")
    for i, j, k in T.grid(N, N, N):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            T.reads(A[vi, vk], B[vk, vj])
            T.writes(C[vi, vj])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] += A[vi, vk] * B[vk, vj]


@T.prim_func(private=True)
def symbolic(a: T.handle, n: T.int32) -> None:
    m = T.int32()
    A = T.match_buffer(a, (n, m), "float32", strides=["s0", "s1"], offset_factor=1)
    B = T.alloc_buffer((n, m), A.dtype, scope="local")
    for i in range(n):
        for j in T.vectorized(m):
            with T.block("copy"):
                vi = T.axis.spatial(n, i)
                vj = T.axis.S((0, m), j)
                T.where(i + 1 < n)
                B[vi, vj] = T.exp(A[vi, vj]) + T.max(A[vi, vj], 0.0)
    for i in T.serial(n, annotations={"key": 1}):
        with T.block("back"):
            vi = T.axis.remap("S", [i])
            x: T.float32 = B[vi, 0] * 2.0
            if 1 < vi < 5 and n > 3:
                A[vi, 0] = x
            elif vi != 7:
                A[vi, 0] = T.if_then_else(vi % 2 == 0, x, -x)
            assert n > 0, "n must be positive"


@T.prim_func
def lowered(a: T.handle) -> None:
    A = T.match_buffer(a, [N], "float32")
    bx = T.launch_thread("blockIdx.x", 4)
    with T.launch_thread("threadIdx.x", 32) as tx, T.attr(A, "key", 1):
        p = T.allocate([N], "float32", "shared")
        P = T.decl_buffer((N,), "float32", data=p, scope="shared")
        P[tx] = A[bx * 32 + tx]
        A[0:4] = P[0:4] + T.Broadcast(T.float32(1), 4)
        T.evaluate(T.call_extern("int32", "f", A.access_ptr("r"), n_threads()))
        add_one(A, tx)
        y = T.meta_var(tx + 1)
        A[y] = T.cast(y, "float32")
        T.print("y is", y)
        while A[0] < 1.0:
            A[0] += 1.0


@I.ir_module
class Module:
    @staticmethod
    @T.prim_func
    def main(a: T.handle) -> None:
        A = T.match_buffer(a, (N,), "float32")
        Module.fill(A.data, N)

    @staticmethod
    @T.prim_func(private=True)
    def fill(a: T.handle, n: T.int32) -> None:
        A = T.match_buffer(a, (N,), "float32")
        for i in T.parallel(n):
            A[i] = T.float32(0)
