"""Programs of the kinds that users tune, with sizes above the limit of shrinking."""

import numpy as np

from tilewright import ir
from tilewright.script import tir as T


@T.prim_func
def padded_conv2d(
    X: T.Buffer((3, 20, 22), "float32"), W: T.Buffer((18, 3, 3, 3), "float32"), Y: T.Buffer((18, 20, 22), "float32")
):
    pad = T.alloc_buffer((3, 22, 24))
    conv = T.alloc_buffer((18, 20, 22))
    for c, h, w in T.grid(3, 22, 24):
        with T.block("pad"):
            vc, vh, vw = T.axis.remap("SSS", [c, h, w])
            pad[vc, vh, vw] = T.if_then_else(
                vh >= 1 and vh < 21 and vw >= 1 and vw < 23, X[vc, vh - 1, vw - 1], T.float32(0)
            )
    for o, h, w, c, r, s in T.grid(18, 20, 22, 3, 3, 3):
        with T.block("conv"):
            vo, vh, vw, vc, vr, vs = T.axis.remap("SSSRRR", [o, h, w, c, r, s])
            with T.init():
                conv[vo, vh, vw] = T.float32(0)
            conv[vo, vh, vw] += pad[vc, vh + vr, vw + vs] * W[vo, vc, vr, vs]
    for o, h, w in T.grid(18, 20, 22):
        with T.block("relu"):
            vo, vh, vw = T.axis.remap("SSS", [o, h, w])
            Y[vo, vh, vw] = T.max(conv[vo, vh, vw], T.float32(0))


@T.prim_func
def padded_in_place(X: T.Buffer((57,), "float32"), Y: T.Buffer((58,), "float32")):
    for i in range(58):
        with T.block("pad"):
            vi = T.axis.spatial(58, i)
            Y[vi] = T.if_then_else(vi >= 1 and vi < 57, X[vi - 1], T.float32(0))


@T.prim_func
def strided_conv1d(X: T.Buffer((63, 20), "float32"), W: T.Buffer((3, 20), "float32"), Y: T.Buffer((31,), "float32")):
    for i, r, c in T.grid(31, 3, 20):
        with T.block("conv"):
            vi, vr, vc = T.axis.remap("SRR", [i, r, c])
            with T.init():
                Y[vi] = T.float32(0)
            Y[vi] += X[vi * 2 + vr, vc] * W[vr, vc]


@T.prim_func
def dilated_conv1d(X: T.Buffer((64, 20), "float32"), W: T.Buffer((3, 20), "float32"), Y: T.Buffer((56,), "float32")):
    for i, r, c in T.grid(56, 3, 20):
        with T.block("conv"):
            vi, vr, vc = T.axis.remap("SRR", [i, r, c])
            with T.init():
                Y[vi] = T.float32(0)
            Y[vi] += X[vi + vr * 4, vc] * W[vr, vc]


@T.prim_func
def mirrored(X: T.Buffer((256, 20), "float32"), Y: T.Buffer((256, 20), "float32")):
    for i, j in T.grid(256, 20):
        with T.block("Y"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = X[255 - vi, vj] + T.float32(1)


@T.prim_func
def transposed_conv1d(X: T.Buffer((32, 4), "float32"), W: T.Buffer((4, 4), "float32"), Y: T.Buffer((66,), "float32")):
    dilated = T.alloc_buffer((69, 4))
    for i, c in T.grid(69, 4):
        with T.block("dilate"):
            vi, vc = T.axis.remap("SS", [i, c])
            dilated[vi, vc] = T.if_then_else(
                vi >= 3 and vi < 66 and (vi - 3) % 2 == 0, X[(vi - 3) // 2, vc], T.float32(0)
            )
    for i, r, c in T.grid(66, 4, 4):
        with T.block("conv"):
            vi, vr, vc = T.axis.remap("SRR", [i, r, c])
            with T.init():
                Y[vi] = T.float32(0)
            Y[vi] += dilated[vi + vr, vc] * W[3 - vr, vc]


@T.prim_func
def max_pool(X: T.Buffer((18, 40, 40), "float32"), Y: T.Buffer((18, 20, 20), "float32")):
    for c, h, w, r, s in T.grid(18, 20, 20, 2, 2):
        with T.block("pool"):
            vc, vh, vw, vr, vs = T.axis.remap("SSSRR", [c, h, w, r, s])
            with T.init():
                Y[vc, vh, vw] = T.min_value("float32")
            Y[vc, vh, vw] = T.max(Y[vc, vh, vw], X[vc, vh * 2 + vr, vw * 2 + vs])


@T.prim_func
def gather(X: T.Buffer((100, 20), "float32"), I: T.Buffer((50,), "int32"), Y: T.Buffer((50, 20), "float32")):
    for i, j in T.grid(50, 20):
        with T.block("Y"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = X[I[vi], vj] * T.float32(2)


@T.prim_func
def scatter(X: T.Buffer((50,), "float32"), I: T.Buffer((50,), "int32"), Y: T.Buffer((100,), "float32")):
    for i in range(50):
        with T.block("Y"):
            vi = T.axis.opaque(50, i)
            Y[I[vi]] = Y[I[vi]] + X[vi]


@T.prim_func
def softmax(X: T.Buffer((30, 70), "float32"), Y: T.Buffer((30, 70), "float32")):
    top = T.alloc_buffer((30,))
    exps = T.alloc_buffer((30, 70))
    total = T.alloc_buffer((30,))
    for i, k in T.grid(30, 70):
        with T.block("top"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                top[vi] = T.min_value("float32")
            top[vi] = T.max(top[vi], X[vi, vk])
    for i, j in T.grid(30, 70):
        with T.block("exps"):
            vi, vj = T.axis.remap("SS", [i, j])
            exps[vi, vj] = T.exp(X[vi, vj] - top[vi])
    for i, k in T.grid(30, 70):
        with T.block("total"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                total[vi] = T.float32(0)
            total[vi] += exps[vi, vk]
    for i, j in T.grid(30, 70):
        with T.block("Y"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = exps[vi, vj] / total[vi]


@T.prim_func
def layer_norm(X: T.Buffer((30, 64), "float32"), G: T.Buffer((64,), "float32"), Y: T.Buffer((30, 64), "float32")):
    mean = T.alloc_buffer((30,))
    square = T.alloc_buffer((30,))
    for i, k in T.grid(30, 64):
        with T.block("sums"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                mean[vi] = T.float32(0)
                square[vi] = T.float32(0)
            mean[vi] = mean[vi] + X[vi, vk]
            square[vi] = square[vi] + X[vi, vk] * X[vi, vk]
    for i, j in T.grid(30, 64):
        with T.block("Y"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = (
                (X[vi, vj] - mean[vi] / T.float32(64))
                * T.rsqrt(square[vi] / T.float32(64) - mean[vi] * mean[vi] / T.float32(4096) + T.float32(1e-5))
                * G[vj]
            )


@T.prim_func
def scan(X: T.Buffer((300,), "float32"), Y: T.Buffer((300,), "float32")):
    for i in range(300):
        with T.block("Y"):
            vi = T.axis.opaque(300, i)
            Y[vi] = T.if_then_else(vi > 0, Y[vi - 1], T.float32(0)) + X[vi]


@T.prim_func
def in_place(Y: T.Buffer((40, 50), "float32")):
    for i, j in T.grid(40, 50):
        with T.block("double"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = Y[vi, vj] * T.float32(2)
    for i, j in T.grid(40, 50):
        with T.block("add"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = Y[vi, vj] + T.float32(1)


@T.prim_func
def fused_loops(X: T.Buffer((20, 30), "float32"), Y: T.Buffer((20, 30), "float32")):
    for ij in range(600):
        with T.block("Y"):
            vi = T.axis.spatial(20, ij // 30)
            vj = T.axis.spatial(30, ij % 30)
            Y[vi, vj] = X[vi, vj] + T.float32(1)


@T.prim_func
def triangle(X: T.Buffer((40, 40), "float32"), Y: T.Buffer((40,), "float32")):
    for i in range(40):
        with T.block("Y"):
            vi = T.axis.spatial(40, i)
            Y[vi] = T.float32(0)
            for j in range(vi + 1):
                Y[vi] = Y[vi] + X[vi, j]


@T.prim_func
def view(X: T.Buffer((20, 30), "float32"), Y: T.Buffer((20, 30), "float32")):
    for i in range(20):
        with T.block("row"):
            vi = T.axis.spatial(20, i)
            row = T.match_buffer(Y[vi, 0:30], (30,))
            for j in range(30):
                row[j] = X[vi, j] * T.float32(3)


#: below what the indices in arrays have to stay
INDEX_LIMITS = {"gather": 100, "scatter": 100}
PROGRAMS: dict[str, ir.PrimFunc] = {
    name: value for name, value in list(globals().items()) if isinstance(value, ir.PrimFunc)
}


def arguments_of(program: ir.PrimFunc, index_limit: int = 0) -> dict[str, np.ndarray]:
    """Random arrays for the parameters, by the names of their buffers."""
    generator = np.random.default_rng(5)
    arrays = {}
    for parameter in program.params:
        buffer = program.buffer_map[parameter]
        shape = [int(extent) for extent in buffer.shape]
        if "int" in buffer.dtype:
            arrays[buffer.name] = generator.integers(0, index_limit, shape).astype(buffer.dtype)
        else:
            arrays[buffer.name] = generator.standard_normal(shape).astype(buffer.dtype)
    return arrays
