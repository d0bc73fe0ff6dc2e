"""How blocks could be computed by tensor intrinsics."""

import pytest

import tilewright as tw
from tilewright import auto_tensorize, ir, te
from tilewright.script import tir as T
from tilewright.tensor_intrin import TensorIntrin, x86
from tilewright.testing import check, formulas


@T.prim_func
def product_of_bytes(A: T.Buffer((8, 32), "uint8"), W: T.Buffer((2, 8, 16, 4), "int8"), C: T.Buffer((8, 32), "int32")):
    for i, j, k in T.grid(8, 32, 32):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = 0
            C[vi, vj] = C[vi, vj] + T.Cast("int32", A[vi, vk]) * T.Cast("int32", W[vj // 16, vk // 4, vj % 16, vk % 4])


def tile(n, m, k, **types):
    return tw.Schedule(te.create_prim_func(formulas.matmul(n, m, k, **types)))


def test_tiled_and_tensorized():
    def transform(sch):
        block = sch.get_block("C")
        tiled = auto_tensorize.tile_with_tensor_intrin(sch, block, x86.AVX2_DOT_16x4_INTRIN)
        assert [ir_extent(sch, loop) for loop in sch.get_loops(block)] == [8, 2, 8, 16, 4]
        sch.decompose_reduction(block, sch.get_loops(block)[2])
        sch.tensorize(tiled, x86.AVX2_DOT_16x4_INTRIN)

    check(product_of_bytes, transform)


def ir_extent(sch, loop):
    return sch.get(loop).extent.value


def test_loops_are_found_whatever_their_order():
    desc = TensorIntrin.get("wmma_sync_16x16x16_f16f16f32").desc
    sch = tile(64, 64, 64, in_dtype="float16")
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    sch.reorder(k, i, j)
    found = auto_tensorize.loop_mapping(sch, block, desc)
    assert [sch.get(loop) for loop, _ in found.loops] == [sch.get(loop) for loop in (i, j, k)]
    assert found.paddings is None


def test_extents_that_are_no_multiples():
    desc = TensorIntrin.get("wmma_sync_16x16x16_f16f16f32").desc
    sch = tile(60, 64, 63, in_dtype="float16")
    block = sch.get_block("C")
    assert auto_tensorize.loop_mapping(sch, block, desc) is None
    assert auto_tensorize.loop_mapping(sch, block, desc, allow_padding=True).paddings == [16, 1, 16]


@pytest.mark.parametrize(
    ("workload", "block", "expected"),
    [
        (formulas.matmul(32, 32, 32, "float16"), "C", lambda n, m, k: (n, m, k)),
        (formulas.batch_matmul_nkkm(3, 32, 32, 32, "float16"), "Z", lambda b, n, m, k: (b, n, m, k)),
        (
            formulas.conv2d_nhwc(2, 8, 8, 16, 16, 3, 1, 1, in_dtype="float16"),
            "conv2d_nhwc",
            lambda n, h, w, c, rh, rw, rc: ((n * 8 + h) * 8 + w, c, (rh * 3 + rw) * 16 + rc),
        ),
    ],
)
def test_axes_that_join_to_those_of_a_product(workload, block, expected):
    sch = tw.Schedule(te.create_prim_func(workload))
    desc = TensorIntrin.get("wmma_sync_16x16x16_f16f16f32").desc
    found = auto_tensorize.layout_mapping(sch, sch.get_block(block), desc)
    mapping = found.mapping
    assert all(
        ir.structural_equal(got, want)
        for got, want in zip(mapping.final_indices, expected(*mapping.initial_indices), strict=True)
    )


def test_another_computation_maps_to_nothing():
    sch = tw.Schedule(te.create_prim_func(formulas.matmul(32, 32, 32, "float32")))
    desc = TensorIntrin.get("wmma_sync_16x16x16_f16f16f32").desc
    assert auto_tensorize.layout_mapping(sch, sch.get_block("C"), desc) is None


def suggested(shape, indices, extents):
    """What becomes of each element: its place in the suggested layout."""
    names = [ir.Var(f"v{n}", "int32") for n in range(len(extents))]
    loops = [ir.For(name, 0, extent, body=ir.Evaluate(0)) for name, extent in zip(names, extents, strict=True)]
    func = te.create_prim_func([te.placeholder(shape, name="A"), te.compute(shape, lambda *i: 1.0, name="B")])
    buffer = func.buffer_map[func.params[0]]
    return auto_tensorize.suggest_index_map(buffer, indices(*names), loops)


def test_a_layout_in_the_order_of_the_loops():
    found = suggested((8, 256), lambda i, j: [i // 16 * 4 + j // 16, i % 16 * 16 + j % 16], [32, 64])
    x, y = found.initial_indices
    expected = (x // 4, y // 16, x % 4, y % 16)
    assert all(ir.structural_equal(a, b) for a, b in zip(found.final_indices, expected, strict=True))


def test_no_layout_without_digits():
    assert suggested((64,), lambda i: [i * i], [8]) is None
