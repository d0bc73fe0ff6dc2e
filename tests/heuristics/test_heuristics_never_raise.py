"""Whatever goes wrong inside of heuristics: the program runs as it is written, and a note says so."""

import subprocess
import sys
import warnings

import numpy as np
import pytest

import tilewright as tw
from tilewright import _core
from tilewright import meta_schedule as ms
from tilewright.heuristics import cpu
from tilewright.heuristics.by_target import heuristic_schedules
from tilewright.heuristics.pattern import Match
from tilewright.script import from_source
from tilewright.script import tir as T


@T.prim_func
def scale(X: T.Buffer((64, 128), "float32"), Y: T.Buffer((64, 128), "float32")):
    for i, j in T.grid(64, 128):
        with T.block("Y"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = X[vi, vj] * T.float32(2)


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A rule that fails, as users see it."""
    monkeypatch.delenv("TILEWRIGHT_RAISE_HEURISTIC_FAILURES")

    works = cpu.schedule_single_block

    def fail(match: Match) -> None:
        if not match.info.reduced:
            raise KeyError("w0")
        works(match)

    monkeypatch.setattr(cpu, "schedule_single_block", fail)
    return monkeypatch


def check(kernel: tw.Kernel) -> None:
    x, y = np.random.default_rng(0).random((64, 128), np.float32), np.empty((64, 128), np.float32)
    kernel(x, y)
    np.testing.assert_array_equal(y, x * 2)
    (note,) = [note for note in kernel.notes if note.code == "compile/heuristic-failed"]
    assert kernel.schedule == "as written" and "KeyError: 'w0'" in note.message and note.function == kernel.name


@pytest.mark.parametrize("how", [{}, {"schedule": "by rules"}])
def test_a_rule_that_fails(broken: pytest.MonkeyPatch, how: dict[str, str]) -> None:
    check(tw.compile(scale, **how))


def test_an_estimate_that_fails(broken: pytest.MonkeyPatch) -> None:
    broken.undo()
    broken.delenv("TILEWRIGHT_RAISE_HEURISTIC_FAILURES")

    def fail(*_: object) -> None:
        raise KeyError("w0")

    broken.setattr(cpu, "seems_slower", fail)
    check(tw.compile(scale))


def test_a_schedule_that_does_not_compile(broken: pytest.MonkeyPatch) -> None:
    def too_many_registers(schedule: tw.Schedule, *_: object, **__: object) -> None:
        schedule.annotate(schedule.get_block("Y"), "tilewright.broken", 1)

    def compile_object(module: tw.ir.Module, *args: object) -> object:
        if "tilewright.broken" in seen.pop().script():
            raise KeyError("w0")
        return compiled(module, *args)

    def lower(module: tw.ir.Module, *args: object, **named: object) -> object:
        seen.append(module)
        return lowered(module, *args, **named)

    seen: list[tw.ir.Module] = []
    compiled, lowered = _core.compile_object, _core.lower
    broken.setattr(cpu, "schedule_for_cpu", too_many_registers)
    broken.setattr(_core, "compile_object", compile_object)
    broken.setattr(_core, "lower", lower)
    check(tw.compile(scale, schedule="by rules"))


def test_other_functions_of_the_module_keep_their_schedules(broken: pytest.MonkeyPatch) -> None:
    @T.prim_func
    def total(A: T.Buffer((64, 512), "float32"), B: T.Buffer((64,), "float32")):
        for i, k in T.grid(64, 512):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] += A[vi, vk]

    kernels = tw.compile(tw.ir.Module({"scale": scale, "total": total}))
    check(kernels["scale"])
    assert kernels["total"].schedule == "by rules"


def test_a_search(broken: pytest.MonkeyPatch) -> None:
    with pytest.warns(tw.PerformanceWarning, match=r"scale: it runs unscheduled: .* KeyError: 'w0'"):
        result = tw.tune(scale, trials=2, progress=None)
    check_tuned = result.kernel
    x, y = np.ones((64, 128), np.float32), np.empty((64, 128), np.float32)
    check_tuned(x, y)
    np.testing.assert_array_equal(y, x * 2)
    assert [note.code for note in check_tuned.notes].count("compile/heuristic-failed") == 1


def test_a_search_of_the_space_beside_others(broken: pytest.MonkeyPatch) -> None:
    with pytest.warns(tw.PerformanceWarning, match="it runs unscheduled"):
        result = tw.tune(scale, space=ms.CpuRules(), trials=2, progress=None)
    assert result.record is not None


def test_a_program_that_is_refused_is_no_failure_of_heuristics(broken: pytest.MonkeyPatch) -> None:
    """Its own error is raised, and nothing is said of a defect."""

    @T.prim_func(check_well_formed=False)
    def lowered(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("B"):
                v = T.axis.spatial(8, i)
                T.reads(A[v])
                T.writes(B[v + 1])
                B[v] = A[v]

    with warnings.catch_warnings():
        warnings.simplefilter("error", tw.PerformanceWarning)
        with pytest.raises(tw.ScriptError) as caught:
            tw.tune(lowered, trials=1, progress=None)
    assert caught.value.code.startswith("verify/")


def test_tests_see_such_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise KeyError("w0")

    monkeypatch.setattr(cpu, "schedule_single_block", fail)
    for run in (lambda: tw.compile(scale), lambda: tw.tune(scale, trials=1, progress=None)):
        with pytest.raises((KeyError, tw.Error), match="w0"):
            run()


def test_users_do_not_see_them() -> None:
    """Outside of tests nothing sets the variable."""
    code = "import os, tilewright; print(os.environ.get('TILEWRIGHT_RAISE_HEURISTIC_FAILURES'))"
    environment = {"PATH": "/usr/bin", "PYTHONPATH": ":".join(sys.path)}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert run.stdout == "None\n"


INSIDE = """
@T.prim_func
def main(A: T.Buffer(({outer}, {inner}, 8), "float32"), C: T.Buffer(({outer}, {inner}), "float32")):
    B = T.alloc_buffer(({shape}))
    for {loops}k in T.grid({shape}8):
        with T.block("B"):
            {axes}vk = T.axis.remap("{kinds}R", [{loops}k])
            with T.init():
                B[{places}] = T.float32(0)
            B[{places}] = B[{places}] + A[{term}, vk]
    for i in range({outer}):
        with T.block("outer"):
            w0 = T.axis.spatial({outer}, i)
            for j in range({inner}):
                with T.block("C"):
                    w1 = T.axis.spatial({inner}, j)
                    C[w0, w1] = B[{read}] * T.float32(2)
"""


@pytest.mark.parametrize(
    ("used", "read"),
    [("v", "w0"), ("v", "w1"), ("vw", "w0, w1"), ("vw", "w1, w0")],
    ids=["outer", "inner", "both", "turned"],
)
@pytest.mark.parametrize("size", [4, 16])
def test_sums_that_nested_blocks_use(used: str, read: str, size: int) -> None:
    """What a block with blocks inside reads of a sum is indexed by variables of either."""
    both = len(used) == 2
    text = INSIDE.format(
        outer=size,
        inner=size,
        shape=f"{size}, " * len(used),
        loops="i, j, " if both else "i, ",
        axes="vi, vj, " if both else "vi, ",
        places="vi, vj" if both else "vi",
        kinds="SS" if both else "S",
        term="vi, vj" if both else "vi, 0",
        read=read,
    )
    x = np.random.default_rng(0).integers(-9, 9, (size, size, 8)).astype(np.float32)
    sums = x.sum(-1)
    own = sums[:, 0]
    want = {
        "w0": np.repeat(own[:, None], size, 1),
        "w1": np.repeat(own[None, :], size, 0),
        "w0, w1": sums,
        "w1, w0": sums.T,
    }[read]
    for how in ({}, {"schedule": "by rules"}):
        y = np.empty((size, size), np.float32)
        tw.compile(from_source(text), **how)(x, y)
        np.testing.assert_array_equal(y, want * 2)


@pytest.mark.parametrize("empty", ["i", "j", "k", "l"])
@pytest.mark.parametrize("target", ["native", "opencl"])
@pytest.mark.parametrize(
    ("a_axes", "b_axes", "kept", "axes"),
    [("ik", "kj", "ij", "ikj"), ("ik", "ij", "j", "ikj"), ("ikl", "klj", "ij", "iklj"), ("kil", "kj", "j", "kilj")],
)
def test_loops_that_never_run(empty: str, target: str, a_axes: str, b_axes: str, kept: str, axes: str) -> None:
    """There is nothing to tile in a block without iterations; without an init, what was there stays."""
    extents = {"i": 3, "j": 5, "k": 1, "l": 6} | {empty: 0}
    kinds = "".join("S" if axis in kept else "R" for axis in axes)

    def shape(names: str) -> tuple[int, ...]:
        return tuple(extents[name] for name in names)

    def at(names: str) -> str:
        return ", ".join(f"v{name}" for name in names)

    program = from_source(f"""
@T.prim_func
def main(A: T.Buffer({shape(a_axes)}), B: T.Buffer({shape(b_axes)}), C: T.Buffer({shape(kept)})):
    for {", ".join(axes)} in T.grid({", ".join(str(extents[axis]) for axis in axes)}):
        with T.block("C"):
            {at(axes)} = T.axis.remap("{kinds}", [{", ".join(axes)}])
            C[{at(kept)}] = C[{at(kept)}] + A[{at(a_axes)}] * B[{at(b_axes)}]
""")
    a, b, c = (np.ones(shape(names), "float32") for names in (a_axes, b_axes, kept))
    expected = np.einsum(f"{a_axes},{b_axes}->{kept}", a, b) + c
    tw.compile(program, target, schedule="by rules")(a, b, c)
    np.testing.assert_array_equal(c, expected)


def test_an_init_that_reads_a_padded_operand() -> None:
    """What the sum adds has fewer dimensions than what its init reads, which is made under a condition."""
    program = from_source("""
@T.prim_func
def main(A: T.Buffer((2, 4), "float32"), D: T.Buffer((4,), "float32"), C: T.Buffer((2, 4), "float32")):
    B = T.alloc_buffer((2, 4), "float32")
    for i, j in T.grid(2, 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = T.if_then_else(vi == 1, A[vi, vj], T.float32(1))
    for i, k, j in T.grid(2, 3, 4):
        with T.block("C"):
            vi, vk, vj = T.axis.remap("SRS", [i, k, j])
            with T.init():
                C[vi, vj] = B[vi, vj]
            C[vi, vj] = C[vi, vj] + D[vj]
""")
    a, d, c = np.arange(8, dtype="float32").reshape(2, 4), np.arange(4, dtype="float32"), np.empty((2, 4), "float32")
    tw.compile(program)(a, d, c)
    np.testing.assert_array_equal(c, np.stack([np.ones(4), a[1]]) + 3 * d)


SIZES = """
@T.prim_func
def main(A: T.Buffer(({n}, {k}), "{a}"), B: T.Buffer(({k}, {m}), "{b}"), C: T.Buffer(({n}, {m}), "{c}")):
    for i, j, k in T.grid({n}, {m}, {k}):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.{c}(0)
            C[vi, vj] = C[vi, vj] + T.Cast("{c}", A[vi, vk]) * T.Cast("{c}", B[vk, vj])
"""


@pytest.mark.parametrize("target", ["native", "llvm -mcpu=sapphirerapids -num-cores=4", "opencl"])
@pytest.mark.parametrize("types", [("float32",) * 3, ("uint8", "int8", "int32"), ("bfloat16", "bfloat16", "float32")])
@pytest.mark.parametrize(
    "sizes", [(64, 64, 64), (2**31 - 1, 64, 3), (7, 2**31 - 1, 3), (2**40 + 15, 5, 1), (5, 3, 2**33)]
)
def test_extents_that_int32_does_not_hold(
    target: str, types: tuple[str, str, str], sizes: tuple[int, int, int]
) -> None:
    """Numbers of Python were of int32 or int64 as they are large, not as the program's indices are. Searches for a
    divisor do not try all numbers below a prime."""
    n, m, k = (f"T.int64({size})" for size in sizes)
    a, b, c = types
    found = heuristic_schedules(
        tw.ir.Module({"main": from_source(SIZES.format(n=n, m=m, k=k, a=a, b=b, c=c))}), tw.Target(target)
    )
    assert found.changed == ["main"] and not found.failed
