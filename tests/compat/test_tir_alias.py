"""tvm.tir.analysis, tvm.tir.transform and what schedules do as v0.20 does."""

import numpy as np
import pytest
import tvm
import tvm.testing
from tvm import tir
from tvm.script import ir as I
from tvm.script import tir as T

import tilewright as tw


@T.prim_func
def double(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi] * T.float32(2)


@T.prim_func
def two_stages(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    B = T.alloc_buffer((16,), "float32")
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi] + T.float32(1)
    for i in range(16):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            C[vi] = B[vi] * T.float32(2)


def test_undefined_vars():
    x, y = tir.Var("x", "int32"), tir.Var("y", "int32")
    assert tvm.tir.analysis.undefined_vars(x + y * x) == [x, y]
    assert tvm.tir.analysis.undefined_vars(tir.Evaluate(x + y), [x]) == [y]
    loop = tir.For(x, 0, 8, tir.ForKind.SERIAL, tir.Evaluate(x + y))
    assert tvm.tir.analysis.undefined_vars(loop) == [y]


def test_regions_of_blocks():
    block = double.body.block.body.body.block
    reads, writes, opaque = tvm.tir.analysis.get_block_access_region(block, {})
    tvm.ir.assert_structural_equal(reads, block.reads)
    tvm.ir.assert_structural_equal(writes, block.writes)
    assert opaque == []

    @T.prim_func
    def fill(A: T.Buffer((16,), "float32")):
        with T.block("A"):
            T.reads()
            T.writes(A[0:16])
            T.evaluate(T.call_extern("int32", "fill", A.data))

    A = fill.buffer_map[fill.params[0]]
    reads, writes = tvm.tir.analysis.get_block_read_write_region(fill.body.block, {A.data: A})
    for (region,) in (reads, writes):
        assert region.buffer.same_as(A) and [r.extent.value for r in region.region] == [16]


def test_where_buffers_are_accessed():
    places = tvm.tir.analysis.detect_buffer_access_lca(two_stages)
    A, C = (two_stages.buffer_map[param] for param in two_stages.params)
    (B,) = two_stages.body.block.alloc_buffers
    assert places[B].same_as(two_stages.body.block)
    assert places[A].same_as(two_stages.body.block.body.seq[0].body.block)
    assert places[C].same_as(two_stages.body.block.body.seq[1].body.block)


def test_counts():
    assert tvm.tir.analysis.estimate_tir_flops(tvm.IRModule({"main": two_stages})) == 32
    assert tvm.tir.analysis.verify_ssa(two_stages)

    @T.prim_func
    def workspaces(A: T.Buffer((16,), "float32")):
        x = T.allocate([10], "float32", "global")
        X = T.Buffer((10,), "float32", data=x)
        X[0] = A[0]
        A[1] = X[0]

    assert tvm.tir.analysis.calculate_workspace_bytes(workspaces, 16) == 48


def test_oob_checker():
    @T.prim_func(check_well_formed=False)
    def beyond(A: T.Buffer((4,), "float32")):
        for i in range(5):
            A[i] = T.float32(0)

    with pytest.raises(tvm.TVMError):
        tvm.tir.analysis.OOBChecker()(tvm.IRModule({"main": beyond}))
    tvm.tir.analysis.OOBChecker()(tvm.IRModule({"main": double}))


class TestPlanAllocations(tvm.testing.CompareBeforeAfter):
    transform = tvm.tir.transform.PlanAndUpdateBufferAllocationLocation()

    def before(A: T.Buffer((16, 4), "float32"), C: T.Buffer((16, 4), "float32")):
        B = T.alloc_buffer((16, 4), "float32")
        for i in range(16):
            for j in range(4):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj] + T.float32(1)
            for j in range(4):
                with T.block("C"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi, vj] = B[vi, vj] * T.float32(2)

    def expected(A: T.Buffer((16, 4), "float32"), C: T.Buffer((16, 4), "float32")):
        for i in range(16):
            with T.block(""):
                T.reads()
                T.writes()
                B = T.alloc_buffer((16, 4), "float32")
                for j in range(4):
                    with T.block("B"):
                        vi, vj = T.axis.remap("SS", [i, j])
                        B[vi, vj] = A[vi, vj] + T.float32(1)
                for j in range(4):
                    with T.block("C"):
                        vi, vj = T.axis.remap("SS", [i, j])
                        C[vi, vj] = B[vi, vj] * T.float32(2)


def test_passes_made_of_functions():
    @tvm.tir.transform.prim_func_pass(opt_level=0)
    def renamed(function, mod, context):
        assert context.opt_level == 3
        return function.with_attr("seen", 1)

    @tvm.transform.module_pass(opt_level=0, name="first")
    class First:
        def __init__(self, name):
            self.name = name

        def transform_module(self, mod, context):
            return tvm.IRModule({self.name: mod["main"]})

    with tvm.transform.PassContext(opt_level=3):
        made = tvm.transform.Sequential([renamed, First("other")])(tvm.IRModule({"main": double}))
    assert made["other"].attrs["seen"] == 1
    assert First("x").info.name == "first"


def test_passes_are_told_to_instruments(capsys):
    @tvm.instrument.pass_instrument
    class Told:
        def __init__(self):
            self.told = []

        def enter_pass_ctx(self):
            self.told.append("enter")

        def exit_pass_ctx(self):
            self.told.append("exit")

        def should_run(self, mod, info):
            return info.name != "tir.Simplify"

        def run_before_pass(self, mod, info):
            self.told.append(f"before {info.name}")

        def run_after_pass(self, mod, info):
            self.told.append(f"after {info.name}")

    mod = tvm.IRModule({"main": double})
    told, timing = Told(), tvm.ir.instrument.PassTimingInstrument()
    steps = tvm.transform.Sequential([tir.transform.Simplify(), tir.transform.ConvertSSA(), tir.transform.SkipAssert()])
    with tvm.transform.PassContext(
        instruments=[told, timing], disabled_pass=["tir.ConvertSSA", "tir.SkipAssert"]
    ) as context:
        tir.transform.LowerInitBlock()(mod)
        made = steps(mod)
        lines = timing.render().splitlines()
        context.override_instruments([tvm.instrument.PrintAfterAll()])
        tir.transform.LowerInitBlock()(mod)
    assert told.told == [
        *("enter", "before tir.LowerInitBlock", "after tir.LowerInitBlock", "before sequential", "after sequential"),
        "exit",
    ]
    assert [line.split(":")[0] for line in lines] == ["tir.LowerInitBlock", "sequential", "Total time"]
    assert capsys.readouterr().out.startswith("After Running Pass: tir.LowerInitBlock\n")
    tvm.ir.assert_structural_equal(made, mod)
    tir.transform.LowerInitBlock()(mod)
    assert told.told[-1] == "exit"  # and not a word since


def test_an_instrument_that_fails_at_the_start():
    ended = []

    class First(tvm.ir.instrument.PassInstrument):
        def exit_pass_ctx(self):
            ended.append("first")

    class Second(tvm.ir.instrument.PassInstrument):
        def enter_pass_ctx(self):
            raise RuntimeError("no clock")

    with pytest.raises(RuntimeError, match="no clock"), tvm.transform.PassContext(instruments=[First(), Second()]):
        pass
    assert ended == ["first"]
    assert tvm.transform.PassContext.current().instruments == []


def test_what_functions_change_and_take():
    @T.prim_func
    def local(A: T.Buffer((16,), "float32")) -> T.float32:
        total = T.decl_buffer((1,), "float32")
        total[0] = A[0] + A[1]
        T.ret(total[0])

    @T.prim_func
    def calls(A: T.Buffer((16,), "float32")):
        T.evaluate(T.call_extern("int32", "log", A.data))

    analysis = tir.analysis
    assert [analysis.is_pure_function(f) for f in (local, double, calls)] == [True, False, False]
    assert analysis.assert_pure_function(local)
    with pytest.raises(AssertionError, match="stores to B"):
        analysis.assert_pure_function(double)
    with pytest.raises(AssertionError, match="it calls"):
        analysis.assert_pure_function(calls)
    assert analysis.calculate_allocated_bytes(local) == {"global": 4}
    assert analysis.calculate_allocated_bytes(tvm.IRModule({"main": two_stages})) == {"main": {"global": 64}}


def test_memory_of_a_gpu_is_for_its_threads():
    @T.prim_func
    def bound(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        for i in T.thread_binding(16, thread="threadIdx.x"):
            B[i] = A[i]

    gpu, cpu = tvm.target.Target("cuda", host="llvm"), tvm.target.Target("llvm")
    loose_mod = tvm.IRModule({"main": double})
    for target, program, fine in [(gpu, bound, True), (gpu, double, False), (cpu, double, True)]:
        mod = tir.transform.BindTarget(target)(tvm.IRModule({"main": program}))
        assert str(tvm.target.Target(mod["main"].attrs["target"])) == str(target)
        assert tir.analysis.verify_memory(mod["main"]) == fine
        tvm.ir.assert_structural_equal(tir.transform.BindTarget(cpu)(mod), mod)  # the first one stays
    with pytest.raises(RuntimeError, match="outside of its threads"):
        tir.transform.VerifyMemory()(tir.transform.BindTarget(gpu)(loose_mod))
    tir.transform.VerifyMemory()(loose_mod)


def test_names_of_every_day():
    mod = tvm.IRModule({"main": double})
    assert mod.with_attr("a", 1).get_attr("a") == 1
    assert mod.get_attr("b") is None
    assert tvm.runtime.num_threads() >= 1
    target = tvm.target.Target("llvm -mcpu=skylake-avx512")
    assert target.mcpu == "skylake-avx512"
    assert tvm.target.Target("cuda").thread_warp_size == 32
    assert not hasattr(target, "thread_warp_size")


def test_tags_of_tensors():
    def tensor(**options):
        return tvm.te.compute((4,), lambda i: i, **options).op.tag

    with tvm.te.tag_scope("conv"):
        assert (tensor(), tensor(tag="own")) == ("conv", "own")
        with pytest.raises(ValueError, match="nested"), tvm.te.tag_scope("inner"):
            pass
    assert tvm.te.tag_scope(tag="pool")(tensor)() == "pool"
    assert tensor() == ""


def test_stores_of_whatever_there_is():
    @T.prim_func
    def before(A: T.Buffer((16,), "float32")):
        A[0] = T.undef(dtype="float32")
        A[1] = T.float32(1)

    made = tir.transform.RemoveStoreUndef()(tvm.IRModule({"main": before}))
    assert "undef" not in made.script()
    assert "A[1] = T.float32(1.0)" in made.script()


def test_passes_over_modules():
    @I.ir_module
    class Module:
        @T.prim_func
        def one(A: T.Buffer((4,), "float32")):
            A[0] = T.float32(1)

        @T.prim_func(private=True)
        def two(A: T.Buffer((4,), "float32")):
            A[0] = T.float32(2)

    only = tvm.tir.transform.Filter(lambda f: "global_symbol" in f.attrs)(Module)
    assert [str(name) for name in only.functions] == ["one"]
    assert tvm.tir.transform.AnnotateEntryFunc()(only)["one"].attrs["tir.is_entry_func"]
    without = tvm.tir.transform.Apply(lambda f: f.without_attr("global_symbol"))(only)
    assert "global_symbol" not in without["one"].attrs


def test_lowering_one_pass_at_a_time():
    mod = tvm.IRModule({"main": two_stages})
    for one in (
        "PlanAndUpdateBufferAllocationLocation",
        "LowerInitBlock",
        "ConvertBlocksToOpaque",
        "CompactBufferAllocation",
        "LowerMatchBuffer",
        "LowerOpaqueBlock",
        "FlattenBuffer",
    ):
        mod = getattr(tvm.tir.transform, one)()(mod)
    assert "T.block" not in mod.script()
    tvm.tir.analysis.verify_well_formed(mod)


@T.prim_func
def loose(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    T.evaluate(T.assume(n < 100))
    assert n > 0, "n is positive"
    for i in range(16):
        if n > 3:
            B[i * 4 // 4] = T.Select(i < 15, A[i], A[0])
    for i in range(0):
        B[i] = T.float32(7)
    for i in range(4):
        T.evaluate(0)


@pytest.mark.parametrize(
    ("name", "gone", "there"),
    [
        ("SkipAssert", "assert", "T.assume"),
        ("RemoveAssume", "T.assume", "assert"),
        ("RemoveNoOp", "T.float32(7", "B[i * 4 // 4]"),
        ("Simplify", "* 4 // 4", "B[i]"),
        ("RewriteUnsafeSelect", "T.Select", "T.if_then_else(i < 15, A[i], A[0])"),
    ],
)
def test_passes_that_clean_up(name, gone, there):
    made = getattr(tvm.tir.transform, name)()(tvm.IRModule({"main": loose}))
    assert gone in loose.script() and gone not in made.script() and there in made.script(), made.script()
    a, b, c = np.arange(16, dtype="float32"), np.zeros(16, "float32"), np.zeros(16, "float32")
    tw.compile(loose, "interpreter")(a, b, 5)
    tw.compile(made, "interpreter")(a, c, 5)
    np.testing.assert_array_equal(b, c)
    assert b[3] == 3


def test_a_pass_over_a_program_of_another_stage():
    """Blocks are nothing that the later passes know of."""
    for name in ("UnrollLoop", "VectorizeLoop", "FlattenBuffer"):
        with pytest.raises(tvm.TVMError, match="a BlockRealize in a lowered program") as error:
            getattr(tvm.tir.transform, name)()(tvm.IRModule({"main": two_stages}))
        assert "defect" not in str(error.value)
    assert "T.block" in tvm.tir.transform.Simplify()(tvm.IRModule({"main": two_stages})).script()


def test_serial_instead_of_vectors():
    @T.prim_func
    def lanes(A: T.Buffer((16,), "float32")):
        for i in T.vectorized(16):
            A[i] = T.float32(0)

    made = tvm.tir.transform.VectorizeLoop(enable_vectorize=False)(tvm.IRModule({"main": lanes}))
    assert "vectorized" not in made.script()


def test_reorder_is_refused_as_tvm_does():
    @T.prim_func
    def gaps(A: T.Buffer((8, 32), "float32"), B: T.Buffer((8, 32), "float32")):
        for i, j in T.grid(8, 8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                vj = T.axis.spatial(32, j * 4)
                B[vi, vj] = A[vi, vj]

    sch = tir.Schedule(gaps)
    i, j = sch.get_loops("B")
    with pytest.raises(tir.ScheduleError, match="not an affine function of the loops"):
        sch.reorder(j, i)
    sch = tir.Schedule(double)
    (i,) = sch.get_loops("B")
    outer, inner = sch.split(i, [4, 4])
    sch.reorder(inner, outer)


def test_scalable_factors_need_a_target():
    def split():
        sch = tir.Schedule(double)
        (i,) = sch.get_loops("B")
        return sch.split(i, [T.ceildiv(16, 4 * T.vscale()), 4 * T.vscale()])

    with pytest.raises(tir.ScheduleError, match="product of factors is not larger"):
        split()
    with tvm.target.Target("llvm -mtriple=aarch64-linux-gnu -mattr=+sve"):
        assert len(split()) == 2


def test_statements_with_buffers_of_their_own():
    """A buffer that a statement does not declare stands for the one at the same place; other variables do not."""

    def store(name, index):
        buffer = tir.decl_buffer((8,), "float32", name)
        return tir.BufferStore(buffer, tir.FloatImm("float32", 1), [index])

    i, j = tir.Var("i", "int32"), tir.Var("j", "int32")
    tvm.ir.assert_structural_equal(store("A", i), store("B", i))
    with pytest.raises(ValueError):
        tvm.ir.assert_structural_equal(store("A", i), store("B", j))


def test_comparisons_stay_as_they_are_written():
    @T.prim_func
    def within(A: T.Buffer((8,), "float32")):
        for i in range(8):
            if 2 <= i and i < 7:  # noqa: SIM300
                A[i] = T.float32(0)

    condition = within.body.body.condition
    assert isinstance(condition.a, tir.LE) and isinstance(condition.b, tir.LT)


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("int32", (32, 1, 0)),
        ("uint8x16", (8, 16, 1)),
        ("float8_e4m3fn", (8, 1, 2)),
        ("bool", (1, 1, 1)),
        ("int8xvscalex16", (8, -16, 0)),
    ],
)
def test_parts_of_data_types(name, parts):
    dtype = tvm.DataType(name)
    assert dtype == name and (dtype.bits, dtype.lanes, dtype.type_code) == parts


def test_functions_with_fixed_sizes():
    @T.prim_func
    def copy(a: T.handle, b: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n, 8), "float32")
        B = T.match_buffer(b, (n, 8), "float32")
        for i, j in T.grid(n, 8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj]

    fixed = copy.specialize({copy.params[0]: tir.decl_buffer((4, 8), "float32")})
    assert [n.value for n in fixed.buffer_map[fixed.params[1]].shape] == [4, 8]
    with pytest.raises(ValueError):
        copy.specialize({tir.Var("z", "int32"): 1})


def test_flat_buffers():
    flat = tir.decl_buffer((4, 8, 2), "float32", axis_separators=[2]).get_flattened_buffer()
    assert [n.value for n in flat.shape] == [32, 2]


def test_hashes_of_free_variables():
    x, y = tir.Var("x", "int32"), tir.Var("y", "int32")
    assert tvm.ir.structural_hash(x + 1, True) == tvm.ir.structural_hash(y + 1, True)
    assert tvm.ir.structural_hash(x + y, True) != tvm.ir.structural_hash(x + x, True)


def test_transformations_from_above():
    x = tir.Var("x", "int32")
    body = tir.SeqStmt([tir.Evaluate(x + 1), tir.Evaluate(x + 2)])
    seen = []

    def above(node):
        seen.append(node)
        return tir.Evaluate(tir.const(0, "int32")) if node.same_as(body.seq[0]) else None

    made = tir.stmt_functor.ir_transform(body, above, None, ["tir.Evaluate", "tir.Add"])
    assert made.seq[0].value.value == 0 and made.seq[1].same_as(body.seq[1])
    assert not any(node.same_as(body.seq[0].value) for node in seen)


def test_steps_whose_values_are_variables():
    from tvm.tir.schedule import BlockRV, Instruction, InstructionKind, LoopRV, Trace

    block, loops, values = BlockRV(), [LoopRV() for _ in range(3)], [tir.Var("a", "int32"), tir.Var("b", "int32")]
    kind = InstructionKind.get
    draw = Instruction(kind("SamplePerfectTile"), [loops[0]], [2, 4], values)
    trace = Trace(
        [
            Instruction(kind("GetBlock"), [], ["B", "main"], [block]),
            Instruction(kind("GetLoops"), [block], [], loops[:1]),
            draw,
            Instruction(kind("Split"), [loops[0], *values], [True, False], loops[1:]),
        ],
        {draw: [4, 4]},
    )
    assert trace.as_python()[-1].startswith("l4, l5 = sch.split(loop=l1, factors=[v2, v3]")
    sch = tir.Schedule(double)
    trace.apply_to_schedule(sch, remove_postproc=False)
    assert len(sch.get_loops("B")) == 2


def test_schedules_without_a_trace():
    sch = tir.Schedule._create_non_traced(double)
    sch.split(sch.get_loops("B")[0], [4, 4])
    assert sch.trace is None
    with pytest.raises(ValueError):
        tir.Schedule(double, seed=0)


@tvm.testing.parametrize_targets("llvm", "cuda")
def test_targets_of_tests(target, dev):
    assert (target, dev) == ("llvm", tvm.cpu())


def test_the_device_of_the_target(dev):
    assert dev == tvm.cpu()


def test_axes_that_memory_keeps_together_again():
    sch = tir.Schedule(double)
    sch.set_axis_separator("B", ("write", 0), None)
    assert list(sch.mod["main"].buffer_map[sch.mod["main"].params[1]].axis_separators) == []


def test_kinds_of_dependences():
    from tvm.tir.block_scope import DepKind

    state = tir.ScheduleState(two_stages, debug_mask="all")
    root = state.mod["main"].body.block
    first, second = (state.get_sref(loop.body.block) for loop in root.body.seq)
    scope = state.get_block_scope(state.get_sref(root))
    (found,) = scope.get_deps_by_src(first)
    assert found.kind == DepKind.RAW != DepKind.OPAQUE and found.dst == second
    assert (int(DepKind.OPAQUE), state.debug_mask, tir.ScheduleState(double).debug_mask) == (3, 3, 0)


def test_functions_of_modules():
    @I.ir_module
    class Calls:
        @T.prim_func
        def main(A: T.Buffer((4,), "float32")):
            Calls.fill(A.data)

        @T.prim_func(private=True)
        def fill(data: T.handle("float32")):
            A = T.decl_buffer((4,), data=data)
            for i in range(4):
                A[i] = T.float32(1)

    assert [variable.name_hint for variable, _ in Calls.functions_items()] == ["fill", "main"]
    renamed = Calls.replace_global_vars({"fill": "ones", Calls.get_global_var("main"): "run"})
    assert list(renamed.functions) == ["ones", "run"] and "cls.ones(" in renamed.script()
    with pytest.raises(ValueError, match="two functions would have the name 'main'"):
        Calls.replace_global_vars({"fill": "main"})
    with pytest.raises(tvm.TVMError, match="no function 'nobody'"):
        Calls.replace_global_vars({"nobody": "main"})
    copied = Calls.clone()
    copied["other"] = double
    assert "other" in copied and "other" not in Calls
    del copied["other"], copied[copied.get_global_var("main")]
    assert list(copied.functions) == ["fill"] and copied.attrs == Calls.attrs
    with pytest.raises(tvm.TVMError, match="no function 'main'"):
        del copied["main"]
    attributes = Calls.with_attrs({"a": 1, "b": "x"}).attrs
    assert (attributes["a"], attributes["b"]) == (1, "x")
    assert double.with_attrs({"a": 1}).attrs["a"] == 1


def test_contexts_belong_to_threads():
    import threading

    entered, left = threading.Event(), threading.Event()

    def other():
        with tvm.transform.PassContext(opt_level=1):
            entered.set()
            left.wait(60)

    thread = threading.Thread(target=other)
    thread.start()
    entered.wait(60)
    with tvm.transform.PassContext(opt_level=3) as context:
        assert tvm.transform.PassContext.current() is context
    assert tvm.transform.PassContext.current().opt_level == 2
    left.set()
    thread.join()


def test_options_and_prints_of_contexts(capsys):
    assert "tir.disable_vectorize" in tvm.transform.PassContext.list_configs()
    with pytest.raises(TypeError, match=r"PassContext\(trace=\.\.\.\)"):
        tvm.transform.PassContext(trace=object())
    instrument = tvm.ir.instrument.PassPrintingInstrument(["tir.Simplify"], ["tir.ConvertSSA"])
    with tvm.transform.PassContext(instruments=[instrument]):
        tir.transform.ConvertSSA()(tir.transform.Simplify()(tvm.IRModule({"main": double})))
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Print IR")]
    assert lines == ["Print IR before: tir.Simplify", "Print IR after: tir.ConvertSSA"]
    tvm.transform.PrintIR("here", show_meta_data=True)(tvm.IRModule({"main": double}))
    assert capsys.readouterr().out.startswith("here\n")


@pytest.mark.parametrize(
    ("method", "arguments", "named"),
    [
        ("split", lambda i: (i, 2), "factors"),
        ("split", lambda i: ("i", [2, None]), "loop"),
        ("reorder", lambda i: (1,), "ordered_loops"),
        ("vectorize", lambda i: ("i",), "loop"),
        ("rfactor", lambda i: ("i", 0), "loop"),
        ("rfactor", lambda i: (i, "0"), "factor_axis"),
    ],
)
def test_arguments_of_a_wrong_type(method, arguments, named):
    sch = tir.Schedule(double)
    (loop,) = sch.get_loops("B")
    with pytest.raises(TypeError, match=rf"{method}\(\): the argument '{named}'"):
        getattr(sch, method)(*arguments(loop))


def test_operations_are_counted_as_tvm_does():
    flops = tvm.tir.analysis.estimate_tir_flops

    @T.prim_func
    def product(A: T.Buffer((16, 8)), B: T.Buffer((8, 4)), C: T.Buffer((16, 4))):
        for i, j, k in T.grid(16, 4, 8):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

    @T.prim_func
    def kinds(A: T.Buffer((64,)), B: T.Buffer((64,)), n: T.int32):
        for i in range(8):
            for j in range(i):  # at most 7
                if i * 8 + j < 60:
                    B[i * 8 + j] = T.exp(A[i * 8 + j] + T.float32(1)) * T.float32(2)
                else:
                    B[i * 8 + j] = T.Select(i < 3, A[0], T.max(A[0] - A[1], A[2]))
        for k in range(n):
            B[k] = B[k] + T.float32(1)

    assert flops(product.body) == flops(tvm.IRModule({"main": product})) == 2 * 16 * 4 * 8
    # Nothing inside of a comparison counts; each branch has two operations, and the loop up to n counts once.
    assert flops(kinds.body) == 8 * 7 * 2 + 1
    known = product.with_attr({"estimated_flops": 5, "global_symbol": "main"})
    assert flops(tvm.IRModule({"main": known, "kinds": kinds})) == 5 + flops(kinds.body)
    with pytest.raises(TypeError, match="not of a IntImm"):
        flops(tir.const(1))


def test_programs_that_are_not_well_formed():
    loop = tir.For(tir.Var("i", "int32"), 0, 4, tir.ForKind.SERIAL, tir.Evaluate(tir.Var("j", "int32")))
    func = tir.PrimFunc([], loop)
    assert not tvm.tir.analysis.verify_well_formed(func, assert_mode=False)
    with pytest.raises(ValueError, match="'j'") as raised:
        tvm.tir.analysis.verify_well_formed(func)
    assert isinstance(raised.value, tvm.error.DiagnosticError)
    assert tvm.tir.analysis.verify_well_formed(double)


@pytest.mark.parametrize(
    ("limit", "largest"),
    [
        *(("max_threads_per_block", 64), ("max_thread_x", 32), ("max_thread_y", 2), ("max_vthread", 1)),
        *(("max_shared_memory_per_block", 256), ("max_local_memory_per_block", 8), ("max_vector_bytes", 16)),
        *(("max_kernels", 2), ("max_thread_z", 1)),
    ],
)
def test_limits_of_gpus(limit, largest):
    @T.prim_func
    def kernels(A: T.Buffer((512,)), B: T.Buffer((512,))):
        with T.launch_thread("blockIdx.x", 2) as bx, T.launch_thread("threadIdx.y", 2) as ty:
            tx = T.launch_thread("threadIdx.x", 32)
            shared_data = T.allocate([64], "float32", "shared")
            local_data = T.allocate([2], "float32", "local")
            shared = T.Buffer((64,), data=shared_data, scope="shared")
            local = T.Buffer((2,), data=local_data, scope="local")
            local[0] = A[bx * 64 + ty * 32 + tx]
            shared[ty * 32 + tx] = local[0]
            B[0:4] = A[0:4]
        with T.launch_thread("threadIdx.x", 8) as tx:
            B[tx] = A[tx]

    verify = tvm.tir.analysis.verify_gpu_code
    # There are no virtual threads, and none along z.
    assert verify(kernels, {limit: largest})
    assert verify(kernels, {limit: largest - 1}) == (limit in ("max_vthread", "max_thread_z"))
    with pytest.raises(ValueError, match="max_registers"):
        verify(kernels, {"max_registers": 1})
