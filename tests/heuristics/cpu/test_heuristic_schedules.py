"""Schedules that nobody wrote: they compute the same on all kinds of programs, and have what makes kernels fast."""

import math
import pickle
import random as rng
import re

import numpy as np
import pytest
from tests.heuristics.cpu.programs import (
    OPEN_PROGRAMS,
    PROGRAMS,
    TARGETS,
    bytes_product,
    check_results,
    column_sums,
    convolution,
    depthwise,
    elementwise,
    norm,
    open_product,
    product,
    scheduled,
    softmax,
    transposed_convolution,
    transposed_in_channels,
    turned_copy,
    vector,
    windows,
)

import tilewright as tw
from tilewright import te
from tilewright.heuristics import cpu
from tilewright.heuristics.block_info import block_info
from tilewright.heuristics.cpu.reduction import vectorized_result_axis
from tilewright.heuristics.cpu.register_tile import register_tiles
from tilewright.heuristics.unscheduled import is_unscheduled
from tilewright.script import tir as T
from tilewright.task.arguments import make_arrays
from tilewright.task.task import task_of
from tilewright.testing import formulas


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("target", TARGETS)
def test_the_schedule_computes_the_same(name, target):
    scheduled(PROGRAMS[name], target).verify()


@pytest.mark.parametrize("name", PROGRAMS)
def test_drawn_schedules_compute_the_same(name):
    for seed in range(2):
        scheduled(PROGRAMS[name], TARGETS[seed], best=False, seed=seed).verify()


#: whose lanes are left to lowering, which knows the boundaries
WITHOUT_LANES = {"windows over repeated edges"}


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in ("scalar", "one column", "halves")])
def test_kernels_have_vectors(name):
    """Of the right results, too, as NumPy and the program as it was written have them."""
    program = PROGRAMS[name]
    sch = scheduled(program, "native")
    assert "T.vectorized" in sch.mod.script() or name in WITHOUT_LANES
    check_results(program, [tw.compile(sch)], seed=1)


def with_all_that_it_makes(*tensors):
    """The function of these tensors, with what lies between them among its parameters."""
    given = list(tensors)
    for tensor in given:
        given += [made for made in tensor.op.input_tensors if not any(made is other for other in given)]
    return te.create_prim_func(given[::-1])


def narrow_of_what_is_made():
    a, b = te.placeholder((96, 50), name="A"), te.placeholder((3, 96), name="B")
    axis = te.reduce_axis((0, 96), name="k")
    doubled = te.compute((96, 50), lambda k, i: a[k, i] + a[k, i], name="D")
    return te.compute((50, 3), lambda i, j: te.sum(doubled[axis, i] * b[j, axis], axis), name="C")


SEEN = {
    "narrow product": [narrow_of_what_is_made()],
    "convolution": formulas.conv2d_nhwc(1, 10, 12, 6, 20, 3, 1, 1),
    "channels first": formulas.conv2d_nchw(1, 9, 11, 6, 17, 3, 3, 1, 1),
    "strided": formulas.conv2d_nchw(1, 12, 12, 6, 17, 3, 3, 2, 1),
    "bytes": formulas.conv2d_nhwc(1, 8, 8, 8, 24, 3, 1, 1, 1, 1, "int8", "int32"),
    "transposed": formulas.conv2d_transpose_nhwc(1, 6, 6, 5, 18, 4, 2, 1),
    "softmax": formulas.softmax_mn(19, 37),
}


@pytest.mark.parametrize("name", SEEN)
@pytest.mark.parametrize("target", TARGETS)
def test_what_callers_pass_lies_as_they_say(name, target):
    program = with_all_that_it_makes(SEEN[name][-1])
    sch = scheduled(program, target)
    for parameter, after in zip(program.params, sch.mod["main"].params, strict=True):
        before, now = program.buffer_map[parameter], sch.mod["main"].buffer_map[after]
        assert [int(n) for n in before.shape] == [int(n) for n in now.shape]
    sch.verify()


def some_program(random):
    """Of a kind and of sizes that a test draws: mostly odd ones, tiny ones, long and thin ones."""
    size = lambda most=24: random.choice([1, 2, 3, random.randint(1, most), random.randint(most, 2 * most)])  # noqa: E731
    filters, channels, pixels = size(), size(8), random.randint(5, 9)
    kinds = [
        lambda: product(size(), size(40), size(), batch=random.choice([1, 1, 3]), turned=random.random() < 0.5),
        lambda: product(size(), size(40), size(), random.choice(["float64", "float16", "int32", "int8"])),
        lambda: bytes_product(size(), 16 * random.randint(1, 5), 4 * size(8), random.choice(["uint8", "int8"])),
        lambda: bytes_product(size(), size(90), size(), random.choice(["uint8", "int8"]), random.random() < 0.5),
        lambda: formulas_matmul(size(), size(40), size(), random.choice(["float16", "bfloat16"])),
        lambda: convolution(pixels, channels, filters, random.choice([1, 3]), random.choice([1, 2]), 1, 1, True),
        lambda: transposed_convolution(pixels, channels, filters, *random.choice([(4, 2), (3, 2), (5, 3), (3, 1)])),
        lambda: transposed_in_channels(pixels, channels, filters, *random.choice([(4, 2), (3, 2), (5, 3), (2, 2)])),
        lambda: some_depthwise(random, pixels, filters),
        lambda: softmax(size(), size(50)),
        lambda: norm(size(), size(50)),
        lambda: column_sums(size(), size(300)),
        lambda: windows(random.randint(1, 6), size(40)),
        lambda: vector(size(), size(50)),
        lambda: elementwise(*(size(20) for _ in range(random.randint(1, 3)))),
        lambda: turned_copy(size(40), size(40)),
    ]
    return random.choice(kinds)()


def some_depthwise(random, pixels, filters):
    kernel, stride, dilation = random.choice([2, 3, 5]), random.choice([1, 2]), random.choice([1, 1, 2])
    shape = (1, dilation * kernel + pixels, 2 * pixels + 8, filters, kernel, stride, random.randint(0, 2), dilation)
    image, weight, conv = formulas.depthwise_conv2d_nhwc(*shape)
    if random.random() < 0.5:
        return te.create_prim_func([image, weight, conv])
    relu = te.compute(conv.shape, lambda *i: te.max(conv[i], 0.0), name="relu")
    return te.create_prim_func([image, weight, relu])


def formulas_matmul(n, m, k, narrow):
    return te.create_prim_func(formulas.matmul(n, m, k, narrow, "float32"))


@pytest.mark.parametrize("seed", range(24))
def test_shapes_that_nobody_has_thought_of(seed):
    random = rng.Random(seed)
    program = some_program(random)
    sch = scheduled(program, random.choice([*TARGETS, "native"]), best=random.random() < 0.6, seed=seed)
    sch.verify()
    task = task_of(program)
    given = make_arrays(task, {}, seed)
    expected = {name: array.copy() for name, array in given.items()}
    tw.compile(program, "interpreter")(*expected.values())
    tw.compile(program)(*given.values())
    for parameter in task.parameters:
        one, other = (np.asarray(each[parameter.name], "float64") for each in (given, expected))
        rough = 5e-2 if parameter.dtype == "float16" else 1e-4
        np.testing.assert_allclose(one, other, rtol=rough, atol=rough)


def test_results_of_a_product_stay_in_registers():
    kernel = tw.compile(scheduled(product(128, 128, 64), "native"))
    assert {entry["promoted"] for entry in kernel.report["promotions"]} == {True}


def test_few_columns_have_their_sums_in_lanes_or_a_vector_of_their_own():
    """Where copies that are turned are small, vectors run along the sums; else lanes that no column fills ask for
    nothing, and what all lanes share is loaded once."""
    sch = scheduled(product(512, 3, 512))
    assert sch.get(sch.get_loops("C")[-1]).kind == tw.ir.ForKind.VECTORIZED
    assert sch.get(sch.get_block("C")).iter_vars[-1].iter_type == tw.ir.IterType.COMM_REDUCE
    target = "llvm -mcpu=skylake-avx512 -num-cores=1"
    for columns in (5, 7, 10):
        kernel = tw.compile(product(200, columns, 33), target, schedule="by rules")
        assert "gather" not in kernel.inspect("asm")


def test_long_sums_are_made_in_parts():
    """What the tiles of one part share stays near; a vector that is used once need not, nor what stays near anyway."""
    target = tw.Target("llvm -mcpu=skylake-avx512").with_num_cores(1)
    sch = scheduled(product(64, 64, 1 << 16), target)
    parts = int(sch.get(sch.get_block("C_rf_update")).writes[0].buffer.shape[0].value)
    assert parts > 1 and 16 * 4 * (1 << 16) // parts < target.l2_bytes
    assert {entry["promoted"] for entry in tw.compile(sch, target).report["promotions"]} == {True}
    for other in (product(64, 64, 1024), vector(64, 1 << 16), product(64, 64, 1 << 16, "int32")):
        assert "_rf" not in scheduled(other, target).mod.script()


def test_tails_stay_in_registers():
    kernel = tw.compile(scheduled(product(127, 131, 64), "native"))
    assert all(entry["promoted"] for entry in kernel.report["promotions"])


def test_padding_that_is_used_a_few_times_is_made_where_it_is_used():
    sch = scheduled(te.create_prim_func(formulas.depthwise_conv2d_nhwc(1, 24, 24, 32, 3, 1, 1)))
    assert len(sch.get_loops("PadInput")) == len(sch.get_loops("depth_conv2d_nhwc_local"))  # of one tile
    first = sch.get(sch.get_loops("PadInput")[0]).loop_var
    assert first.same_as(sch.get(sch.get_loops("depth_conv2d_nhwc_update")[0]).loop_var)
    dense = scheduled(convolution(8, 16, 32))
    assert not dense.get(dense.get_loops("padded")[0]).loop_var.same_as(
        dense.get(dense.get_loops("conv_update")[0]).loop_var
    )


def test_what_windows_of_a_tile_share_is_loaded_once():
    """24 elements, not 9 for each of 8 results; 9 weights; what lies outside of the image is no load at all."""
    program = te.create_prim_func(formulas.depthwise_conv2d_nhwc(1, 64, 64, 16, 3, 1, 1))
    text = tw.compile(scheduled(program, TARGETS[0]), TARGETS[0]).inspect("asm")
    inside = re.findall(r"vfmadd\w+ps", text)
    assert len(inside) >= 8 * 9
    loads = re.findall(r"vmovups\t[^,]*\(%r[^,]*, %zmm", text)
    assert len(loads) <= len(inside) / 2


def test_small_work_wakes_no_other_threads():
    target = "llvm -mcpu=skylake-avx512 -num-cores=4"
    for small, large in ((product(24, 40, 20), product(128, 128, 64)), (elementwise(20, 64), elementwise(999, 64))):
        assert "T.parallel" not in scheduled(small, target).mod.script()
        assert "T.parallel" in scheduled(large, target).mod.script()


def test_the_epilogue_is_computed_on_the_tile():
    script = scheduled(convolution(8, 16, 32, epilogue=True)).mod.script()
    assert 'conv_local = T.alloc_buffer((1, 8, 8, 32), scope="local")' in script and "biased" not in script
    assert "conv = " not in script


def test_what_a_product_shares_with_other_blocks_is_copied_for_the_product_alone():
    a, b = te.placeholder((143, 96), name="A"), te.placeholder((211, 96), name="B")
    r, s, k = (te.reduce_axis((0, 96), name=name) for name in "rsk")
    of_rows = te.compute((143,), lambda i: te.sum(a[i, r] * a[i, r], axis=[r]), name="of_rows")
    of_columns = te.compute((211,), lambda j: te.sum(b[j, s] * b[j, s], axis=[s]), name="of_columns")
    products = te.compute((143, 211), lambda i, j: te.sum(a[i, k] * b[j, k], axis=[k]), name="products")
    every = te.compute((143, 211), lambda i, j: products[i, j] * te.rsqrt(of_rows[i] * of_columns[j]), name="every")
    sch = scheduled(te.create_prim_func([a, b, every]))
    sch.verify()
    text = sch.mod.script()
    # The copy's vectors lie side by side, and its layout is nobody else's business.
    sums = text[text.index('T.block("of_columns")') :]
    assert "T.reads(B[" in sums[: sums.index("T.writes")]
    assert "B_global = T.alloc_buffer((96, 211)" in text
    # What all rows share is computed once, before them, and tiles stay in registers.
    assert len(sch.get_loops("of_columns")) == 2
    assert "products_local" in text


def test_steps_of_a_softmax_run_row_by_row():
    sch = scheduled(softmax(16, 64))
    (loop,) = {sch.get(sch.get_loops(block)[0]).loop_var for block in sch.get_child_blocks(sch.get_block("root"))}
    assert sch.get(sch.get_loops("top")[0]).kind == tw.ir.ForKind.SERIAL and loop is not None
    assert "T.parallel" in scheduled(softmax(512, 64)).mod.script()


@pytest.mark.parametrize("target", TARGETS)
def test_tiles_fit_the_registers(target):
    chosen = tw.Target(target)
    for program in (product(100, 100, 100), convolution(14, 32, 64), depthwise(20, 32)):
        sch = tw.Schedule(program)
        for block in sch.get_child_blocks(sch.get_block("root")):
            facts = block_info(sch, block)
            if facts is None or not facts.is_contraction():
                continue
            tiles = register_tiles(facts, chosen)
            assert tiles
            for tile in tiles:
                sums = tile.vectors * math.prod(steps for _, steps in tile.rows)
                assert sums + tile.vectors + 1 <= chosen.vector_registers
                assert tile.lanes * 32 == chosen.vector_bits
            assert list(tiles) == sorted(tiles, key=lambda tile: tile.cycles)


def test_columns_of_a_group_stay_in_it():
    """An index that moves every 16 columns is the same for all lanes."""
    sch = tw.Schedule(convolution(9, 8, 64, groups=4))
    facts = block_info(sch, sch.get_block("conv"))
    assert facts.periods[3] == 16
    assert {tile.columns for tile in register_tiles(facts, tw.Target(TARGETS[0]))} == {16}


def test_what_it_does_not_know_stays():
    from tilewright.script import tir as T

    @T.prim_func
    def scan(A: T.Buffer((16,)), B: T.Buffer((16,))):
        for i in range(16):
            with T.block("B"):
                vi = T.axis.opaque(16, i)
                T.reads(A[vi], B[vi - 1])
                T.writes(B[vi])
                if vi == 0:
                    B[vi] = A[vi]
                else:
                    B[vi] = B[vi - 1] + A[vi]

    assert tw.ir.structural_equal(scheduled(scan).mod, tw.Schedule(scan).mod)


def test_tuning_needs_no_space(tmp_path):
    program = product(48, 64, 32)
    first = tw.tune(program, trials=4, database=tmp_path / "db", progress=None)
    assert first.record is not None and first.progress.failures == {}
    again = tw.tune(program, trials=4, database=tmp_path / "db", progress=None)
    assert again.progress.earlier == 4
    kernel = tw.compile(program, database=tmp_path / "db")
    a, b = np.random.default_rng(0).random((1, 48, 32), "float32"), np.ones((1, 32, 64), "float32")
    np.testing.assert_allclose(kernel(a, b), a @ b, rtol=1e-5)


def test_the_first_candidate_is_the_one_the_model_expects_most_of():
    program = product(48, 64, 32)
    result = tw.tune(program, trials=1, progress=None)
    target = str(tw.Target("native").with_num_cores(1))
    tw.ir.assert_structural_equal(result.schedule.mod, scheduled(program, target).mod)


@pytest.mark.parametrize("name", OPEN_PROGRAMS)
def test_one_kernel_is_right_for_all_sizes(name):
    program = OPEN_PROGRAMS[name]
    kernel, written = tw.compile(program), tw.compile(program, schedule="as written")
    assert kernel.schedule == "by rules"
    assert re.search(r"float32x|T\.Ramp|:.* \+ (16|32|64)\]", kernel.inspect("tir"))
    buffers = [program.buffer_map[parameter] for parameter in program.params]
    random = np.random.default_rng(0)
    for n, m, k in [(1, 1, 1), (3, 2, 5), (16, 64, 8), (14, 32, 0), (0, 5, 7), (33, 65, 17), (100, 130, 50)]:
        sizes = {"n": n, "m": m, "k": k}
        shapes = [[sizes[e.name] if isinstance(e, tw.ir.Var) else int(e.value) for e in b.shape] for b in buffers]
        given = [random.random(shape, "float32") for shape in shapes]
        expected = [array.copy() for array in given]
        kernel(*given)
        written(*expected)
        for one, other in zip(given, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_a_tile_of_a_product_of_open_sizes_is_in_registers():
    kernel = tw.compile(open_product())
    assert True in {entry["promoted"] for entry in kernel.report["promotions"]}


def test_windows_of_open_images_are_in_registers_and_compile_to_little():
    """Tiles of rows and columns, whose loops are fused with that over the images."""
    n, h, w, c = (te.var(name, "int32") for name in "nhwc")
    x, taps = te.placeholder((n, h + 2, w + 2, c), name="X"), te.placeholder((3, 3, c), name="W")
    i, j = te.reduce_axis((0, 3), name="i"), te.reduce_axis((0, 3), name="j")
    out = te.compute((n, h, w, c), lambda b, y, x_, f: te.sum(x[b, y + i, x_ + j, f] * taps[i, j, f], axis=[i, j]))
    kernel = tw.compile(te.create_prim_func([x, taps, out]), schedule="by rules")
    assert True in {entry["promoted"] for entry in kernel.report["promotions"]}
    assert not kernel.notes
    assert len(kernel.inspect("asm").splitlines()) < 10000
    random = np.random.default_rng(0)
    for images, rows, columns, channels in [(1, 1, 1, 1), (2, 3, 5, 17), (3, 4, 9, 32), (0, 2, 2, 2), (1, 7, 4, 40)]:
        given = random.random((images, rows + 2, columns + 2, channels), "float32")
        weights = random.random((3, 3, channels), "float32")
        found = np.full((images, rows, columns, channels), 7, "float32")
        kernel(given, weights, found)
        windows = np.lib.stride_tricks.sliding_window_view(given, (3, 3), axis=(1, 2))
        np.testing.assert_allclose(found, np.einsum("nyxcij,ijc->nyxc", windows, weights), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("channels_first", [False, True])
def test_threads_share_the_rows_of_open_images(channels_first):
    """There may be one image only."""
    n, h, w = (te.var(name, "int32") for name in "nhw")
    shapes = ((n, 16, h + 2, w + 2), (32, 16, 3, 3)) if channels_first else ((n, h + 2, w + 2, 16), (3, 3, 16, 32))
    x, taps = (te.placeholder(shape, name=name) for shape, name in zip(shapes, "XW", strict=True))
    i, j, r = te.reduce_axis((0, 3)), te.reduce_axis((0, 3)), te.reduce_axis((0, 16))
    if channels_first:
        out = te.compute((n, 32, h, w), lambda b, f, y, z: te.sum(x[b, r, y + i, z + j] * taps[f, r, i, j], [r, i, j]))
    else:
        out = te.compute((n, h, w, 32), lambda b, y, z, f: te.sum(x[b, y + i, z + j, r] * taps[i, j, r, f], [r, i, j]))
    kernel = tw.compile(te.create_prim_func([x, taps, out]), tw.Target("native").with_num_cores(2), schedule="by rules")
    assert re.search(r"T\.parallel\((h \* n|n \* h|n \* 4)\)", kernel.inspect("tir"))
    assert not kernel.notes, "the iterations are proved to be independent"
    random = np.random.default_rng(0)
    for images, rows, columns in [(1, 1, 1), (2, 3, 35), (0, 4, 4), (1, 40, 17)]:
        taken, weights = (
            random.random((images, rows + 2, columns + 2, 16), "float32"),
            random.random((3, 3, 16, 32), "float32"),
        )
        windows = np.lib.stride_tricks.sliding_window_view(taken, (3, 3), axis=(1, 2))
        expected = np.einsum("nyxcij,ijcf->nyxf", windows, weights)
        if channels_first:
            taken, weights = taken.transpose(0, 3, 1, 2).copy(), weights.transpose(3, 2, 0, 1).copy()
            expected = expected.transpose(0, 3, 1, 2)
        found = np.full(expected.shape, 7, "float32")
        kernel(taken, weights, found)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("left", ["uint8", "int8"])
@pytest.mark.parametrize("target", ["native", "llvm -mcpu=x86-64-v3"])
def test_bytes_take_the_instructions_made_for_them(left, target):
    """At the ends of what bytes hold, and with a tail of rows."""
    sch = scheduled(bytes_product(29, 64, 20, left), target)
    assert re.search(r"T.call_llvm_pure_intrin\(.*(vpdpbusd|pmadd)", sch.mod.script())
    kernel = tw.compile(sch, target)
    assert {entry["promoted"] for entry in kernel.report["promotions"]} == {True}
    least, most = np.iinfo(left).min, np.iinfo(left).max
    random = np.random.default_rng(0)
    for a in (np.full((29, 20), least), np.full((29, 20), most), random.integers(least, most + 1, (29, 20))):
        for b in (np.full((20, 64), -128), np.full((20, 64), 127), random.integers(-128, 128, (20, 64))):
            np.testing.assert_array_equal(kernel(a.astype(left), b.astype("int8")), a @ b)


@pytest.mark.parametrize("types", [("uint8", "int8"), ("int8", "int8"), ("bfloat16", "float32")])
def test_products_that_are_no_multiple_of_an_instruction_are_rounded_up(types):
    narrow, wide = types
    if narrow == "bfloat16":
        program = te.create_prim_func(formulas.matmul(29, 100, 19, narrow, wide))
    else:
        program = bytes_product(29, 100, 19, narrow)
    kernel = tw.compile(scheduled(program, "llvm -mcpu=znver4 -num-cores=1"), "llvm -mcpu=znver4 -num-cores=1")
    assert {entry["promoted"] for entry in kernel.report["promotions"]} == {True}
    assembly = kernel.inspect("asm")
    assert len(re.findall("vdpbf16ps" if narrow == "bfloat16" else "vpdpbusd", assembly)) >= 8


@pytest.mark.parametrize(
    "types", [("int8", "int8", "int32"), ("uint8", "int8", "int32"), ("bfloat16",) * 2 + ("float32",)]
)
@pytest.mark.parametrize("turned", [True, False])
def test_a_matrix_is_not_packed_for_a_few_rows(types, turned):
    target = tw.Target("llvm -mcpu=sapphirerapids -num-cores=1")
    left, right, result = types

    def schedule(rows):
        a = te.placeholder((rows, 512), left, name="A")
        b = te.placeholder((320, 512) if turned else (512, 320), right, name="B")
        r = te.reduce_axis((0, 512), name="k")
        term = lambda i, j: a[i, r].astype(result) * (b[j, r] if turned else b[r, j]).astype(result)  # noqa: E731
        program = te.create_prim_func([a, b, te.compute((rows, 320), lambda i, j: te.sum(term(i, j), axis=[r]))])
        return scheduled(program, target)

    assert "B_global" not in schedule(1).mod.script()
    assert "B_global" not in schedule(2).mod.script()
    assert "B_global" in schedule(64).mod.script()
    # The matrix on the left, times a vector.
    a, x = te.placeholder((320, 512), left, name="A"), te.placeholder((512,), right, name="x")
    r = te.reduce_axis((0, 512), name="k")
    sums = te.compute((320,), lambda i: te.sum(a[i, r].astype(result) * x[r].astype(result), axis=[r]))
    assert "A_global" not in scheduled(te.create_prim_func([a, x, sums]), target).mod.script()


def test_lines_that_are_cut_off_run_as_one():
    """A vector for each four of 77 elements, not five with a tail for each line."""
    script = scheduled(elementwise(9, 7, 77)).mod.script()
    assert "T.vectorized(64)" in script and "T.where" in script


@pytest.mark.parametrize("filters", [32, 3])
def test_a_transposed_convolution_does_not_multiply_the_zeros_between_its_pixels(filters):
    """Each of its phases is a tile in registers, and the taps that meet zeros are left out, outside of all loops over
    channels and results."""
    sch = scheduled(transposed_convolution(16, 8, filters), "native")
    kernel = tw.compile(sch)
    assert {entry["promoted"] for entry in kernel.report["promotions"]} == {True}
    text = kernel.inspect("tir")
    assert len(re.findall(r"if .* % 2 == 0", text)) <= 2
    assert re.search(r"if .* % 2 == 0.*:\n +for ", text)


@pytest.mark.parametrize("kernel", [3, 4])
def test_a_transposed_convolution_with_channels_first_has_vectors_across_channels(kernel):
    """Not along the results of a line, of which the condition holds for every other one; 17 filters are cut off."""
    sch = scheduled(transposed_in_channels(13, 12, 17, kernel, 2))
    kernel = tw.compile(sch, TARGETS[0])
    assert {entry["promoted"] for entry in kernel.report["promotions"]} == {True}
    assert re.search(r"if .* % 2 == 0.*:\n +for ", kernel.inspect("tir"))
    update = sch.get(sch.get_loops(sch.get_block("C_update"))[-1])
    assert (update.kind, int(update.extent)) == (tw.ir.ForKind.VECTORIZED, 32)


def test_an_operand_of_a_single_group_of_columns_is_packed_before_all_tiles():
    sch = scheduled(transposed_in_channels(13, 12, 32, 3, 2))
    copy = sch.get_block("W_global")
    assert sch.get(sch.get_loops(copy)[-1]).kind == tw.ir.ForKind.VECTORIZED


def test_open_programs():
    program = product(8, 8, 8)
    assert is_unscheduled(program)
    assert not is_unscheduled(scheduled(program).mod.functions["main"])


def test_what_a_block_says_about_what_it_computes_is_no_schedule():
    program = te.create_prim_func(formulas.softmax_mn(20, 64))
    assert any(block.annotations for block in blocks_of(program))
    assert is_unscheduled(program)
    assert tw.compile(program).schedule == "by rules"
    asked = tw.Schedule(program)
    asked.annotate(asked.get_output_blocks("root")[0], "meta_schedule.parallel", 4)
    assert not is_unscheduled(asked.mod.functions["main"])


def blocks_of(program):
    found = []
    tw._core.visit(program.body, lambda node: found.append(node) if isinstance(node, tw.ir.Block) else None)
    return found


def test_compile_by_rules():
    program = product(70, 90, 50)
    written, ruled = tw.compile(program, schedule="as written"), tw.compile(program)
    assert (written.schedule, ruled.schedule) == ("as written", "by rules")
    assert "vectorized" not in written.inspect("tir", after="lower_init_blocks")
    assert ruled.inspect("tir") == tw.compile(program, schedule="by rules").inspect("tir")
    assert pickle.loads(pickle.dumps(ruled)).schedule == "by rules"
    a, b = (
        np.random.default_rng(0).random((1, 70, 50), "float32"),
        np.random.default_rng(1).random((1, 50, 90), "float32"),
    )
    np.testing.assert_allclose(ruled(a, b), a @ b, rtol=1e-5)
    np.testing.assert_allclose(written(a, b), ruled(a, b), rtol=1e-5)


def test_the_steps_by_rules_can_be_read_and_taken_again():
    program = product(70, 90, 50)
    ruled = tw.compile(program)
    sch = tw.Schedule(program)
    taken = {}
    exec(ruled.inspect("schedule"), taken)
    taken["apply_trace"](sch)
    # But for the name, which a function of a schedule has from it.
    bodies = [kernel.inspect("tir").split("tir.noalias", 1)[1] for kernel in (tw.compile(sch), ruled)]
    assert bodies[0] == bodies[1]
    assert tw.compile(program, schedule="as written").inspect("schedule") == ""
    own = tw.Schedule(program)
    own.parallel(own.get_loops(own.get_block("C"))[0])
    kernel = tw.compile(own)
    assert kernel.schedule == "as written" and "sch.parallel" in kernel.inspect("schedule")
    assert "sch.parallel" in pickle.loads(pickle.dumps(kernel)).inspect("schedule")
    module = tw.ir.Module({name: product(70, 90, 50).with_attr("global_symbol", name) for name in ("first", "second")})
    steps = tw.compile(module, schedule="by rules").inspect("schedule")
    assert "# first" in steps and "# second" in steps
    assert steps.count("sch.cache_write") == 2 * ruled.inspect("schedule").count("sch.cache_write")


def test_blocks_that_write_nothing_are_left_alone():
    sch = tw.Schedule(softmax(8, 40))
    blocks = sch.get_child_blocks("root")
    loop = sch.get_loops(blocks[0])[0]
    sch.prefetch_at(loop, blocks[0], 0, 1)
    cpu.schedule_for_cpu(sch, tw.Target(TARGETS[0]), best=True)
    assert sch.verify()


def test_loops_as_long_as_data_say():
    @T.prim_func
    def func(A: T.Buffer((4,)), I: T.Buffer((2,), "int32"), D: T.Buffer((1,))):
        with T.block("B"):
            for k in range(I[1]):
                A[k] = A[k] + T.float32(1)
        with T.block("C"):
            D[0] = T.float32(7)

    sch = tw.Schedule(func)
    sch.cache_inplace("B", "A", "global")
    cpu.schedule_for_cpu(sch, tw.Target("native"), best=True)
    a, d = np.zeros(4, "float32"), np.zeros(1, "float32")
    tw.compile(sch, schedule="as written")(a, np.array([0, 3], "int32"), d)
    assert [*a, *d] == [1, 1, 1, 0, 7]


def test_what_sums_nothing_has_no_partial_sums() -> None:
    """As the sum of one step is left, whose axis is gone."""
    x = te.placeholder((64, 64), name="x")
    sch = tw.Schedule(te.create_prim_func([x, te.compute((64, 64), lambda i, j: x[i, j] + 1.0, name="y")]))
    facts = block_info(sch, sch.get_block("y"))
    assert facts is not None and vectorized_result_axis(facts, tw.Target("llvm -mcpu=haswell")) is None


@pytest.mark.parametrize("group", [2, 8, 12, 24, 32, 40, 64, 100])
@pytest.mark.parametrize("shape", [(3, 500), (40, 256), (1000,)])
def test_a_scale_for_each_group_of_neighbors(shape, group):
    """Quantized by blocks: where a group fills a vector, its scale is loaded once."""
    w = te.placeholder(shape, "int8", name="W")
    s = te.placeholder((*shape[:-1], -(-shape[-1] // group)), name="s")
    y = te.compute(shape, lambda *i: w[i].astype("float32") * s[(*i[:-1], i[-1] // group)], name="Y")
    program = te.create_prim_func([w, s, y])
    sch = scheduled(program)
    sch.verify()
    arrays = make_arrays(task_of(program), {}, 0)
    tw.compile(program)(*arrays.values())
    wanted = arrays["W"] * np.repeat(arrays["s"], group, axis=-1)[..., : shape[-1]]
    np.testing.assert_allclose(arrays["Y"], wanted, rtol=1e-6)
    if group == 32:
        assert "T.Broadcast(s" in tw.compile(sch, TARGETS[0]).inspect("tir")
