"""Software pipelines: what the stages of a loop overlap to, for all lengths of the loop, in main and shared memory."""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from codegen.test_cuda import compiled
from lower.passes import agrees, script_after
from lower.test_gpu import check_barriers_are_needed, matmul, numbers, run, tiled
from samples import seeds
from tilewright import _core, ir
from tilewright.script import from_source
from tilewright.script import tir as T

PASS = "inject_software_pipelines"


def chain(extent: str, count: int, annotations: str, parameters: str = "") -> Any:
    """A loop of `count` statements, each of which turns around the 4 elements that the one before it has made."""
    blocks, source = "", "A[k * 4 + i]"
    for number in range(count):
        last = number == count - 1
        target = "B[k * 4 + i]" if last else f"t{number}[i]"
        blocks += f"""
            for i in range(4):
                with T.block("s{number}"):
                    vi = T.axis.spatial(4, i)
                    vk = T.axis.spatial({extent}, k)
                    {target.replace("k", "vk").replace("i]", "vi]")} = {
            source.replace("k", "vk").replace("i]", "vi]")
        } + T.float32({number + 1})"""
        source = f"t{number}[3 - i]".replace("- i]", "- i]")
    buffers = "".join(f"\n            t{number} = T.alloc_buffer((4,))" for number in range(count - 1))
    size = f"{extent} * 4"
    return from_source(f"""
@T.prim_func
def main(a: T.handle, b: T.handle{parameters}):
    A = T.match_buffer(a, ({size},))
    B = T.match_buffer(b, ({size},))
    for k in T.serial({extent}, annotations={{{annotations}}}):
        with T.block("body"):{buffers}{blocks}
""")


def expected_of_chain(a: np.ndarray, count: int) -> np.ndarray:
    values = a.reshape(-1, 4)
    for number in range(count):
        values = (values if number == 0 else values[:, ::-1]) + np.float32(number + 1)
    return values.reshape(-1)


def stages(values: Any, order: Any = None, more: str = "") -> str:
    order = range(len(values)) if order is None else order
    return f'"software_pipeline_stage": {list(values)}, "software_pipeline_order": {list(order)}{more}'


def check_every_stage(program: Any, target: str, arrays: list[Any], expected: np.ndarray) -> ir.Module:
    """Assert that the interpreter finds `expected` in the last array after every pass."""
    module = given = program if isinstance(program, ir.Module) else _core.as_module(program)
    before = None
    for name, module in _core.lower_stages(given, target):
        if before is not None and before == module.script():
            continue
        before = module.script()
        found = run(module, *arrays)[-1]
        np.testing.assert_array_equal(found, expected, err_msg=f"{name}\n{before}")
    return module


def test_the_example_of_the_pass():
    @T.prim_func
    def before(A: T.Buffer((8, 32)), B: T.Buffer((8, 32))):
        for k in T.serial(8, annotations={"software_pipeline_stage": [0, 1], "software_pipeline_order": [0, 1]}):
            with T.block("body"):
                S = T.alloc_buffer((32,))
                for i in range(32):
                    with T.block("S"):
                        vi, vk = T.axis.remap("SS", [i, k])
                        S[vi] = A[vk, vi]
                for i in range(32):
                    with T.block("B"):
                        vi, vk = T.axis.remap("SS", [i, k])
                        B[vk, vi] = S[31 - vi]

    text = script_after(before, PASS)
    assert "software_pipeline" not in text
    assert "S = T.alloc_buffer((2, 32))" in text and "for k in range(1, 8):" in text
    assert "S[k % 2, i] = A[k, i]" in text and "= S[(k - 1) % 2, 31 - i]" in text
    a = numbers(8, 32)
    agrees(before, PASS, [a, np.zeros_like(a)], [a, a[:, ::-1]])


def test_lists_of_a_loop_that_runs_once_do_not_count():
    """decompose_reduction may have moved an init into it, so that it has one statement more."""
    program = chain("1", 3, stages((0, 1)))
    assert "software_pipeline" not in script_after(program, PASS)
    a = numbers(4)
    check_every_stage(program, "llvm", [a, np.zeros(4, "float32")], expected_of_chain(a, 3))


@pytest.mark.parametrize("extent", [0, 1, 2, 3, 7])
@pytest.mark.parametrize(
    ("values", "order"),
    [
        ((0, 1), (0, 1)),
        ((0, 1), (1, 0)),
        ((0, 3), (0, 1)),
        ((0, 0, 2), (0, 1, 2)),
        ((0, 1, 2), (2, 0, 1)),
        ((0, 1, 1, 3), (3, 1, 2, 0)),
        ((0, 0, 0), (0, 1, 2)),
    ],
)
def test_loops_of_every_length(extent, values, order):
    """Also loops of fewer iterations than stages, and loops whose length only the call says."""
    count = len(values)
    a = numbers(extent * 4)
    expected = expected_of_chain(a, count)
    program = chain(str(extent), count, stages(values, order))
    check_every_stage(program, "llvm", [a, np.full(extent * 4, 7, "float32")], expected)
    program = chain("n", count, stages(values, order), ", n: T.int32")
    module = _core.lower(_core.as_module(program), "llvm")[0]
    b = np.full(extent * 4, 7, "float32")
    _core.interpret(module, "main", a, b, extent)
    np.testing.assert_array_equal(b, expected)
    kernel = tw.compile(program)
    b = np.full(extent * 4, 7, "float32")
    kernel(a, b, extent)
    np.testing.assert_array_equal(b, expected)


def versions(text: str, name: str) -> int:
    """The versions of a one-dimensional buffer after the pass."""
    shape = re.search(rf"{name} = T\.alloc_buffer\(\(([\d, ]*)\)", text)
    assert shape, text
    extents = [int(extent) for extent in shape.group(1).split(",") if extent.strip()]
    return extents[0] if len(extents) == 2 else 1


@pytest.mark.parametrize(
    ("values", "order", "count"),
    [((0, 0), (0, 1), 1), ((0, 1), (0, 1), 2), ((0, 1), (1, 0), 1), ((0, 3), (0, 1), 4), ((0, 3), (1, 0), 3)],
)
def test_as_few_versions_as_overlap(values, order, count):
    """A statement that runs before the one that overwrites what it reads needs one version less."""
    assert versions(script_after(chain("8", 2, stages(values, order)), PASS), "t0") == count


def test_random_stages_and_orders():
    """Whatever is not refused computes the same; what keeps all orders is never refused."""
    for seed in seeds(0, 60):
        draw = np.random.default_rng(seed)
        count = int(draw.integers(2, 6))
        values, order = draw.integers(0, 4, count).tolist(), draw.permutation(count).tolist()
        extent = int(draw.integers(0, 6))
        program = chain(str(extent), count, stages(values, order))
        keeps = all((values[i], order[i]) < (values[i + 1], order[i + 1]) for i in range(count - 1))
        a = numbers(extent * 4, seed=seed)
        try:
            module = _core.lower(_core.as_module(program), "llvm")[0]
        except tw.Error as error:
            assert error.code == "lower/pipeline-order" and not keeps, (values, order)
            continue
        assert keeps or extent <= 1, (values, order)
        found = run(module, a, np.zeros_like(a))[-1]
        np.testing.assert_array_equal(found, expected_of_chain(a, count), err_msg=f"{values} {order} {extent}")


@pytest.mark.parametrize("steps", [1, 2, 3])
@pytest.mark.parametrize("target", ["llvm", "opencl"])
def test_a_pipeline_in_a_pipeline_is_three_statements(steps, target):
    """Also where the inner loop has one iteration, so that nothing is left between its first and last part."""
    inner = stages((0, 1))
    outer = stages((0, 0, 1, 1))
    thread = ('for bx in T.thread_binding(1, thread="blockIdx.x")', 'T.thread_binding(4, thread="threadIdx.x")')
    around, lanes = thread if target == "opencl" else ("for bx in range(1)", "range(4)")
    program = from_source(f"""
@T.prim_func
def main(A: T.Buffer((5, {steps}, 4)), B: T.Buffer((5, {steps}, 4))):
    {around}:
        for k in T.serial(5, annotations={{{outer}}}):
            with T.block("tiles"):
                vk = T.axis.spatial(5, k)
                S = T.alloc_buffer(({steps}, 4), scope="shared")
                for r in range({steps}):
                    for i in {lanes}:
                        with T.block("S"):
                            vr, vi = T.axis.remap("SS", [r, i])
                            S[vr, vi] = A[vk, vr, vi]
                for r in T.serial({steps}, annotations={{{inner}}}):
                    with T.block("rows"):
                        vr = T.axis.spatial({steps}, r)
                        R = T.alloc_buffer((4,), scope="shared")
                        for i in {lanes}:
                            with T.block("R"):
                                vi = T.axis.spatial(4, i)
                                R[vi] = S[vr, 3 - vi] + T.float32(1)
                        for i in {lanes}:
                            with T.block("B"):
                                vi = T.axis.spatial(4, i)
                                B[vk, vr, vi] = R[3 - vi] * T.float32(2)
""")
    a = numbers(5, steps, 4)
    check_every_stage(program, target, [a, np.zeros_like(a)], (a + 1) * 2)
    b = np.zeros_like(a)
    tw.compile(program, target=target)(a, b)
    np.testing.assert_array_equal(b, (a + 1) * 2)


def test_what_a_statement_does_around_a_buffer_of_its_own():
    """The buffer gets a block in the statement, and what is inside still counts."""
    program = from_source(f"""
@T.prim_func
def main(A: T.Buffer((6, 8)), B: T.Buffer((6, 8))):
    for k in T.serial(6, annotations={{{stages((0, 2))}}}):
        with T.block("body"):
            vk = T.axis.spatial(6, k)
            S = T.alloc_buffer((8,))
            own = T.alloc_buffer((8,))
            for i in range(8):
                with T.block("S"):
                    vi = T.axis.spatial(8, i)
                    S[vi] = A[vk, vi]
            for j in range(2):
                for i in range(4):
                    with T.block("own"):
                        vi = T.axis.spatial(8, j * 4 + i)
                        own[vi] = S[7 - vi] + T.float32(1)
                for i in range(4):
                    with T.block("B"):
                        vi = T.axis.spatial(8, j * 4 + i)
                        B[vk, vi] = own[vi] * T.float32(2)
""")
    a = numbers(6, 8)
    assert versions(script_after(program, PASS), "S") == 3
    check_every_stage(program, "llvm", [a, np.zeros_like(a)], (a[:, ::-1] + 1) * 2)


@pytest.mark.parametrize("target", ["llvm", "opencl"])
def test_indices_that_the_loop_loads_and_changes(target):
    """P[0] is another number in each iteration, so that X[P[0]] and X[P[0] + 1] of different ones may meet."""
    around, lanes = ("for bx in range(1)", "range(4)")
    if target == "opencl":
        around, lanes = 'for bx in T.thread_binding(1, "blockIdx.x")', 'T.thread_binding(4, "threadIdx.x")'
    for values, refused in (((0, 0, 1), True), ((0, 0, 0), False), ((0, 1, 1), False)):
        program = from_source(f"""
@T.prim_func
def main(A: T.Buffer((6,), "int32"), X: T.Buffer((9, 4), "int32"), B: T.Buffer((6, 4), "int32")):
    {around}:
        for i in {lanes}:
            for k in T.serial(6, annotations={{{stages(values)}}}):
                with T.block("body"):
                    P = T.alloc_buffer((1,), "int32", scope="local")
                    P[0] = A[k]
                    X[P[0], i] = X[P[0], i] + 1
                    B[k, i] = X[P[0] + 1, i]
""")
        if refused:
            with pytest.raises(tw.Error, match="both access 'X'") as raised:
                tw.compile(program, target=target)
            assert raised.value.code == "lower/pipeline-order"
            continue
        x, b = np.repeat(np.arange(9, dtype="int32")[:, None] * 10, 4, 1), np.zeros((6, 4), "int32")
        tw.compile(program, target=target)(np.array([0, 3, 1, 4, 5, 2], "int32"), x, b)
        np.testing.assert_array_equal(b, np.repeat([[10], [40], [20], [50], [60], [31]], 4, 1))


@pytest.mark.parametrize(("first", "end", "size", "left"), [("0", "N[0]", 6, 3), ("N[0]", "8", 2, 4)])
@pytest.mark.parametrize("values", [(0, 2, 2), (0, 1, 3), (0, 0, 0)])
def test_bounds_that_the_loop_changes(first, end, size, left, values):
    """The first and the last iteration are those that the data said before the loop."""
    program = from_source(f"""
@T.prim_func
def main(A: T.Buffer((8,), "int32"), N: T.Buffer((1,), "int32"), B: T.Buffer((8,), "int32")):
    for k in T.serial({first}, {end}, annotations={{{stages(values)}}}):
        with T.block("body"):
            S = T.alloc_buffer((1,), "int32")
            S[0] = A[k]
            B[k] = S[0]
            N[0] = {left}
""")
    a, b = np.arange(8, dtype="int32") + 10, np.zeros(8, "int32")
    expected = np.where((np.arange(8) < 6) if first == "0" else (np.arange(8) >= 2), a, 0)
    check_every_stage(program, "llvm", [a, np.array([size], "int32"), b], expected)
    n = np.array([size], "int32")
    tw.compile(program)(a, n, b)
    np.testing.assert_array_equal(b, expected)
    assert n[0] == left


def pipelined(shape: tuple[int, int, int], values: Any, order: Any, asynchronous: Any = ()) -> tw.Schedule:
    """A product whose blocks fetch tiles into shared memory in an earlier stage than they use them."""
    sch = tiled(*shape)
    loop = sch.get_loops(sch.get_block("C"))[6]
    sch.annotate(loop, "software_pipeline_stage", list(values))
    sch.annotate(loop, "software_pipeline_order", list(order))
    if asynchronous:
        sch.annotate(loop, "software_pipeline_async_stages", list(asynchronous))
    return sch


def operands(m: int, n: int, k: int) -> tuple[list[np.ndarray], np.ndarray]:
    a, b = numbers(m, k), numbers(k, n, seed=1)
    return [a, b, np.full((m, n), np.nan, "float32")], a @ b


SHARED = [((0, 0, 1), (0, 1, 2)), ((0, 0, 1), (1, 2, 0)), ((0, 1, 2), (0, 1, 2)), ((0, 0, 3), (0, 1, 2))]


@pytest.mark.parametrize("k", [4, 8, 16, 30])
@pytest.mark.parametrize(("values", "order"), SHARED)
def test_tiles_in_shared_memory(values, order, k):
    """The reduction has one tile, as many as stages, more, and a last one of few rows."""
    sch = pipelined((16, 9, k), values, order)
    arrays, expected = operands(16, 9, k)
    check_every_stage(sch.mod, "opencl", arrays, expected)
    c = arrays[-1].copy()
    tw.compile(sch, target="opencl")(*arrays[:2], c)
    np.testing.assert_array_equal(c, expected)


def test_one_barrier_for_each_tile():
    """With two versions, threads wait between the copy and the use of a tile only, and each wait is needed."""
    arrays, _ = operands(16, 16, 32)
    module = _core.lower(pipelined((16, 16, 32), (0, 0, 1), (0, 1, 2)).mod, "opencl")[0]
    steady = module.script().split("for k_0 in range(1, 8)")[1].split("\n")
    indent = len(steady[1]) - len(steady[1].lstrip())
    body = list(itertools.takewhile(lambda line: len(line) - len(line.lstrip()) >= indent, steady[1:]))
    assert sum("tvm_storage_sync" in line for line in body) == 1, module.script()
    check_barriers_are_needed(module, arrays, module.script().count("tvm_storage_sync"))


def test_two_versions_without_a_pipeline():
    """With two versions of a tile, threads need not wait before the next one is copied."""
    sch = tiled(16, 16, 32)
    count = _core.lower(sch.mod, "opencl")[0].script().count("tvm_storage_sync")
    for name in ("A_shared", "B_shared"):
        sch.annotate(sch.get_block(name), "double_buffer_scope", 0)
    arrays, expected = operands(16, 16, 32)
    module = check_every_stage(sch.mod, "opencl", arrays, expected)
    assert module.script().count("tvm_storage_sync") == count - 1, module.script()
    check_barriers_are_needed(module, arrays, count - 1)


def test_two_versions_without_a_loop():
    """A copy that threads make once has one version, and a note says so."""
    sch = tw.Schedule(matmul(8, 8, 8))
    i, j, _ = sch.get_loops("C")
    copy = sch.cache_read("C", 1, "shared")
    sch.bind(i, "blockIdx.x")
    sch.bind(j, "threadIdx.x")
    sch.compute_at(copy, j)
    column = sch.get_loops(copy)[-1]
    sch.bind(column, "threadIdx.x")
    sch.annotate(copy, "double_buffer_scope", 0)
    arrays, expected = operands(8, 8, 8)
    check_every_stage(sch.mod, "opencl", arrays, expected)
    notes = [note for note in tw.compile(sch, target="opencl").notes if note.code == "lower/single-buffer"]
    assert len(notes) == 1 and "'B_shared' has one version" in notes[0].message


@pytest.mark.parametrize("target", ["opencl", "cuda", "llvm"])
@pytest.mark.parametrize(
    ("values", "order"),
    [
        ((0, 0, 0, 0, 1), (0, 2, 1, 3, 4)),
        ((0, 1, 0, 1, 2), (0, 2, 1, 3, 4)),
        ((0, 1, 0, 1, 1), (3, 0, 4, 1, 2)),
        ((0, 0, 1), (0, 1, 2)),
    ],
)
def test_copies_by_way_of_registers(values, order, target):
    """A list of five counts the loads and the stores of both copies, one of three is too short."""
    sch = pipelined((16, 16, 32), values, order)
    for name in ("A_shared", "B_shared"):
        sch.annotate(sch.get_block(name), "tir.manifest_shared_memory_local_stage", 1)
    arrays, expected = operands(16, 16, 32)
    if len(values) == 3:
        with pytest.raises(tw.Error) as raised:
            _core.lower(sch.mod, target)
        assert raised.value.code == "lower/pipeline-list" and "5 statements" in str(raised.value)
        return
    if target == "llvm":
        found = run(tw.lower(sch.mod, after="inject_software_pipelines", target="llvm"), *arrays)[-1]
        np.testing.assert_array_equal(found, expected)
        return
    module = check_every_stage(sch.mod, target, arrays, expected)
    assert re.search(r"A_shared_local = T\.decl_buffer\(\(\d,\), scope=\"local\"\)", module.script()), module.script()
    check_barriers_are_needed(module, arrays, module.script().count("tvm_storage_sync"))


@pytest.mark.parametrize("target", ["opencl", "cuda"])
def test_registers_of_threads_that_only_the_copy_is_bound_to(target):
    """Statements in two loops over threads, with none around: each thread finds what it has loaded."""
    sch = tw.Schedule(
        from_source("""
@T.prim_func
def main(A: T.Buffer((6, 128)), B: T.Buffer((6, 128))):
    for bx in T.thread_binding(1, thread="blockIdx.x"):
        for k in T.serial(6, annotations={"software_pipeline_stage": [0, 1, 2],
                                          "software_pipeline_order": [0, 1, 2]}):
            with T.block("body"):
                vk = T.axis.spatial(6, k)
                S = T.alloc_buffer((128,), scope="shared")
                for i in range(4):
                    for t in T.thread_binding(32, thread="threadIdx.x"):
                        with T.block("S"):
                            vi = T.axis.spatial(128, i * 32 + t)
                            T.block_attr({"tir.manifest_shared_memory_local_stage": 1})
                            S[vi] = A[vk, vi]
                for i in range(4):
                    for t in T.thread_binding(32, thread="threadIdx.x"):
                        with T.block("B"):
                            vi = T.axis.spatial(128, i * 32 + t)
                            B[vk, vi] = S[127 - vi]
""")
    )
    a = numbers(6, 128)
    module = check_every_stage(sch.mod, target, [a, np.zeros_like(a)], a[:, ::-1])
    if target == "cuda":
        assert 'S_local = T.decl_buffer((8,), scope="local")' in module.script(), module.script()
        compiled(sch)
    else:
        b = np.zeros_like(a)
        tw.compile(sch, target=target)(a, b)
        np.testing.assert_array_equal(b, a[:, ::-1])


# ---- copies in the background


def swapped(module: ir.Module, old: str, new: str) -> ir.Module:
    text = module.script()
    assert old in text, text
    return from_source(text.replace(old, new))


@pytest.mark.parametrize("k", [4, 8, 32, 30])
@pytest.mark.parametrize(("values", "order"), SHARED)
def test_asynchronous_copies(values, order, k):
    sch = pipelined((16, 16, k), values, order, sorted({*values[:2]}))
    arrays, expected = operands(16, 16, k)
    module = check_every_stage(sch.mod, "cuda", arrays, expected)
    assert "async_scope" not in module.script()
    if k % 4 == 0:
        assert "T.ptx_cp_async" in module.script() and "T.ptx_wait_group" in module.script()
    for target in ("opencl", "llvm", "cuda -arch=sm_75"):
        text = _core.lower(sch.mod, target)[0].script() if target != "llvm" else ""
        assert "ptx_" not in text
    c = arrays[-1].copy()
    tw.compile(sch, target="opencl")(*arrays[:2], c)
    np.testing.assert_array_equal(c, expected)


@pytest.mark.parametrize(("values", "order"), SHARED)
def test_a_copy_is_not_there_before_threads_have_waited(values, order):
    """Each wait is needed, and no wait waits for less than it has to."""
    sch = pipelined((16, 16, 32), values, order, sorted({*values[:2]}))
    arrays, _ = operands(16, 16, 32)
    module = _core.lower(sch.mod, "cuda")[0]
    counts = sorted({int(count) for count in re.findall(r"ptx_wait_group\((\d+)\)", module.script())})
    assert counts
    for count in counts:
        late = swapped(module, f"T.ptx_wait_group({count})", f"T.ptx_wait_group({count + 1})")
        with pytest.raises(tw.Error) as raised:
            run(late, *arrays)
        assert raised.value.code == "interpret/async-copy"


def test_threads_wait_for_the_copies_of_other_threads():
    """A barrier between the start of a copy and the wait for it is none behind the wait."""
    sch = pipelined((16, 16, 32), (0, 0, 2), (0, 1, 2), [0])
    arrays, _ = operands(16, 16, 32)
    module = _core.lower(sch.mod, "cuda")[0]
    check_barriers_are_needed(module, arrays, module.script().count("tvm_storage_sync"))
    text = module.script().splitlines()
    waits = [number for number, line in enumerate(text) if "ptx_wait_group" in line]
    assert waits and all("tvm_storage_sync" in text[number + 1] for number in waits), module.script()


@pytest.mark.parametrize("values", [(0, 1), (0, 3)])
def test_loops_of_open_length_on_devices(values):
    """Groups of copies are counted right where the loop is shorter than the pipeline, too."""
    program = from_source(f"""
@T.prim_func
def main(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, 32))
    B = T.match_buffer(b, (n, 32))
    for bx in T.thread_binding(1, thread="blockIdx.x"):
        for k in T.serial(n, annotations={{{stages(values)}, "software_pipeline_async_stages": [0]}}):
            with T.block("body"):
                vk = T.axis.spatial(n, k)
                S = T.alloc_buffer((32,), scope="shared")
                for t in T.thread_binding(32, thread="threadIdx.x"):
                    with T.block("S"):
                        vi = T.axis.spatial(32, t)
                        S[vi] = A[vk, vi]
                for t in T.thread_binding(32, thread="threadIdx.x"):
                    with T.block("B"):
                        vi = T.axis.spatial(32, t)
                        B[vk, vi] = S[31 - vi]
""")
    kernel = tw.compile(program, target="opencl")
    for n in range(1, 7):
        a = numbers(n, 32)
        check_every_stage(program, "cuda", [a, np.zeros_like(a)], a[:, ::-1])
        b = np.zeros_like(a)
        kernel(a, b)
        np.testing.assert_array_equal(b, a[:, ::-1])
    assert "cp.async" in compiled(program).inspect("ptx")


WAITS = {
    "no other group has arrived": (
        """
        T.ptx_commit_group()
        T.ptx_wait_group(2)
        B[16 + t] = S[47 - t]
        T.ptx_wait_group(1)
        B[32 + t] = S[127 - t]""",
        [True, False, True],
    ),
    "all have arrived": (
        """
        T.ptx_wait_group(0)
        B[32 + t] = S[127 - t]
        for i in range(3):
            T.ptx_wait_group(0)
            B[16 + i] = S[64 + i]""",
        [True, True, False],
    ),
    "a loop of groups that push the last copy out": (
        """
        for i in range(3):
            T.ptx_commit_group()
        T.ptx_wait_group(3)
        B[32 + t] = S[127 - t]""",
        [True, True],
    ),
    "one branch waits": (
        """
        if n == 0:
            T.ptx_wait_group(0)
        else:
            T.ptx_commit_group()
        T.ptx_wait_group(1)
        B[32 + t] = S[127 - t]""",
        [True, False, True],
    ),
}


@pytest.mark.parametrize("name", list(WAITS))
def test_a_wait_for_nothing_needs_no_barrier(name):
    """Threads wait for one another behind each wait for copies that may have been under way."""
    steps, barriers = WAITS[name]
    program = from_source(f"""
@T.prim_func
def main(A: T.Buffer((128,)), B: T.Buffer((48,)), n: T.int32):
    for t in T.thread_binding(16, thread="threadIdx.x"):
        S = T.decl_buffer((128,), scope="shared")
        T.ptx_cp_async("float32", S.data, t * 4, A.data, t * 4, 16)
        T.ptx_commit_group()
        T.ptx_cp_async("float32", S.data, 64 + t * 4, A.data, 64 + t * 4, 16)
        T.ptx_commit_group()
        T.ptx_wait_group(1)
        B[t] = S[63 - t]{steps}
""")
    module = _core.lower(ir.Module({"main": program}), "cuda")[0]
    text = module.script().splitlines()
    waits = [number for number, line in enumerate(text) if "ptx_wait_group" in line]
    found = ["tvm_storage_sync" in text[number + 1] for number in waits]
    assert found == barriers, module.script()
    a = np.arange(128, dtype="float32")
    for size in (0, 1):
        b = run(module, a, np.zeros(48, "float32"), size)[1]
        np.testing.assert_array_equal(b[:16], a[63:47:-1])
        np.testing.assert_array_equal(b[32:], a[127:111:-1])


def test_copies_by_hand():
    def program(wait: str, condition: str = "") -> Any:
        return from_source(f"""
@T.prim_func
def main(A: T.Buffer((64,)), B: T.Buffer((64,))):
    for tx in T.thread_binding(16, thread="threadIdx.x"):
        S = T.decl_buffer((64,), scope="shared")
        T.ptx_cp_async("float32", S.data, tx * 4, A.data, tx * 4, 16{condition})
        T.ptx_commit_group()
        {wait}
        for i in range(4):
            B[tx * 4 + i] = S[tx * 4 + i]
""")

    a = numbers(64)
    waits = program("T.ptx_wait_group(0)")
    check_every_stage(waits, "cuda", [a, np.zeros(64, "float32")], a)
    half = program("T.ptx_wait_group(0)", ", tx < 8")
    check_every_stage(half, "cuda", [a, np.ones(64, "float32")], np.where(np.arange(64) < 32, a, 0))
    for wait in ("T.evaluate(0)", "T.ptx_wait_group(1)"):
        with pytest.raises(tw.Error) as raised:
            run(_core.as_module(program(wait)), a, np.zeros(64, "float32"))
        assert raised.value.code == "interpret/async-copy"
    with pytest.raises(tw.ScriptError) as raised:
        tw.compile(waits, target="opencl")
    assert raised.value.code == "codegen/not-on-device" and "ptx_cp_async" in str(raised.value)


def in_vectors(lanes: int, dtype: str = "float32", k: int = 64, rows: int = 32) -> tw.Schedule:
    """A product of tiles of 32 x 32, that 64 threads fetch by vectors, two steps ahead."""
    sch = tw.Schedule(from_source(matmul(rows, 32, k).script().replace("float32", dtype)))
    block = sch.get_block("C")
    i, j, r = sch.get_loops(block)
    by, ty, yi = sch.split(i, [None, 8, 4])
    bx, tx, xi = sch.split(j, [None, 8, 4])
    k0, k1 = sch.split(r, [None, 16])
    sch.reorder(by, bx, ty, tx, k0, k1, yi, xi)
    for loop, axis in zip([by, bx, ty, tx], ["blockIdx.y", "blockIdx.x", "threadIdx.y", "threadIdx.x"], strict=True):
        sch.bind(loop, axis)
    for number in (0, 1):
        copy = sch.cache_read(block, number, "shared")
        sch.compute_at(copy, k0)
        _, y, x, vector = sch.split(sch.fuse(*sch.get_loops(copy)[-2:]), [None, 8, 8, lanes])
        sch.bind(y, "threadIdx.y")
        sch.bind(x, "threadIdx.x")
        sch.vectorize(vector)
    for key, values in (("stage", [0, 0, 2]), ("order", [0, 1, 2]), ("async_stages", [0])):
        sch.annotate(k0, f"software_pipeline_{key}", values)
    return sch


@pytest.mark.parametrize(
    ("dtype", "lanes", "size"),
    [("float32", 1, 4), ("float32", 2, 8), ("float32", 4, 16), ("float16", 2, 4), ("float16", 8, 16), ("int8", 8, 8)],
)
def test_copies_of_4_8_and_16_bytes(dtype, lanes, size):
    sch = in_vectors(lanes, dtype)
    a, b = (np.random.default_rng(seed).integers(-2, 3, (64, 64)).astype(dtype) for seed in (0, 1))
    a, b = a[:32].copy(), b[:, :32].copy()
    expected = (a.astype("int64") @ b.astype("int64")).astype(dtype)
    module = check_every_stage(sch.mod, "cuda", [a, b, np.zeros((32, 32), dtype)], expected)
    assert re.search(rf"ptx_cp_async\(.*, {size}\)", module.script()), module.script()
    kernel = compiled(sch)
    text = kernel.inspect("ptx")
    assert f"cp.async.{'cg' if size == 16 else 'ca'}.shared.global" in text and "cp.async.wait_group" in text


@pytest.mark.parametrize(("dtype", "lanes"), [("float16", 1), ("int8", 2)])
def test_what_is_no_word_is_copied_as_ever(dtype, lanes):
    module = _core.lower(in_vectors(lanes, dtype).mod, "cuda")[0]
    assert "ptx_" not in module.script() and "async_scope" not in module.script()


def test_zeros_beyond_the_edge_are_copied_too():
    """A padded tile: threads beyond the last row copy nothing, and find zeros."""
    sch = tw.Schedule(
        from_source("""
@T.prim_func
def main(A: T.Buffer((8, 13)), B: T.Buffer((8, 16))):
    for bx in T.thread_binding(1, thread="blockIdx.x"):
        for k in T.serial(8, annotations={"software_pipeline_stage": [0, 1], "software_pipeline_order": [0, 1],
                                          "software_pipeline_async_stages": [0]}):
            with T.block("body"):
                vk = T.axis.spatial(8, k)
                S = T.alloc_buffer((16,), scope="shared")
                for i in T.thread_binding(16, thread="threadIdx.x"):
                    with T.block("S"):
                        vi = T.axis.spatial(16, i)
                        T.reads(A[vk, T.min(vi, 12)])
                        S[vi] = T.if_then_else(vi < 13, A[vk, vi], T.float32(0))
                for i in T.thread_binding(16, thread="threadIdx.x"):
                    with T.block("B"):
                        vi = T.axis.spatial(16, i)
                        B[vk, vi] = S[15 - vi]
""")
    )
    a = numbers(8, 13)
    expected = np.pad(a, ((0, 0), (0, 3)))[:, ::-1]
    module = check_every_stage(sch.mod, "cuda", [a, np.ones((8, 16), "float32")], expected)
    assert re.search(r"ptx_cp_async\(.*, 4, thread_x < 13\)", module.script()), module.script()
    compiled(sch)


# ---- refusals


@pytest.mark.parametrize(
    ("annotations", "code"),
    [
        ('"software_pipeline_stage": [0]', "lower/pipeline-list"),
        ('"software_pipeline_stage": [0, 1], "software_pipeline_order": [0]', "lower/pipeline-list"),
        ('"software_pipeline_stage": [0, 1], "software_pipeline_order": [0, 0]', "lower/pipeline-list"),
        ('"software_pipeline_stage": [0, -1]', "lower/pipeline-list"),
        ('"software_pipeline_stage": "0, 1"', "lower/pipeline-list"),
        (stages((0, 1), more=', "software_pipeline_async_stages": [2]'), "lower/pipeline-list"),
        (stages((0, 1), more=', "software_pipeline_async_stages": 0'), "lower/pipeline-list"),
        (stages((1, 0)), "lower/pipeline-order"),
        (stages((0, 0), (1, 0)), "lower/pipeline-order"),
    ],
)
def test_what_is_no_pipeline_is_refused(annotations, code):
    for target in ("llvm", "interpreter"):
        with pytest.raises(tw.Error) as raised:
            _core.lower(_core.as_module(chain("8", 2, annotations)), target)
        assert raised.value.code == code and "loop 'k'" in str(raised.value)


def test_iterations_that_run_at_the_same_time_are_no_pipeline():
    program = chain("8", 2, stages((0, 1)))
    parallel = from_source(program.script().replace("T.serial(8", "T.parallel(8"))
    with pytest.raises(tw.Error) as raised:
        _core.lower(_core.as_module(parallel), "llvm")
    assert raised.value.code == "lower/pipeline-loop"


def test_values_that_one_iteration_leaves_to_the_next_keep_their_order():
    def program(distance: int) -> Any:
        return from_source(f"""
@T.prim_func
def main(A: T.Buffer((16,)), B: T.Buffer((24,))):
    for k in T.serial(16, annotations={{{stages((0, 2))}}}):
        with T.block("t"):
            vk = T.axis.opaque(16, k)
            T.reads(B[vk])
            T.writes(A[vk])
            A[vk] = B[vk] + T.float32(1)
        with T.block("B"):
            vk = T.axis.opaque(16, k)
            T.reads(A[vk])
            T.writes(B[vk + {distance}])
            B[vk + {distance}] = A[vk] * T.float32(2)
""")

    for distance in (0, 1, 2, 3, 8):
        a, b = np.zeros(16, "float32"), numbers(24)
        wanted_a, wanted_b = a.copy(), b.copy()
        for k in range(16):
            wanted_a[k] = wanted_b[k] + 1
            wanted_b[k + distance] = wanted_a[k] * 2
        if distance in (1, 2):
            with pytest.raises(tw.Error) as raised:
                _core.lower(_core.as_module(program(distance)), "llvm")
            assert raised.value.code == "lower/pipeline-order"
            continue
        found = run(_core.lower(_core.as_module(program(distance)), "llvm")[0], a, b)
        np.testing.assert_array_equal(found[0], wanted_a)
        np.testing.assert_array_equal(found[1], wanted_b)
