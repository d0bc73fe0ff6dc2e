"""Layouts that are changed ahead of time."""

from __future__ import annotations

import numpy as np

import tilewright as tw
from tilewright.meta_schedule import ArgInfo, TensorInfo
from tilewright.meta_schedule.builder import default_build
from tilewright.meta_schedule.layout_preproc import without_layout_rewrites
from tilewright.script import tir as T


@T.prim_func
def product(A: T.Buffer((8, 32), "float32"), B: T.Buffer((32, 64), "float32"), C: T.Buffer((8, 64), "float32")):
    B_tiled = T.alloc_buffer((4, 32, 16), "float32")
    for k, j in T.grid(32, 64):
        with T.block("tile"):
            T.block_attr({"meta_schedule.layout_rewrite_preproc": True})
            vk, vj = T.axis.remap("SS", [k, j])
            B_tiled[vj // 16, vk, vj % 16] = B[vk, vj]
    for i, j, k in T.grid(8, 64, 32):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B_tiled[vj // 16, vk, vj % 16]


def test_the_copy_is_the_parameter():
    module = tw.ir.IRModule({"main": product})
    infos = ArgInfo.from_entry_func(module)
    assert infos == [TensorInfo("float32", s) for s in ((8, 32), (4, 32, 16), (8, 64))]
    assert ArgInfo.from_entry_func(module, remove_preproc=False)[1] == TensorInfo("float32", (32, 64))
    generator = np.random.default_rng(0)
    a, b = (generator.integers(-4, 4, shape).astype("float32") for shape in ((8, 32), (32, 64)))
    c = np.empty((8, 64), "float32")
    tiled = np.ascontiguousarray(b.reshape(32, 4, 16).transpose(1, 0, 2))
    default_build(module, "llvm")(a, tiled, c)
    np.testing.assert_array_equal(c, a @ b)
    assert '"tile"' not in without_layout_rewrites(product).script()


def test_functions_without_such_blocks_stay():
    plain = tw.Schedule(product)
    plain.unannotate(plain.get_block("tile"), "meta_schedule.layout_rewrite_preproc")
    function = plain.mod["main"]
    assert without_layout_rewrites(function) is function


def test_a_copy_stays_where_the_parameter_is_read_elsewhere():
    @T.prim_func
    def both(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        R = T.alloc_buffer((8,), "float32")
        for i in range(8):
            with T.block("reverse"):
                T.block_attr({"meta_schedule.layout_rewrite_preproc": True})
                vi = T.axis.spatial(8, i)
                R[7 - vi] = A[vi]
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi] + R[vi]

    assert without_layout_rewrites(both) is both
