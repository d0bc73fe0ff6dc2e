"""What postprocessors make of schedules; what they changed is compared with the original program in the interpreter."""

import pytest

import tilewright as tw
from tilewright import _core
from tilewright import meta_schedule as ms
from tilewright.script import from_source
from tilewright.script import tir as T
from tilewright.testing import workloads

GPU = "nvidia/geforce-rtx-3070"


def loops_of(sch, block):
    return sch.get_loops(sch.get_block(block))


def kinds_of(sch, block):
    return [sch.get(loop).kind.name for loop in loops_of(sch, block)]


def tags_of(sch):
    return [str(sch.get(loop).thread_binding.thread_tag) for loop in loops_of(sch, "B")]


def initialized(postproc, sch, target):
    space = ms.ScheduleFn(lambda sch: sch)
    space.schedule_rules, space.postprocs, space.mutators = [], [postproc], []
    ms.TuneContext(sch.mod, target=target, space_generator=space)
    return postproc


def tiled_product(n, m, k, seed):
    sch = tw.Schedule(workloads.matmul_relu(n, m, k), seed=seed)
    block = sch.get_block("C")
    i, j, l = sch.get_loops(block)
    i_tiles = sch.split(i, sch.sample_perfect_tile(i, n=4, max_innermost_factor=64))
    j_tiles = sch.split(j, sch.sample_perfect_tile(j, n=4, max_innermost_factor=64))
    l_tiles = sch.split(l, sch.sample_perfect_tile(l, n=2, max_innermost_factor=64))
    order = [i_tiles[0], j_tiles[0], i_tiles[1], j_tiles[1], l_tiles[0], i_tiles[2], j_tiles[2], l_tiles[1]]
    sch.reorder(*order, i_tiles[3], j_tiles[3])
    root = sch.get_block("root")
    sch.annotate(root, "meta_schedule.parallel", 8)
    sch.annotate(root, "meta_schedule.vectorize", 16)
    sch.annotate(root, "meta_schedule.unroll_explicit", 16)
    sch.enter_postproc()
    return sch


@pytest.mark.parametrize("shape", [(8, 16, 12), (7, 9, 5), (1, 33, 1), (6, 1, 30)])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_llvm_defaults_keep_the_meaning(shape, seed):
    sch = tiled_product(*shape, seed)
    for postproc in ms.Postproc.defaults("llvm"):
        assert postproc.apply(sch)
    assert "meta_schedule" not in str(sch.mod)
    assert sch.verify()
    again = tw.Schedule(sch.original)
    sch.trace.apply_to_schedule(again)
    assert tw.ir.structural_equal(again.mod, sch.mod)


def test_dynamic_loops_are_refused():
    @T.prim_func
    def triangle(A: T.Buffer((8, 8)), B: T.Buffer((8,))):
        for i in range(8):
            for k in range(i):
                with T.block("B"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    with T.init():
                        B[vi] = T.float32(0)
                    B[vi] = B[vi] + A[vi, vk]

    assert not ms.DisallowDynamicLoop().apply(tw.Schedule(triangle))
    assert ms.DisallowDynamicLoop().apply(tw.Schedule(workloads.matmul(2, 2, 2)))


def annotated(func, **wishes):
    sch = tw.Schedule(func)
    for key, value in wishes.items():
        sch.annotate(sch.get_block("root"), f"meta_schedule.{key}", value)
    return sch


def copy(*shape):
    @T.prim_func
    def rows(A: T.Buffer(shape), B: T.Buffer(shape)):
        for i, j in T.grid(*shape):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj]

    @T.prim_func
    def transposed(A: T.Buffer(shape), B: T.Buffer(shape[::-1])):
        for i, j in T.grid(*shape):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vj, vi] = A[vi, vj]

    return rows, transposed


def test_parallel_and_vectorized_are_one_loop_where_memory_has_no_gaps():
    rows, _ = copy(12, 40)
    sch = annotated(rows, parallel=8, vectorize=32)
    assert ms.RewriteParallelVectorizeUnroll().apply(sch)
    assert kinds_of(sch, "B") == ["PARALLEL", "VECTORIZED"]
    assert [sch.get(loop).extent.value for loop in loops_of(sch, "B")] == [15, 32]
    assert sch.verify()

    _, transposed = copy(12, 40)
    sch = annotated(transposed, parallel=8, vectorize=64)
    assert ms.RewriteParallelVectorizeUnroll().apply(sch)
    assert kinds_of(sch, "B") == ["PARALLEL", "VECTORIZED"]
    assert [sch.get(loop).extent.value for loop in loops_of(sch, "B")] == [12, 40]
    assert sch.verify()


def test_inner_loops_are_vectorized_up_to_the_lanes():
    rows, _ = copy(6, 5)
    sch = annotated(rows, vectorize=8)
    assert ms.RewriteParallelVectorizeUnroll().apply(sch)
    assert kinds_of(sch, "B") == ["SERIAL", "VECTORIZED"]
    sch = annotated(rows, vectorize=4)
    assert ms.RewriteParallelVectorizeUnroll().apply(sch)
    assert kinds_of(sch, "B") == ["SERIAL", "SERIAL"]


def test_only_reductions_are_unrolled():
    sch = annotated(workloads.matmul_relu(4, 4, 4), unroll_implicit=64)
    assert ms.RewriteParallelVectorizeUnroll().apply(sch)
    first, *_ = loops_of(sch, "C")
    assert dict(sch.get(first).annotations) == {"pragma_auto_unroll_max_step": 64, "pragma_unroll_explicit": 0}
    assert not sch.get(loops_of(sch, "D")[0]).annotations


def test_loops_whose_iterations_depend_stay_serial():
    @T.prim_func
    def running_sum(A: T.Buffer((16,)), B: T.Buffer((17,))):
        for i in range(16):
            with T.block("B"):
                vi = T.axis.spatial(16, i)
                B[vi + 1] = B[vi] + A[vi]

    sch = annotated(running_sum, parallel=8, vectorize=8)
    assert ms.RewriteParallelVectorizeUnroll().apply(sch)
    assert kinds_of(sch, "B") == ["SERIAL"]


def test_reductions_get_init_blocks():
    sch = tw.Schedule(workloads.matmul(5, 6, 7))
    i, j, l = loops_of(sch, "C")
    sch.reorder(i, l, j)
    assert ms.RewriteReductionBlock().apply(sch)
    assert len(loops_of(sch, "C_init")) == 2
    assert len(loops_of(sch, "C_update")) == 3
    assert sch.verify()


def test_reductions_over_threads_keep_their_init():
    sch = tw.Schedule(workloads.matmul(4, 4, 8))
    i, _, l = loops_of(sch, "C")
    sch.bind(i, "blockIdx.x")
    sch.bind(l, "threadIdx.x")
    assert ms.RewriteReductionBlock().apply(sch)
    assert sch.get(sch.get_block("C")).init is not None


def test_what_is_tensorized_moves_to_the_update():
    sch = tw.Schedule(workloads.matmul(4, 4, 4))
    block = sch.get_block("C")
    sch.annotate(block, "meta_schedule.auto_tensorize", "product")
    sch.annotate(block, "meta_schedule.auto_tensorize_init", "zero")
    assert ms.RewriteReductionBlock().apply(sch)
    assert dict(sch.get(sch.get_block("C_init")).annotations) == {"meta_schedule.auto_tensorize": "zero"}
    assert dict(sch.get(sch.get_block("C_update")).annotations) == {"meta_schedule.auto_tensorize": "product"}


def test_blocks_that_do_not_fit_an_intrinsic_stay(caplog):
    postproc = ms.RewriteTensorize()
    for _ in range(2):
        sch = tw.Schedule(workloads.matmul(4, 4, 4))
        sch.annotate(sch.get_block("C"), "meta_schedule.auto_tensorize", "dot_16x4_vnni")
        assert postproc.apply(sch)
        assert not sch.get(sch.get_block("C")).annotations
        assert sch.verify()
    told = "RewriteTensorize could not use 'dot_16x4_vnni' in block 'C', which stays as it is: "
    assert caplog.text.count(told) == 1  # of all candidates
    initialized(postproc, sch, "llvm")
    sch.annotate(sch.get_block("C"), "meta_schedule.auto_tensorize", "dot_16x4_vnni")
    assert postproc.apply(sch) and caplog.text.count(told) == 2  # of each task


def free_layout(n, m, k, parameter=1):
    return workloads.matmul(n, m, k).with_attr("layout_free_buffers", [parameter])


@pytest.mark.parametrize("shape", [(4, 12, 8), (3, 5, 7), (1, 1, 6)])
def test_free_parameters_are_read_in_order(shape):
    sch = tw.Schedule(free_layout(*shape), seed=5)
    i, j, l = loops_of(sch, "C")
    j_tiles = sch.split(j, sch.sample_perfect_tile(j, n=2))
    l_tiles = sch.split(l, sch.sample_perfect_tile(l, n=2))
    sch.reorder(j_tiles[0], i, l_tiles[0], j_tiles[1], l_tiles[1])
    assert ms.RewriteLayout().apply(sch)
    marked = [block for block in sch.get_child_blocks(sch.get_block("root")) if sch.get(block).annotations]
    assert [dict(sch.get(block).annotations) for block in marked] == [{"meta_schedule.layout_rewrite_preproc": True}]
    assert sch.verify()


def test_layouts_of_what_is_read_twice_stay():
    @T.prim_func
    def symmetric(A: T.Buffer((4, 4)), B: T.Buffer((4, 4))):
        T.func_attr({"layout_free_buffers": [0]})
        for i, j in T.grid(4, 4):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] + A[vj, vi]

    sch = tw.Schedule(symmetric)
    before = sch.mod
    assert ms.RewriteLayout().apply(sch)
    assert tw.ir.structural_equal(before, sch.mod)


SCALAR = """@T.prim_func
def main(A: T.Buffer((), "int32"), C: T.Buffer((8,), "int32")):
    T.func_attr({"layout_free_buffers": [0]})
    for i in range(8):
        with T.block("C"):
            v = T.axis.spatial(8, i)
            C[v] = A[()] + v
"""
COLUMN = """@T.prim_func
def main(A: T.Buffer((8, 4), "int32"), C: T.Buffer((8,), "int32")):
    T.func_attr({"layout_free_buffers": [0]})
    for i in range(8):
        with T.block("C"):
            v = T.axis.spatial(8, i)
            C[v] = A[v, 0] + 1
"""
ROWS = """@T.prim_func
def main(A: T.Buffer((8, 4), "int32"), C: T.Buffer((4, 4), "int32")):
    T.func_attr({"layout_free_buffers": [0]})
    for j, i in T.grid(4, 4):
        with T.block("C"):
            u, v = T.axis.remap("SS", [j, i])
            C[v, u] = A[v, u] + 1
"""
IN_PLACE = """@T.prim_func
def main(A: T.Buffer((8, 4), "int32")):
    T.func_attr({"layout_free_buffers": [0]})
    for j, i in T.grid(4, 8):
        with T.block("A"):
            u, v = T.axis.remap("SS", [j, i])
            A[v, u] = A[v, u] + 1
"""


@pytest.mark.parametrize("source", [SCALAR, COLUMN, ROWS, IN_PLACE], ids=["scalar", "column", "rows", "in place"])
def test_layouts_that_cannot_change_stay(source):
    """No dimensions, parts that nothing reads, or a buffer that cannot be copied: no reason to refuse the candidate."""
    sch = tw.Schedule(tw.script.from_source(source))
    before = sch.mod
    assert ms.RewriteLayout().apply(sch)
    assert tw.ir.structural_equal(before, sch.mod)


def test_free_parameters_are_read_in_blocks():
    @T.prim_func
    def bare(A: T.Buffer((4,)), B: T.Buffer((4,)), C: T.Buffer((4,))):
        T.func_attr({"layout_free_buffers": [0]})
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi] + T.float32(1)
            C[i] = A[3 - i]

    with pytest.raises(tw.ScheduleError) as error:
        ms.RewriteLayout().apply(tw.Schedule(bare))
    assert error.value.code == "search/layout"


def shared_product(n=64, vectorize=4, dtype="float32", threads=8):
    sch = tw.Schedule(workloads.matmul(n, n, n, dtype))
    block = sch.get_block("C")
    i, j, l = sch.get_loops(block)
    i0, i1 = sch.split(i, [None, threads])
    l0, l1 = sch.split(l, [None, 16])
    sch.reorder(i0, i1, l0, j, l1)
    sch.bind(i0, "blockIdx.x")
    sch.bind(i1, "threadIdx.x")
    copied = sch.cache_read(block, 0, "shared")
    sch.compute_at(copied, l0, preserve_unit_loops=True)
    sch.fuse(*sch.get_loops(copied)[3:])
    sch.annotate(copied, "meta_schedule.cooperative_fetch", vectorize)
    sch.enter_postproc()
    return sch


def test_threads_fetch_together():
    sch = shared_product()
    assert initialized(ms.RewriteCooperativeFetch(), sch, GPU).apply(sch)
    assert kinds_of(sch, "A_shared")[-3:] == ["SERIAL", "THREAD_BINDING", "VECTORIZED"]
    assert sch.verify()


def test_wide_values_are_fetched_one_by_one():
    sch = shared_product(dtype="float64")
    assert ms.RewriteCooperativeFetch().apply(sch)
    assert kinds_of(sch, "A_shared")[-2:] == ["SERIAL", "THREAD_BINDING"]
    assert sch.verify()


@pytest.mark.parametrize("shape", [(7, 9), (300, 1), (1, 1), (50, 70)])
def test_unbound_blocks_are_bound(shape):
    rows, _ = copy(*shape)
    sch = tw.Schedule(rows)
    assert initialized(ms.RewriteUnboundBlock(), sch, GPU).apply(sch)
    assert tags_of(sch) == ["blockIdx.x", "threadIdx.x"]
    assert sch.verify()


def test_large_loops_keep_a_serial_rest():
    rows, _ = copy(512, 64)
    sch = tw.Schedule(rows)
    assert initialized(ms.RewriteUnboundBlock(max_threadblocks=4), sch, GPU).apply(sch)
    assert [sch.get(loop).extent.value for loop in loops_of(sch, "B")] == [4, 1024, 8]
    assert kinds_of(sch, "B") == ["THREAD_BINDING", "THREAD_BINDING", "SERIAL"]


def test_what_has_threads_gets_blocks():
    rows, _ = copy(16, 8)
    sch = tw.Schedule(rows)
    sch.bind(loops_of(sch, "B")[1], "threadIdx.x")
    assert initialized(ms.RewriteUnboundBlock(), sch, GPU).apply(sch)
    assert tags_of(sch) == ["blockIdx.x", "threadIdx.x"]


def test_a_number_gets_a_loop_of_its_own():
    @T.prim_func
    def number(A: T.Buffer(()), B: T.Buffer(())):
        with T.block("root"), T.block("B"):
            B[()] = A[()] + T.float32(1)

    sch = tw.Schedule(number)
    assert initialized(ms.RewriteUnboundBlock(), sch, GPU).apply(sch)
    assert tags_of(sch) == ["blockIdx.x", "threadIdx.x"]


def test_blocks_without_threads_are_refused():
    rows, _ = copy(16, 8)
    sch = tw.Schedule(rows)
    sch.bind(loops_of(sch, "B")[0], "blockIdx.x")
    with pytest.raises(tw.ScheduleError) as error:
        initialized(ms.RewriteUnboundBlock(), sch, GPU).apply(sch)
    assert error.value.code == "search/bind-block"


@pytest.mark.parametrize("postproc", [ms.RewriteUnboundBlock, ms.VerifyGPUCode])
def test_threads_need_a_target(postproc):
    sch = tw.Schedule(workloads.matmul(2, 2, 2))
    for use in (lambda: postproc().apply(sch), lambda: initialized(postproc(), sch, "llvm")):
        with pytest.raises(tw.ArgumentError) as error:
            use()
        assert error.value.code == "search/no-threads"


def verified(sch):
    return initialized(ms.VerifyGPUCode(), sch, GPU).apply(sch)


def test_gpu_code_of_a_product():
    sch = shared_product()
    assert verified(sch)
    assert not verified(shared_product(n=2048, threads=2048))


def test_shared_memory_has_a_limit():
    def copied(size):
        sch = tw.Schedule(workloads.matmul(4, 4, size))
        block = sch.get_block("C")
        i, j, _ = sch.get_loops(block)
        sch.bind(i, "blockIdx.x")
        sch.bind(j, "threadIdx.x")
        sch.compute_at(sch.cache_read(block, 0, "shared"), j)
        return sch

    assert verified(copied(12288))
    assert not verified(copied(12289))


def stages_in_shared_memory(elements, threads=32, overlap=False):
    """Two stages of a kernel, each with a buffer of its own: the second one copies from the first, or from memory."""

    @T.prim_func
    def main(A: T.Buffer((4, elements), "float32"), B: T.Buffer((4, elements), "float32")):
        for block in T.thread_binding(4, "blockIdx.x"):
            with T.block("tile"):
                vb = T.axis.spatial(4, block)
                first = T.alloc_buffer((elements,), "float32", scope="shared")
                second = T.alloc_buffer((elements,), "float32", scope="shared")
                for thread, k in T.grid(threads, elements // threads):
                    with T.block("load"):
                        v = T.axis.spatial(elements, thread * (elements // threads) + k)
                        first[v] = A[vb, v]
                for thread, k in T.grid(threads, elements // threads):
                    with T.block("store"):
                        v = T.axis.spatial(elements, thread * (elements // threads) + k)
                        B[vb, v] = first[elements - 1 - v]
                for thread, k in T.grid(threads, elements // threads):
                    with T.block("again"):
                        v = T.axis.spatial(elements, thread * (elements // threads) + k)
                        second[v] = B[vb, v] + (first[v] if overlap else T.float32(1))
                for thread, k in T.grid(threads, elements // threads):
                    with T.block("out"):
                        v = T.axis.spatial(elements, thread * (elements // threads) + k)
                        B[vb, v] = second[elements - 1 - v]

    sch = tw.Schedule(main)
    for name in ("load", "store", "again", "out"):
        sch.bind(sch.get_loops(sch.get_block(name))[-2], "threadIdx.x")
    return sch


@pytest.mark.parametrize("overlap", [False, True])
def test_buffers_that_are_never_alive_together_share_memory(overlap):
    """As in the compiled kernel, whose array is as large."""
    most = 49152 // 4 // (2 if overlap else 1)
    fits, exceeds = (stages_in_shared_memory(each, overlap=overlap) for each in (most, most + 32))
    assert verified(fits) and not verified(exceeds)
    lowered = _core.lower(fits.mod, GPU)[0]
    (sizes,) = _core.kernel_sizes(lowered)
    assert sizes["shared_bytes"] == 49152
    with pytest.raises(tw.errors.Error, match="shared memory"):
        _core.lower(exceeds.mod, GPU)


@pytest.mark.parametrize(
    ("inner", "by_registers", "stages", "copies"),
    [
        (None, False, [0, 1], 2),
        (None, True, [0, 0, 1], 2),
        # The inner loop falls into what is before its iterations, in them and behind them.
        ([0, 1], False, [0, 1, 2, 2], 3),
        ([0, 1], True, [0, 0, 0, 1, 1], 2),
        # A list that has neither the statements nor their parts counts as one of statements.
        ([0, 1], False, [0, 1, 2], 2),
    ],
)
def test_pipelines_keep_copies_in_shared_memory(inner, by_registers, stages, copies):
    def pipelined_copies(size):
        sch = tw.Schedule(workloads.matmul(4, 4, 8 * size))
        block = sch.get_block("C")
        i, j, k = sch.get_loops(block)
        sch.bind(i, "blockIdx.x")
        sch.bind(j, "threadIdx.x")
        k_0, k_1, _ = sch.split(k, [2, 4, None])
        copy = sch.cache_read(block, 0, "shared")
        sch.compute_at(copy, k_0)
        if by_registers:
            sch.annotate(copy, "tir.manifest_shared_memory_local_stage", 1)
        if inner:
            sch.annotate(k_1, "software_pipeline_stage", inner)
        sch.annotate(k_0, "software_pipeline_stage", stages)
        return sch

    most = 49152 // (4 * 4 * copies)
    assert verified(pipelined_copies(most))
    assert not verified(pipelined_copies(most + 1))


@pytest.mark.parametrize(("extent", "good"), [(32, True), (16, False)])
def test_axes_of_one_kernel_have_one_extent(extent, good):
    @T.prim_func
    def kernel(A: T.Buffer((8, 32)), B: T.Buffer((8, 32))):
        for b in T.thread_binding(8, thread="blockIdx.x"):
            for t in T.thread_binding(extent, thread="threadIdx.x"):
                for j in range(32 // extent):
                    with T.block("A"):
                        vb = T.axis.spatial(8, b)
                        vj = T.axis.spatial(32, t * (32 // extent) + j)
                        A[vb, vj] = T.float32(1)
            for t in T.thread_binding(32, thread="threadIdx.x"):
                with T.block("B"):
                    vb, vj = T.axis.remap("SS", [b, t])
                    B[vb, vj] = T.float32(2)

    assert verified(tw.Schedule(kernel)) is good


@pytest.mark.parametrize(("axis", "extent", "good"), [("vthread.x", 8, True), ("vthread.x", 16, False)])
def test_virtual_threads_are_few(axis, extent, good):
    rows, _ = copy(16, 16)
    sch = tw.Schedule(rows)
    i, j = loops_of(sch, "B")
    outer, inner = sch.split(i, [None, extent])
    sch.bind(outer, "blockIdx.x")
    sch.bind(inner, axis)
    sch.bind(j, "threadIdx.x")
    assert verified(sch) is good


@pytest.mark.parametrize(("lanes", "good"), [(4, True), (8, False)])
def test_vectors_are_short(lanes, good):
    rows, _ = copy(16, 16)
    sch = tw.Schedule(rows)
    i, j = loops_of(sch, "B")
    outer, inner = sch.split(j, [None, lanes])
    sch.bind(i, "blockIdx.x")
    sch.bind(outer, "threadIdx.x")
    sch.vectorize(inner)
    assert verified(sch) is good


@pytest.mark.parametrize(
    ("threads", "elements", "good"), [(64, 12288, True), (1024, 64, True), (2048, 64, False), (64, 12289, False)]
)
def test_lowered_kernels_are_verified_too(threads, elements, good):
    @T.prim_func
    def kernel(A: T.Buffer((65536,))):
        blocks = T.launch_thread("blockIdx.x", 32)
        thread = T.launch_thread("threadIdx.x", threads)
        shared = T.decl_buffer((elements,), "float32", scope="shared")
        shared[thread % elements] = A[blocks * threads + thread]
        A[blocks * threads + thread] = shared[thread % elements]

    assert verified(tw.Schedule(kernel)) is good


def kernel_with_two_buffers(elements, repeated, pointer=False):
    """The buffers are used one after the other, in a loop, or the second between two uses of the first."""
    use = """
        first[thread] = A[thread]
        A[thread] = first[thread]
        second[thread] = A[thread]
        A[thread] = second[thread]
    """
    through = """
    p: T.handle("float32", "shared") = T.address_of(first[0])
    named = T.decl_buffer((32,), "float32", data=p, scope="shared")
    first[thread] = A[thread]
    second[thread] = A[thread]
    A[thread] = second[thread] + named[thread]
    """
    return from_source(f"""
@T.prim_func
def kernel(A: T.Buffer((64,))):
    blocks = T.launch_thread("blockIdx.x", 1)
    thread = T.launch_thread("threadIdx.x", 32)
    first = T.decl_buffer(({elements},), "float32", scope="shared")
    second = T.decl_buffer(({elements},), "float32", scope="shared")
    turns = T.decl_buffer((1,), "int32", scope="local")
    turns[0] = 0
    {repeated}
        turns[0] = turns[0] + 1
{through if pointer else use}
""")


@pytest.mark.parametrize(
    ("repeated", "pointer", "together"),
    [
        ("if True:", False, False),
        ("for turn in range(2):", False, True),
        ("while turns[0] < 2:", False, True),
        ("if True:", True, True),
    ],
)
def test_buffers_of_loops_and_pointers_are_alive_as_in_the_kernel(repeated, pointer, together):
    most = 49152 // 4 // (2 if together else 1)
    for elements in (most, most + 32):
        kernel = kernel_with_two_buffers(elements, repeated, pointer)
        assert verified(tw.Schedule(kernel)) is (elements == most)
        if elements == most:
            (sizes,) = _core.kernel_sizes(_core.lower(tw.Schedule(kernel).mod, GPU)[0])
            assert sizes["shared_bytes"] == 49152
        else:
            with pytest.raises(tw.errors.Error, match="shared memory"):
                _core.lower(tw.Schedule(kernel).mod, GPU)


@pytest.mark.parametrize(("low", "good"), [(8, True), (16, False)])
def test_the_number_of_threads_is_as_asked_for(low, good):
    rows, _ = copy(16, 8)
    sch = tw.Schedule(rows)
    i, j = loops_of(sch, "B")
    sch.bind(i, "blockIdx.x")
    sch.bind(j, "threadIdx.x")
    block = sch.get_block("B")
    sch.annotate(block, "meta_schedule.thread_extent_low_inclusive", low)
    sch.annotate(block, "meta_schedule.thread_extent_high_inclusive", 1024)
    assert verified(sch) is good


def pipelined(which, shape=(64, 64, 64)):
    sch = tw.Schedule(workloads.matmul(*shape))
    block = sch.get_block("C")
    _, j, _ = sch.get_loops(block)
    sch.compute_at(sch.cache_read(block, which, "global.vtcm"), j)
    sch.annotate(j, "software_pipeline_stage", [0, 1])
    sch.annotate(j, "software_pipeline_order", [0, 1])
    sch.annotate(j, "software_pipeline_async_stages", [0])
    return sch


def test_asynchronous_copies_have_no_gaps():
    assert ms.DisallowAsyncStridedMemCopy().apply(pipelined(0))
    assert not ms.DisallowAsyncStridedMemCopy().apply(pipelined(1))


def test_near_memory_has_a_limit():
    assert ms.VerifyVTCMLimit().apply(pipelined(0))
    assert ms.VerifyVTCMLimit(vtcm_capacity=256).apply(pipelined(0))
    assert not ms.VerifyVTCMLimit(vtcm_capacity=255).apply(pipelined(0))


def test_a_subclass_decides():
    class SmallOnly(ms.Postproc):
        def initialize(self, context):
            self.limit = 100 if str(context.target.kind) == "cuda" else 10

        def apply(self, sch):
            sch.annotate(sch.get_block("root"), "seen", True)
            return all(sch.get(loop).extent.value <= self.limit for loop in loops_of(sch, "C"))

    small, large = tw.Schedule(workloads.matmul(8, 8, 8)), tw.Schedule(workloads.matmul(8, 8, 11))
    rule = initialized(SmallOnly(), small, "llvm")
    assert rule.apply(small)
    assert not rule.apply(large)


def test_an_exception_is_the_callers():
    class Broken(ms.Postproc):
        def apply(self, sch):
            raise KeyError("no")

    class Empty(ms.Postproc):
        pass

    with pytest.raises(KeyError):
        Broken().apply(tw.Schedule(workloads.matmul(2, 2, 2)))
    with pytest.raises(NotImplementedError):
        Empty().apply(tw.Schedule(workloads.matmul(2, 2, 2)))


FIRST, LAST = ["DisallowDynamicLoop", "RewriteParallelVectorizeUnroll", "RewriteReductionBlock"], ["RewriteLayout"]
OF_GPUS = ["DisallowDynamicLoop", "RewriteCooperativeFetch", "RewriteUnboundBlock", *FIRST[1:], "VerifyGPUCode"]
WITH_INTRINSICS = [*FIRST, "RewriteTensorize", *LAST]
LISTS = {
    "llvm": FIRST + LAST,
    **dict.fromkeys(("avx512", "vnni", "avxvnni", "asimd", "neon", "dotprod"), WITH_INTRINSICS),
    "hexagon": [*FIRST, *LAST, "VerifyVTCMLimit"],
    "cuda": OF_GPUS,
    "cuda-tensorcore": [*OF_GPUS, "RewriteTensorize"],
}


@pytest.mark.parametrize("kind", LISTS)
def test_lists_of_kinds(kind):
    assert [type(item).__name__ for item in ms.Postproc.defaults(kind)] == LISTS[kind]


@pytest.mark.parametrize(("kind", "vectorizes"), [("vnni", True), ("dotprod", True), ("cuda-tensorcore", False)])
def test_which_kinds_vectorize_inits_without_an_intrinsic(kind, vectorizes):
    (tensorize,) = (item for item in ms.Postproc.defaults(kind) if isinstance(item, ms.RewriteTensorize))
    sch = tw.Schedule(workloads.matmul(4, 16, 4))
    i, j, k = loops_of(sch, "C")
    sch.reorder(i, k, j)
    outer = sch.blockize(j)
    init = sch.decompose_reduction(outer, k)
    sch.annotate(init, "meta_schedule.auto_tensorize", "")
    assert tensorize.apply(sch)
    (inner,) = sch.get_child_blocks(init)
    assert (kinds_of(sch, sch.get(inner).name_hint)[-1] == "VECTORIZED") == vectorizes


def test_kinds_without_defaults():
    with pytest.raises(tw.ArgumentError):
        ms.Postproc.defaults("c")


FROM_ONE = """@T.prim_func
def main(A: T.Buffer((33, 16), "int32"), B: T.Buffer((33, 16), "int32")):
    for i in range(1, 33):
        for j in range(16):
            with T.block("B"):
                v = T.axis.spatial((1, 33), i)
                u = T.axis.spatial(16, j)
                B[v, u] = A[v, u] + 1
"""
NO_ROWS = """@T.prim_func
def main(A: T.Buffer((0, 16), "int32"), B: T.Buffer((0, 16), "int32")):
    for i, j in T.grid(0, 16):
        with T.block("B"):
            v, u = T.axis.remap("SS", [i, j])
            B[v, u] = A[v, u] + 1
"""


@pytest.mark.parametrize("source", [FROM_ONE, NO_ROWS], ids=["from one", "no rows"])
def test_loops_that_cannot_be_shared_are_bound_anyhow(source):
    """A loop that starts elsewhere than at 0 stays as it is, in one thread; of nothing there is one thread, too."""
    sch = tw.Schedule(tw.script.from_source(source))
    assert initialized(ms.RewriteUnboundBlock(), sch, GPU).apply(sch)
    tags = [str(sch.get(loop).thread_binding.thread_tag) for loop in loops_of(sch, "B")[:2]]
    assert tags == ["blockIdx.x", "threadIdx.x"]
    assert sch.verify()
