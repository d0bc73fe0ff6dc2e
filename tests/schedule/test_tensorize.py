"""sch.tensorize: a block computed by a tensor intrinsic."""

import numpy as np
import pytest

import tilewright as tw
from tilewright import script, te
from tilewright.script import tir as T
from tilewright.tensor_intrin import TensorIntrin, x86
from tilewright.testing import check, check_refused, formulas, workloads


@T.prim_func
def tile_desc(A: T.Buffer((4, 4)), B: T.Buffer((4, 4)), C: T.Buffer((4, 4))):
    with T.block("root"):
        T.reads(C[0:4, 0:4], A[0:4, 0:4], B[0:4, 0:4])
        T.writes(C[0:4, 0:4])
        for i, j, k in T.grid(4, 4, 4):
            with T.block("update"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


@T.prim_func
def tile_impl(A: T.Buffer((4, 4)), B: T.Buffer((4, 4)), C: T.Buffer((4, 4))):
    with T.block("root"):
        T.reads(C[0:4, 0:4], A[0:4, 0:4], B[0:4, 0:4])
        T.writes(C[0:4, 0:4])
        for i, k in T.grid(4, 4):
            C[i, 0:4] = C[i, 0:4] + T.broadcast(A[i, k], 4) * B[k, 0:4]


@T.prim_func
def opaque_impl(
    A: T.Buffer((4, 4), strides=["a0", "a1"], offset_factor=1),
    B: T.Buffer((4, 4), strides=["b0", "b1"], offset_factor=1),
    C: T.Buffer((4, 4), strides=["c0", "c1"], offset_factor=1),
):
    with T.block("root"):
        T.reads(C[0:4, 0:4], A[0:4, 0:4], B[0:4, 0:4])
        T.writes(C[0:4, 0:4])
        T.evaluate(
            T.call_extern(
                "void", "tile_product", A.access_ptr("r"), B.access_ptr("r"), C.access_ptr("rw"), C.strides[0]
            )
        )


@pytest.fixture(scope="module", autouse=True)
def intrinsics():
    TensorIntrin.register("test_tile", tile_desc, tile_impl, override=True)
    TensorIntrin.register("test_opaque", tile_desc, opaque_impl, override=True)


def tile(sch, block="C"):
    """A product in tiles of 4: the outermost loop of a tile's update."""
    block = sch.get_block(block)
    i, j, k = sch.get_loops(block)
    i0, i1 = sch.split(i, [None, 4])
    j0, j1 = sch.split(j, [None, 4])
    k0, k1 = sch.split(k, [None, 4])
    sch.reorder(i0, j0, k0, i1, j1, k1)
    sch.decompose_reduction(block, k0)
    return i1


def test_a_product():
    sch = check(workloads.matmul(8, 8, 8), lambda sch: sch.tensorize(tile(sch), "test_tile"))
    text = sch.mod.script()
    assert "T.match_buffer(A[vi_o * 4:vi_o * 4 + 4, vl_o * 4:vl_o * 4 + 4]" in text
    assert "T.Broadcast" in text


def test_an_implementation_that_does_something_else():
    @T.prim_func
    def twice(A: T.Buffer((4, 4)), B: T.Buffer((4, 4)), C: T.Buffer((4, 4))):
        with T.block("root"):
            T.reads(C[0:4, 0:4], A[0:4, 0:4], B[0:4, 0:4])
            T.writes(C[0:4, 0:4])
            for i, k in T.grid(4, 4):
                C[i, 0:4] = C[i, 0:4] + T.broadcast(A[i, k] * 2.0, 4) * B[k, 0:4]

    TensorIntrin.register("test_twice", tile_desc, twice, override=True)
    sch = tw.Schedule(workloads.matmul(8, 8, 8))
    sch.tensorize(tile(sch), "test_twice")
    with pytest.raises(tw.ScheduleError, match=r"it differs first after step .*tensorize.*\n.*than its description"):
        sch.verify()


def test_a_block_that_is_there_already():
    def transform(sch):
        sch.tensorize(sch.blockize(tile(sch)), "test_tile")

    check(workloads.matmul(8, 8, 8), transform)


def test_leading_dimensions_of_the_program():
    @T.prim_func
    def batched(A: T.Buffer((3, 8, 8)), B: T.Buffer((3, 8, 8)), C: T.Buffer((3, 8, 8))):
        for n, i, j, k in T.grid(3, 8, 8, 8):
            with T.block("C"):
                vn, vi, vj, vk = T.axis.remap("SSSR", [n, i, j, k])
                with T.init():
                    C[vn, vi, vj] = T.float32(0)
                C[vn, vi, vj] = C[vn, vi, vj] + B[vn, vk, vj] * A[vn, vi, vk]

    def transform(sch):
        block = sch.get_block("C")
        n, i, j, k = sch.get_loops(block)
        i0, i1 = sch.split(i, [None, 4])
        j0, j1 = sch.split(j, [None, 4])
        k0, k1 = sch.split(k, [None, 4])
        sch.reorder(n, i0, j0, k0, i1, j1, k1)
        sch.decompose_reduction(block, k0)
        sch.tensorize(i1, "test_tile")

    sch = check(batched, transform)
    assert "A[vn_o, vi_o * 4:vi_o * 4 + 4, vk_o * 4:vk_o * 4 + 4]" in sch.mod.script()


@T.prim_func
def wide(
    A: T.Buffer((T.int64(8), T.int64(8))),
    B: T.Buffer((T.int64(8), T.int64(8))),
    C: T.Buffer((T.int64(8), T.int64(8))),
):
    for i, j, k in T.grid(T.int64(8), T.int64(8), T.int64(8)):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


@pytest.mark.parametrize("intrin", ["test_tile", "test_opaque"])
def test_indices_of_64_bits(intrin):
    def transform(sch):
        sch.tensorize(tile(sch), intrin)
        i0, j0, _ = sch.get_loops("C_update_o")
        sch.reorder(j0, i0)  # by the contract
        sch.parallel(j0)

    text = check(wide, transform).mod.script()
    assert "(T.int64(4), T.int64(4))" in text and "(4, 4)" not in text
    if intrin == "test_opaque":  # what is called takes the types that it always took
        assert 'T.Cast("int32", C_1.strides[0]))' in text


@T.prim_func
def packed_description(a: T.handle, c: T.handle):
    A = T.match_buffer(a, (2, 4), "int32")
    C = T.match_buffer(c, (8,), "int32")
    with T.block("root"):
        T.reads(A[0:2, 0:4])
        T.writes(C[0:8])
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = A[vi // 4, vi % 4]


TensorIntrin.register("test_packed", packed_description, packed_description)


@pytest.mark.parametrize("index", ["int32", "int64"])
def test_a_description_that_divides_an_index(index):
    """A quotient of the description's axis was one of two types where the program has 64 bits."""
    program = script.from_source(f"""
@T.prim_func
def main(A: T.Buffer((T.{index}(6), T.{index}(4)), "int32"), C: T.Buffer((T.{index}(24),), "int32")):
    for i, j in T.grid(T.{index}(3), T.{index}(8)):
        with T.block("C"):
            vi = T.axis.spatial(T.{index}(24), i * T.{index}(8) + j)
            C[vi] = A[vi // T.{index}(4), vi % T.{index}(4)]
""")
    check(program, lambda sch: sch.tensorize(sch.get_loops("C")[1], "test_packed"))


def test_a_register_tile_with_indices_of_64_bits():
    """The same instructions and the same sums as with 32 bits."""
    if not {"avx512f"} <= set(tw.Target("native").features):
        pytest.skip("this processor has no AVX-512")
    size = tw.ir.IntImm("int64", 16)
    A, B = te.placeholder((size, size), "uint8", name="A"), te.placeholder((size, size), "int8", name="B")
    k = te.reduce_axis((0, size), "k")
    product = te.create_prim_func(
        [A, B, te.compute((size, size), lambda i, j: te.sum(A[i, k.var].astype("int32") * B[j, k.var], k), name="C")]
    )
    sch = tw.Schedule(product)
    i, j, k = sch.get_loops("C")
    ko, ki = sch.split(k, [None, 4])
    sch.reorder(i, ko, j, ki)
    sch.decompose_reduction("C", ko)
    sch.tensorize(j, x86.AVX512_DOT_16x4_INTRIN)
    a, b = np.full((16, 16), 255, "uint8"), np.full((16, 16), -128, "int8")
    c = np.zeros((16, 16), "int32")
    tw.compile(sch.mod)(a, b, c)
    assert (c == 255 * -128 * 16).all()


def test_implementations_that_compute_with_their_indices_stay_as_they_are():
    """A value of 32 bits is stored, so the loops have to be those of 32 bits; the regions of the program fit them."""

    @T.prim_func
    def desc(A: T.Buffer((4,), "int32")):
        with T.block("root"):
            T.reads()
            T.writes(A[0:4])
            for i in range(4):
                with T.block("A"):
                    vi = T.axis.spatial(4, i)
                    A[vi] = vi

    @T.prim_func
    def numbered(A: T.Buffer((T.int64(8), T.int64(4)), "int32")):
        for r, i in T.grid(T.int64(8), T.int64(4)):
            with T.block("A"):
                vr, vi = T.axis.remap("SS", [r, i])
                A[vr, vi] = T.Cast("int32", vi)

    TensorIntrin.register("test_numbers", desc, desc, override=True)
    text = check(numbered, lambda sch: sch.tensorize(sch.get_loops("A")[1], "test_numbers")).mod.script()
    assert 'A[vr_o, T.int64(0):T.int64(4)], (4,), "int32")' in text


def test_what_cannot_be_seen_into_means_its_description():
    """The interpreter runs the description, and schedules go on by the contract."""

    def transform(sch):
        loop = tile(sch)
        sch.tensorize(loop, "test_opaque")
        tiled = sch.get_block("C_update_o")
        i0, j0, k0 = sch.get_loops(tiled)
        sch.reorder(j0, i0)
        sch.parallel(j0)
        assert repr(k0) == "Loop(l_0, extent=2)"

    check(workloads.matmul(8, 8, 8), transform)


def test_producers_move_to_an_opaque_block():
    @T.prim_func
    def scaled(A: T.Buffer((8, 8)), B: T.Buffer((8, 8)), C: T.Buffer((8, 8))):
        S = T.alloc_buffer((8, 8))
        for i, j in T.grid(8, 8):
            with T.block("S"):
                vi, vj = T.axis.remap("SS", [i, j])
                S[vi, vj] = A[vi, vj] * T.float32(2)
        for i, j, k in T.grid(8, 8, 8):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + S[vi, vk] * B[vk, vj]

    def transform(sch):
        sch.tensorize(tile(sch), "test_opaque")
        i0, j0, k0 = sch.get_loops(sch.get_block("C_update_o"))
        sch.compute_at("S", k0)
        sch.parallel(i0)

    check(scaled, transform)


def test_its_reduction_is_no_vector_of_steps():
    def transform(sch):
        sch.tensorize(tile(sch), "test_opaque")
        sch.vectorize(sch.get_loops(sch.get_block("C_update_o"))[2])

    check_refused(workloads.matmul(8, 8, 8), transform, "vectorize/P3")


# ---- products of bytes

#: and the instruction that each is made of
DOTS = {
    x86.VNNI_DOT_16x4_INTRIN: "vpdpbusd",
    x86.AVXVNNI_DOT_16x4_INTRIN: "vpdpbusd",
    x86.AVX512_DOT_16x4_INTRIN: "vpmaddwd",
    x86.AVX2_DOT_16x4_INTRIN: "vpmaddwd",
}


@T.prim_func
def product_of_bytes(A: T.Buffer((8, 32), "uint8"), W: T.Buffer((2, 8, 16, 4), "int8"), C: T.Buffer((8, 32), "int32")):
    for i, j, k in T.grid(8, 32, 32):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = 0
            C[vi, vj] = C[vi, vj] + T.Cast("int32", A[vi, vk]) * T.Cast("int32", W[vj // 16, vk // 4, vj % 16, vk % 4])


def with_dot(sch, intrin):
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    j0, j1 = sch.split(j, [None, 16])
    k0, k1 = sch.split(k, [None, 4])
    sch.reorder(i, j0, k0, j1, k1)
    sch.decompose_reduction(block, k0)
    sch.tensorize(j1, intrin)


@pytest.mark.parametrize("intrin", DOTS)
def test_dots_of_bytes_by_their_description(intrin):
    check(product_of_bytes, lambda sch: with_dot(sch, intrin))


@pytest.mark.parametrize("intrin", DOTS)
def test_dots_of_bytes_compiled_at_the_extremes(intrin):
    sch = tw.Schedule(product_of_bytes)
    with_dot(sch, intrin)
    assert DOTS[intrin] in tw.compile(sch.mod, target="llvm -mcpu=sapphirerapids").inspect("asm")
    if not set(TensorIntrin.get(intrin).features) <= set(tw.Target("native").features):
        return
    kernel = tw.compile(sch.mod)
    rng = np.random.default_rng(0)
    for low, high, least, most in [(255, 256, 127, 128), (255, 256, -128, -127), (0, 256, -128, 128)]:
        a = rng.integers(low, high, (8, 32)).astype("uint8")
        w = rng.integers(least, most, (2, 8, 16, 4)).astype("int8")
        c = np.zeros((8, 32), "int32")
        kernel(a, w, c)
        rows = w.transpose(0, 2, 1, 3).reshape(32, 32).astype("int32")
        np.testing.assert_array_equal(c, a.astype("int32") @ rows.T)


def test_a_register_tile_of_floats():
    def transform(sch):
        block = sch.get_block("C")
        i, j, k = sch.get_loops(block)
        i0, i1 = sch.split(i, [None, 6])
        j0, j1 = sch.split(j, [None, 16])
        sch.reorder(i0, j0, k, i1, j1)
        sch.decompose_reduction(block, k)
        sch.tensorize(i1, x86.FMA_GEMM_6x16_INTRIN)

    sch = check(workloads.matmul(12, 32, 5), transform)
    rng = np.random.default_rng(0)
    a, b = rng.integers(-4, 5, (12, 5)).astype("float32"), rng.integers(-4, 5, (5, 32)).astype("float32")
    c = np.zeros((12, 32), "float32")
    tw.compile(sch.mod)(a, b, c)
    np.testing.assert_array_equal(c, a @ b)


def test_a_product_by_fragments_of_a_gpu():
    """Copies, zeros, products and results, each by its intrinsic: the interpreter goes by the descriptions."""

    def transform(sch):
        block = sch.get_block("C")
        tiles = [sch.split(loop, [None, 16]) for loop in sch.get_loops(block)]
        sch.reorder(*(outer for outer, _ in tiles), *(inner for _, inner in tiles))
        (_, i1), (j0, _), (k0, _) = tiles
        for position, scope in enumerate(["wmma.matrix_a", "wmma.matrix_b"]):
            shared, fragment = (sch.cache_read(block, position, where) for where in ("shared", scope))
            sch.compute_at(fragment, k0)
            sch.compute_at(shared, k0)
            kind = "ab"[position]
            sch.tensorize(sch.get_loops(fragment)[-2], f"wmma_load_16x16x16_f16_{kind}_shared")
        result = sch.cache_write(block, 0, "wmma.accumulator")
        sch.reverse_compute_at(result, j0)
        init = sch.decompose_reduction(block, k0)
        sch.tensorize(sch.get_loops(init)[-2], "wmma_fill_16x16x16_f32")
        sch.tensorize(i1, "wmma_sync_16x16x16_f16f16f32")
        sch.tensorize(sch.get_loops(result)[-2], "wmma_store_16x16x16_f32_global")

    check(te.create_prim_func(formulas.matmul(32, 32, 32, "float16")), transform)


# ---- what is refused


def test_p1_no_such_intrinsic():
    check_refused(workloads.matmul(8, 8, 8), lambda sch: sch.tensorize(tile(sch), "test_nothing"), "tensorize/P1")


def test_a_name_that_was_nearly_right():
    sch = tw.Schedule(workloads.matmul(8, 8, 8))
    with pytest.raises(tw.ScheduleError, match="did you mean 'test_tile'"):
        sch.tensorize(tile(sch), "tets_tile")


def test_p2_an_init_is_in_the_way():
    def transform(sch):
        i, j, k = sch.get_loops(sch.get_block("C"))
        sch.tensorize(i, "test_tile")

    check_refused(workloads.matmul(4, 4, 4), transform, "tensorize/P2")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (lambda c, a, b: c + a - b, "Sub"),
        (lambda c, a, b: c + a * a, "'B' of the description"),
        (lambda c, a, b: c + a * b * T.float32(2), "block has"),
    ],
)
def test_p3_another_computation(value, said):
    @T.prim_func
    def other(A: T.Buffer((4, 4)), B: T.Buffer((4, 4)), C: T.Buffer((4, 4))):
        for i, j, k in T.grid(4, 4, 4):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                C[vi, vj] = value(C[vi, vj], A[vi, vk], B[vk, vj])

    def transform(sch):
        sch.tensorize(sch.get_loops(sch.get_block("C"))[0], "test_tile")

    error = check_refused(other, transform, "tensorize/P3")
    assert said in str(error) or "does not compute" in str(error)


def test_p3_a_transposed_operand():
    @T.prim_func
    def transposed(A: T.Buffer((4, 4)), B: T.Buffer((4, 4)), C: T.Buffer((4, 4))):
        for i, j, k in T.grid(4, 4, 4):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj, vk]

    def transform(sch):
        sch.tensorize(sch.get_loops(sch.get_block("C"))[0], "test_tile")

    error = check_refused(transposed, transform, "tensorize/P3")
    assert "does not run alike" in str(error)


def test_p3_another_tile():
    def transform(sch):
        block = sch.get_block("C")
        i, j, k = sch.get_loops(block)
        sch.decompose_reduction(block, i)
        sch.tensorize(i, "test_tile")

    error = check_refused(workloads.matmul(4, 4, 8), transform, "tensorize/P3")
    assert "4 iterations" in str(error) and "of 8" in str(error)


def test_p5_operands_in_one_buffer():
    @T.prim_func
    def squared(A: T.Buffer((8, 8)), B: T.Buffer((8, 8))):
        for i, j, k in T.grid(4, 4, 4):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                A[vi, vj] = A[vi, vj] + A[vi + 4, vk] * B[vk, vj]

    def transform(sch):
        sch.tensorize(sch.get_loops(sch.get_block("C"))[0], "test_tile")

    check_refused(squared, transform, "tensorize/P5")


def test_p4_more_than_the_block_declares():
    @T.prim_func
    def corner(A: T.Buffer((4, 4)), B: T.Buffer((4, 4)), C: T.Buffer((4, 4))):
        for u in range(1):
            with T.block("C"):
                T.reads(C[0:4, 0:4], A[0:4, 0:4], B[0:4, 0:3])
                T.writes(C[0:4, 0:4])
                for i, j, k in T.grid(4, 4, 4):
                    with T.block("update"):
                        vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                        C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

    check_refused(corner, lambda sch: sch.tensorize(sch.get_block("C"), "test_tile"), "tensorize/P4")


def test_p6_memory_that_is_not_compact():
    @T.prim_func
    def compact_impl(A: T.Buffer((4, 4)), B: T.Buffer((4, 4)), C: T.Buffer((4, 4))):
        with T.block("root"):
            T.reads(C[0:4, 0:4], A[0:4, 0:4], B[0:4, 0:4])
            T.writes(C[0:4, 0:4])
            T.evaluate(T.call_extern("void", "tile_product", A.access_ptr("r"), B.access_ptr("r"), C.access_ptr("rw")))

    TensorIntrin.register("test_compact", tile_desc, compact_impl, override=True)
    check_refused(workloads.matmul(8, 8, 8), lambda sch: sch.tensorize(tile(sch), "test_compact"), "tensorize/P6")


@pytest.mark.parametrize("condition, index", [("v < 1", "v"), ("v >= 3", "v - 3"), ("v < 4", "v")])
def test_p4_what_a_condition_keeps_inside_of_a_buffer(condition, index):
    def padded(text):
        return tw.script.from_source(f"""
@T.prim_func
def main({text}, B: T.Buffer((8,), offset_factor=1)):
    with T.block("root"):
        T.reads(A[0:8])
        T.writes(B[0:8])
        for i in range(8):
            with T.block("B"):
                v = T.axis.spatial(8, i)
                B[v] = T.if_then_else({condition}, A[{index}], T.float32(1))
""")

    TensorIntrin.register(
        "test_padded", padded("A: T.Buffer((8,), offset_factor=1)"), padded("A: T.Buffer((8,), offset_factor=1)"), True
    )
    program = tw.script.from_source(f"""
@T.prim_func
def main(A: T.Buffer((4,)), B: T.Buffer((8,))):
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            B[v] = T.if_then_else({condition}, A[{index}], T.float32(1))
""")
    check_refused(program, lambda sch: sch.tensorize(sch.get_loops("B")[0], "test_padded"), "tensorize/P4")


def gathers(columns: int) -> None:
    """Register an intrinsic for four stored elements of a row, whose columns select from `columns` elements."""

    def text(body: str) -> str:
        return f"""
@T.prim_func
def main(A: T.Buffer((4,), offset_factor=1), J: T.Buffer((4,), "int32", offset_factor=1),
         B: T.Buffer(({columns},), offset_factor=1), C: T.Buffer((1,), offset_factor=1)):
    with T.block("root"):
        T.reads(C[0:1], A[0:4], J[0:4], B[0:{columns}])
        T.writes(C[0:1])
{body}
"""

    loop = """        for k in range(4):
            with T.block("sum"):
                vk = T.axis.reduce(4, k)
                C[0] = C[0] + A[vk] * B[J[vk]]"""
    sum_of_four = "        C[0] = C[0]" + "".join(f" + A[{k}] * B[J[{k}]]" for k in range(4))
    TensorIntrin.register("test_gathers", *map(tw.script.from_source, (text(loop), text(sum_of_four))), override=True)


ELL = """
@T.prim_func
def main(a: T.handle, b: T.handle, c: T.handle, indices: T.handle):
    I = T.sp.dense_fixed(6)
    J = T.sp.compressed_fixed(I, (16, 8), indices)
    J_all = T.sp.dense_fixed(16)
    A = T.sp.match_buffer(a, (I, J), "float32")
    B = T.sp.match_buffer(b, (J_all,), "float32")
    C = T.sp.match_buffer(c, (I,), "float32")
    with T.sp.iteration([I, J], "SR", "rows") as [i, j]:
        with T.init():
            C[i] = T.float32(0)
        C[i] = C[i] + A[i, j] * B[j]
"""


def in_fours(sch):
    outer, inner = sch.split(sch.get_loops("rows0")[1], [None, 4])
    sch.decompose_reduction("rows0", outer)
    sch.tensorize(inner, "test_gathers")


def lowered_ell():
    sch = tw.Schedule(tw.script.from_source(ELL))
    sch.lower_sparse_iter()
    return sch


def test_an_intrinsic_that_gathers():
    gathers(16)
    sch = lowered_ell()
    program = sch.mod
    in_fours(sch)
    assert sch.mod.script().count("T.match_buffer(indices_data[") == 1
    sch.verify()
    check(program, in_fours)
    random = np.random.default_rng(0)
    a, b = (random.integers(-4, 5, shape).astype("float32") for shape in ((6, 8), 16))
    columns = np.sort(np.stack([random.permutation(16)[:8] for _ in range(6)]), 1).astype("int32")
    c = np.full(6, np.nan, "float32")
    tw.compile(sch)(a, b, c, columns.reshape(-1))
    np.testing.assert_array_equal(c, (a * b[columns]).sum(1))


def test_p4_an_intrinsic_that_gathers_from_a_part():
    """Nothing says that the columns are among the first ones."""
    gathers(8)
    error = check_refused(lowered_ell().mod, in_fours, "tensorize/P4")
    assert "selects from 8 positions of 'B', which has 16" in error.message
