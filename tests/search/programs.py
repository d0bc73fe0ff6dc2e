"""Small programs of which the tests of builders, runners and schedulers make kernels."""

from __future__ import annotations

import tilewright as tw
from tilewright.script import ir as I
from tilewright.script import tir as T


@I.ir_module
class AddOne:
    @T.prim_func
    def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        T.func_attr({"tir.noalias": True})
        for i in range(64):
            with T.block("B"):
                vi = T.axis.spatial(64, i)
                B[vi] = A[vi] + T.float32(1)


@I.ir_module
class Product:
    @T.prim_func
    def main(A: T.Buffer((32, 32), "float32"), B: T.Buffer((32, 32), "float32"), C: T.Buffer((32, 32), "float32")):
        T.func_attr({"tir.noalias": True})
        for i, j, k in T.grid(32, 32, 32):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


@I.ir_module
class Endless:
    @T.prim_func
    def main(A: T.Buffer((1,), "int32")):
        while A[0] != 100:
            A[0] = A[0] % 2


@T.prim_func
def scale(X: T.Buffer((64, 96), "float32"), Y: T.Buffer((64, 96), "float32")):
    for i, j in T.grid(64, 96):
        with T.block("Y"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = X[vi, vj] * T.float32(2)


def tiles(sch: tw.Schedule) -> None:
    i, j = sch.get_loops(sch.get_block("Y"))
    sch.split(i, factors=sch.sample_perfect_tile(i, n=3))
    sch.split(j, factors=sch.sample_perfect_tile(j, n=3))


@T.prim_func
def double(A: T.Buffer((256,), "float32"), B: T.Buffer((256,), "float32")):
    for i in range(256):
        with T.block("B"):
            vi = T.axis.spatial(256, i)
            B[vi] = A[vi] * T.float32(2)


@T.prim_func
def matmul(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 64), "float32"), C: T.Buffer((64, 64), "float32")):
    for i, j, k in T.grid(64, 64, 64):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


@T.prim_func
def transpose(X: T.Buffer((48, 80), "int32"), Y: T.Buffer((80, 48), "int32")):
    for i, j in T.grid(80, 48):
        with T.block("Y"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = X[vj, vi]


@T.prim_func
def softmax(X: T.Buffer((32, 64), "float32"), Y: T.Buffer((32, 64), "float32")):
    largest = T.alloc_buffer((32,), "float32")
    total = T.alloc_buffer((32,), "float32")
    for i, j in T.grid(32, 64):
        with T.block("largest"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                largest[vi] = T.min_value("float32")
            largest[vi] = T.max(largest[vi], X[vi, vj])
    for i, j in T.grid(32, 64):
        with T.block("total"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                total[vi] = T.float32(0)
            total[vi] = total[vi] + T.exp(X[vi, vj] - largest[vi])
    for i, j in T.grid(32, 64):
        with T.block("Y"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = T.exp(X[vi, vj] - largest[vi]) / total[vi]
