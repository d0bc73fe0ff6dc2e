"""The random test itself: it draws what it says, finds what is planted, and makes it small."""

import contextlib
import dataclasses
import itertools
import random
import re
import sys
from collections import Counter
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest
from tests.samples import samples

import tilewright as tw
from fuzz import arguments, devices, expressions, intrinsics, judge, minimize, programs, session, sparse, steps
from fuzz.judge import Case, Finding, Judge, NoCase
from tilewright import ir, script, te

MARKS = {
    "in place": " + ",
    "conditional stores": "    if ",
    "masked stores": "= T.Select(",
    "tuples": "xp: T.int32",
    "gathers and scatters": "[I[",
    "wrapped": ") % ",
    "mirrored": " - v",
    "padded": " <= v",
    "padded copies": " = T.if_then_else(",
    "clamped": "T.min(T.max(v",
    "views": "T.match_buffer(B",
    "views of views": "T.match_buffer(W",
    "nested blocks": "alloc_buffer((2,)",
    "symbolic": "n = T.int32()",
    "opaque": "T.reads(",
    "predicates": "T.where(",
    "zero trips": "range(0)",
    "while": "while w",
    "let": "x8: T.",
    "loops that are not serial": "T.vectorized(",
    "annotations": 'annotations={"note"',
    "inits": "with T.init():",
    "every dtype": "bfloat16",
    "limits": "-9223372036854775808",
    "offset domains": "T.axis.spatial((",
    "halves": " // 2)",
    "axes bound to data": ", I[i",
    "formulas": "v_i0",
    "functions of floats": "T.fmod(",
    "roots": "T.sqrt(",
    "stencils": " + 2])",
    "no dimensions": "[()] = ",
    "conditions of variables": "if (x",
    "statements outside of blocks": "\n    A1[",
    "vector code": "T.Ramp(",
    "masks of vectors": ".vstore([",
    "strides that the caller chooses": "', strides=(s",
    "rows apart": "strides=(15, ",
    "views with strides": "strides=[s",
    "loops of threads": "T.thread_binding(",
    "shared memory": "scope='shared'",
    "divisions where data allow": "!= T.int32(0), T.",
    "loads where data allow": " and I[",
    "loops of 64 bits": "in range(T.int64(",
    "buffers of 64 bits": "((T.int64(",
    "recurrences": " - 1] + ",
    "loops over data": " in range(T.min(I[",
    "loops over differences of data": ")) - T.max(T.max(I[",
    "steps that callers see": "'), B",
    "steps that do not commute": "= T.truncdiv(B",
}


def case_of(number: int) -> Case:
    drawn = programs.draw(number)
    return Case(drawn.text, drawn.special, drawn.sizes, number)


def test_programs_are_well_defined_and_have_everything() -> None:
    texts, reasons = [], Counter()
    for number in range(400):
        case = case_of(number)
        texts.append(case.text)
        try:
            Judge(case)
        except NoCase as reason:
            reasons[str(reason)] += 1
    assert reasons.total() < 40, reasons
    together = "\n".join(texts)
    assert [what for what, mark in MARKS.items() if mark not in together] == []
    assert [dtype for dtype in expressions.DTYPES if dtype not in together] == []


class Limited(int):
    """A number of int32 that no sum leaves."""

    def __new__(cls, value: int) -> "Limited":
        assert -(2**31) <= value < 2**31
        return super().__new__(cls, value)

    def __sub__(self, other: int) -> "Limited":
        return Limited(int(self) - other)


def test_extents_that_are_read_never_leave_int32() -> None:
    """For any data, no loop extent of a random program overflows int32: such a program would have no defined result."""
    functions = SimpleNamespace(min=min, max=max, if_then_else=lambda test, yes, no: yes if test else no)
    extremes = [-(2**31), -(2**31) + 3, -1, 0, 5, 9, 2**31 - 4, 2**31 - 1]
    found = set()
    for number in range(400):
        for extent in re.findall(r" in range\((.*I\[.*)\):", programs.draw(number).text):
            found.add(re.sub(r"I\[[^]]*\]|\d+", "n", extent))
            for one, other in itertools.product(extremes, repeat=2):
                at = re.sub(r"I\[([^]]*)\]", lambda m, a=one, b=other: "b" if m[1] == "2" else "a", extent)
                assert eval(at, {"T": functions, "a": Limited(one), "b": Limited(other)}) <= 12
    assert len(found) == 3


class InPlace(programs.Drawing):
    """Programs that store to what they have, again and again."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.rule = self.e.rule = "exact"
        self.oddness = self.e.oddness = 1.0
        self.is_symbolic = self.is_for_threads = False
        self.dtypes = [self.rng.choice(["float64", "float32", "float16"])]

    def stages(self):
        parts = programs.Parts
        return [parts.elementwise, parts.in_place, parts.bare, parts.kept, parts.inner_loops, parts.reduction]

    def target(self):
        return self.rng.choice([buffer for buffer in self.buffers if buffer is not self.e.index_buffer]), False


def test_floats_of_programs_that_are_exact_are_never_rounded() -> None:
    """Whatever iterations read of one another: a number that squares itself again and again would be."""
    judged, count = 0, samples(300)
    for number in range(count):
        drawn = InPlace(number).program()
        try:
            found = Judge(Case(drawn.text, False, drawn.sizes, number)).expected
        except NoCase:
            continue
        for array in (array for arrays in found for array in arrays):
            dtype = str(array.dtype)
            if dtype in expressions.FLOATS:
                numbers = array.astype("float64")
                numbers = numbers[np.isfinite(numbers)]
                assert (numbers == np.round(numbers)).all(), drawn.text
                assert (np.abs(numbers) < expressions.EXACT[dtype]).all(), drawn.text
                judged += 1
    assert judged > count / 2


def test_formulas_are_compared_with_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = [number for number in range(2000) if programs.formulas_of(number)]
    for number in numbers[:60]:
        Judge(case_of(number)).formulas()
    right = te.max
    monkeypatch.setattr(te, "max", te.min)
    with pytest.raises(Finding, match="by NumPy"):
        for number in numbers[:60]:
            Judge(case_of(number)).formulas()
    assert te.max is not right


def test_all_steps_are_accepted_at_times() -> None:
    counts: Counter[str] = Counter()
    for number in range(1500):
        if all(counts[name] for name in steps.STEPS):
            break
        try:
            drawn = Judge(case_of(number), counts)
        except NoCase:
            continue
        rng = random.Random(number)
        done = steps.Scheduling(drawn.func, drawn.names, number)
        for _ in range(5):
            name, code = done.draw(rng)
            counts[name] += not code
        frequent = {name for name in steps.STEPS if counts[name] > 2}  # rare ones are drawn more often after a while
        for _ in range(10 if len(frequent) < len(steps.STEPS) else 0):
            name, code = done.draw(rng, frequent)
            counts[name] += not code
    assert [name for name in steps.STEPS if not counts[name]] == []


def test_recorded_steps_give_the_same_program_and_may_be_left_out() -> None:
    drawn = Judge(Case(MATMUL))
    for seed in range(20):
        rng = random.Random(seed)
        done = steps.Scheduling(drawn.func, drawn.names, 1)
        codes = [done.draw(rng)[1] for _ in range(10)]
        again = steps.Scheduling(drawn.func, drawn.names, 1)
        # A step that was cut short is cut short again.
        assert {again.again(step) for step in done.done} <= {"", *codes}
        assert len(again.done) == len(done.done)
        ir.assert_structural_equal(again.sch.mod, done.sch.mod)
        fewer = steps.Scheduling(drawn.func, drawn.names, 1)
        for step in done.done[1:]:
            fewer.again(step)
        drawn.meaning(fewer.sch.mod, "scheduled")


#: What sketches of GPU kernels are made of.
OF_KERNELS = {"bind_tiles", "fetch", "bind", "split", "reorder", "cache_write", "reverse_compute_at", "compute_at"}


def test_kernels_whose_threads_share_tiles_mean_the_same() -> None:
    """Schedules bound to blocks and threads, with copies that threads fetch together."""
    drawn = Judge(Case(MATMUL))
    together = 0
    for seed in range(150):
        rng = random.Random(seed)
        done = steps.Scheduling(drawn.func, drawn.names, seed)
        for names in [{"cache_write", "bind_tiles"}, {"bind_tiles"}, {"reverse_compute_at", "fetch"}, {"fetch"}]:
            done.draw(rng, set(steps.STEPS) - names)
        for _ in range(5):
            done.draw(rng, set(steps.STEPS) - OF_KERNELS)
        drawn.scheduled(done, texts=seed % 8 == 0, kernel=False, after=None)
        together += fetches_together(done)
    assert together >= 10


def fetches_together(done: steps.Scheduling) -> bool:
    """Whether a loop around a block is bound again to an axis."""
    for block in done.dice.blocks.values():
        axes = [
            str(loop.thread_binding.thread_tag)
            for loop in map(done.sch.get, done.dice.loops(block))
            if loop.thread_binding
        ]
        if len(set(axes)) < len(axes):
            return True
    return False


MATMUL = """
@T.prim_func
def main(A: T.Buffer((4, 6), "float32"), B: T.Buffer((6, 5), "float32"), D: T.Buffer((4, 5), "float32")):
    C = T.alloc_buffer((4, 5), "float32")
    for i, j, k in T.grid(4, 5, 6):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
    for i, j in T.grid(4, 5):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = T.max(C[vi, vj], T.float32(1))
"""


@pytest.fixture
def wrong_where_vectorized(monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler that takes the minimum for the maximum in vectorized programs."""
    right = tw.compile

    def wrong(program: ir.Module, **how: str) -> tw.Kernel:
        text = program.script()
        if "T.vectorized(" in text:
            text = text.replace("T.max(", "T.min(")
        return right(script.from_source(text), **how)

    monkeypatch.setattr(tw, "compile", wrong)


class Here:
    """Answers in this process, so that what a test plants is seen."""

    def __init__(self) -> None:
        self.last: dict = {}

    def ask(self, request: dict, patience: float = 0.0) -> dict:
        return session.answer(request)

    def stop(self) -> None:
        pass


def test_a_planted_miscompilation_is_found_and_made_small(wrong_where_vectorized: None, monkeypatch, capsys) -> None:
    drawn = Judge(Case(MATMUL))
    found = None
    for seed in range(300):
        try:
            rare = {"decompose_reduction", "vectorize_reduction", "by_rules", "prefetch_indirect", "balance"}
            drawn.sequence(seed, without=rare)
        except Finding as finding:
            found = finding
            break
    assert found is not None and found.kind == "kernel"
    run = session.Session(child=Here())
    kind, small = run.recognized("kernel", drawn.case)
    assert kind == "kernel"
    small = minimize.minimize(small, kind, run.verdict, 120)
    *before, step = small.steps
    assert step.name.startswith("vectorize")
    assert len(before) <= 1  # that which has made the block whose loop it takes
    assert len(small.text.splitlines()) <= 12, small.text
    text = session.Session(child=Here()).reproduction(kind, small, 0)
    names: dict = {"script": script}
    # The script stands by itself: the program, and the steps as Python.
    program, _, trace = text.partition("sch = tw.Schedule(main, seed=1)\n")
    names["sch"] = tw.Schedule(script.from_source(program), seed=1)
    exec(trace, names)
    with pytest.raises(Finding, match="instead of"):
        Judge(small).kernel(names["sch"].mod, "kernel")


def test_a_planted_wrong_step_is_found_by_a_run(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    def wrong(d: steps.Dice) -> None:
        d.loop()
        raise ZeroDivisionError

    monkeypatch.setitem(steps.STEPS, "fuse", wrong)
    said: list[str] = []
    result = session.Session(said.append, minimizing=100, child=Here()).run(100, 1, limit=1)
    ((kind, _, case, number),) = result.findings
    assert kind == "step: ZeroDivisionError"
    assert [step.name for step in case.steps] == ["fuse"]
    assert len(case.text.splitlines()) <= 8
    assert result.next_seed == number + 1 and result.counts["programs"] == number
    assert "sch = tw.Schedule(main, seed=1)" in said[-1]


def test_crashes_and_hangs_of_children_are_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    crashing = session.Child([sys.executable, "-c", "import os; input(); os.kill(os.getpid(), 11)"])
    with pytest.raises(session.Crash, match="crash with status -11"):
        crashing.ask({})
    hanging = session.Child([sys.executable, "-c", "import time; time.sleep(100)"])
    with pytest.raises(session.Crash, match="hang"):
        hanging.ask({}, patience=0.2)
    assert hanging.process is None


@pytest.mark.parametrize(("number", "part"), [(4, "devices"), (8, "sparse")])
def test_a_crash_shows_the_part_that_crashed(number: int, part: str) -> None:
    class Crashing:
        last: ClassVar = {"part": part}

        def ask(self, request: dict, patience: float = 0.0) -> dict:
            raise session.Crash("crash with status -6")

    found = session.Session(child=Crashing()).program(number, Counter())
    want = devices.text_of(number) if part == "devices" else sparse.draw(number).text
    assert found is not None and (found[0], found[2].text) == ("crash with status -6", want)


def test_what_libraries_print_is_no_answer() -> None:
    noise = "session.answer = lambda request: (os.write(1, b'noise'), print('more'), request)[-1]"
    child = session.Child([sys.executable, "-c", f"import os; from fuzz import session; {noise}; session.child()"])
    assert child.ask({"program": 3}) == {"program": 3}
    child.stop()


def test_the_steps_before_a_crash_are_known() -> None:
    child = session.Child()
    child.ask({"tell": [5, 1]})
    told = [steps.Step(**step) for step in child.last["steps"]]
    child.stop()
    drawn = Judge(case_of(5))
    done = drawn.sequence(5001)
    assert [step.name for step in told][: len(done.done)] == [step.name for step in done.done][: len(told)]


def test_children_answer_as_this_process_does() -> None:
    child = session.Child()
    assert child.ask({"case": dataclasses.asdict(Case(MATMUL))}) == {"kind": None}
    assert child.last == {}
    counts = child.ask({"program": 5})["counts"]
    child.stop()
    assert counts == session.run_program(5)["counts"]


def test_steps_can_be_left_out() -> None:
    result = session.Session(without=["split", "fuse"]).run(100, 20, programs=10)
    assert result.next_seed == 30
    assert result.counts["split accepted"] + result.counts["fuse refused"] == 0 < result.counts["reorder accepted"]


def test_guards_and_bits() -> None:
    func = script.from_source(MATMUL)
    given = arguments.draw(func, {}, special=True, seed=0)
    assert given.damaged() is None and given.arrays[0].ctypes.data % 64 == 0
    given.memory[1][given.memory[1].size - 1] = 0
    assert given.damaged() == 1
    a = np.array([np.nan, 0.0, 1.0], np.float32)
    b = a.copy()
    b.view(np.uint32)[0] ^= 1
    assert arguments.difference([b], [a]) is None
    b[1] = -0.0
    assert arguments.difference([b], [a]) is None
    b[1] = 2.0
    assert "argument 0 at [1]: 2.0 instead of 0.0; 1 of 3" in str(arguments.difference([b], [a]))


def test_an_interrupt_ends_a_run_with_what_was_counted() -> None:
    class Interrupted:
        def ask(self, request: dict, patience: float = 0.0) -> dict:
            if request["program"] == 12:
                raise KeyboardInterrupt
            return {"counts": {"sequences": 8}, "finding": None}

        def stop(self) -> None:
            pass

    result = session.Session(child=Interrupted()).run(100.0, 10)
    assert (result.counts["sequences"], result.next_seed) == (16, 12)


def test_a_refusal_that_changes_the_program_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(d: steps.Dice) -> None:
        d.sch.split(d.loop(), [None, 2])
        d.sch.get_block("nowhere")

    monkeypatch.setitem(steps.STEPS, "split", wrong)
    drawn = Judge(Case(MATMUL))
    with pytest.raises(Finding, match="has changed the program"):
        for seed in range(50):
            drawn.sequence(seed)


def test_programs_that_are_not_well_defined_are_no_case() -> None:
    with pytest.raises(NoCase, match="verify/bounds"):
        Judge(Case(MATMUL.replace("A[vi, vk]", "A[vi + 2, vk]")))
    with pytest.raises(NoCase, match="script/"):
        Judge(Case(MATMUL.replace("T.grid", "T.nothing")))


def test_smaller_texts_are_programs_of_python() -> None:
    case = Case(MATMUL, steps=[steps.Step("split", ["C", 3])])
    smaller = list(minimize.with_smaller_text(case))
    assert len(smaller) > 50 and all(compile(each.text, "", "exec") for each in smaller)
    assert [each.steps[0].choices for each in minimize.with_smaller_choices(case)] == [["C", 2]]


@pytest.mark.parametrize(
    ("code", "is_finding"), [("ir/lanes", True), ("lower/race", True), ("lower/unknown-pass", False)]
)
def test_what_the_compiler_must_not_say(code: str, is_finding: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(module: ir.Module, **how: str) -> None:
        error = tw.ScriptError("no")
        error.code = code
        raise error

    monkeypatch.setattr(tw, "compile", refuse)
    drawn = Judge(Case(MATMUL))
    if is_finding:
        with pytest.raises(Finding, match=code):
            drawn.original()
    else:
        drawn.original()
        assert drawn.counts[f"original kernel, build: {code}"] == 1


def test_what_a_pass_breaks_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = script.from_source(MATMUL.replace("T.max", "T.min"))
    monkeypatch.setattr(tw, "lower", lambda module, after: wrong)
    drawn = Judge(Case(MATMUL, steps=[]))
    with pytest.raises(Finding, match=f"after {judge.PASSES[0]}"):
        drawn.again()


def test_intrinsics_of_tiles_tell_buffers_of_one_name_apart() -> None:
    copies = """
@T.prim_func
def main(A: T.Buffer((4,)), C: T.Buffer((4,))):
    B = T.alloc_buffer((4,))
    for i in range(4):
        with T.block("B"):
            v = T.axis.spatial(4, i)
            B[v] = A[v]
    for i in range(4):
        with T.block("C"):
            v = T.axis.spatial(4, i)
            C[v] = B[v]
"""
    sch = tw.Schedule(script.from_source(copies))
    back = sch.cache_write("B", 0, "global")
    again = sch.cache_read("C", 0, "global")
    sch.compute_inline(back)
    node = sch.get(again)
    assert {region.buffer.name for region in [*node.reads, *node.writes]} == {"B_global"}
    sch.tensorize(sch.get_loops(again)[-1], intrinsics.of_tile(node, {"v0": 4}))
    sch.verify()


@pytest.mark.parametrize(
    "value", ["B[0] + A[k]", "T.max(B[0], A[k])", "B[0] * 2 + A[k]", "A[k] - B[0]", "B[0] + k + B[0]"]
)
def test_intrinsics_of_reductions_keep_an_order_that_matters(value: str) -> None:
    sums = f"""
@T.prim_func
def main(A: T.Buffer((8,), "int32"), B: T.Buffer((1,), "int32")):
    for i in range(8):
        with T.block("B"):
            k = T.axis.reduce(8, i)
            B[0] = {value}
"""
    sch = tw.Schedule(script.from_source(sums))
    tile = intrinsics.of_tile(sch.get(sch.get_block("B")), {"k": 8})
    a, want, got = np.array([3, 1, 4, 1, 5, 9, 2, 6], "int32"), np.ones(1, "int32"), np.ones(1, "int32")
    tw.compile(sch, "interpreter", schedule="as written")(a, want)
    sch.tensorize(sch.get_loops("B")[0], tile)
    tw.compile(sch, "interpreter", schedule="as written")(a, got)
    assert got == want
    backwards = "7 - " in sch.mod.script()
    assert backwards == (value in ("B[0] + A[k]", "T.max(B[0], A[k])"))


def test_arrays_are_in_memory_as_buffers_say() -> None:
    func = script.from_source("""
@T.prim_func
def main(pA: T.handle, pB: T.handle):
    s = T.int32()
    t = T.int32()
    A = T.match_buffer(pA, (3, 4), strides=(s, t))
    B = T.match_buffer(pB, (3, 4), "int8", strides=(7, 1))
    for i, j in T.grid(3, 4):
        with T.block("A"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi, vj] = A[vi, vj] + T.Cast("float32", B[vi, vj])
""")
    seen = set()
    for seed in range(40):
        given = arguments.draw(func, {}, special=False, seed=seed)
        a, b = given.arrays
        assert b.strides == (7, 1) and given.damaged() is None
        seen.add(tuple(stride < 0 for stride in a.strides))
        same = given.copy()
        assert [array.strides for array in same.arrays] == [a.strides, b.strides]
        assert arguments.difference(same.arrays, given.arrays) is None
        tw.compile(func)(*same.arrays)
        np.testing.assert_array_equal(same.arrays[0], a + b)
        assert same.damaged() is None
        gap = given.memory[1][b.ctypes.data - given.memory[1].ctypes.data :][4:7]
        gap[0] = 0
        assert given.damaged() == 1
    assert len(seen) == 4


def test_programs_for_threads_are_judged() -> None:
    counts: Counter[str] = Counter()
    for number in range(1000):
        case = case_of(number)
        if "T.thread_binding(" not in case.text or "shared" not in case.text:
            continue
        with contextlib.suppress(NoCase):
            Judge(case, counts).sequence(number, without=set(steps.STEPS) - {"split", "reorder", "compute_at", "fuse"})
    assert sum(count for name, count in counts.items() if name.endswith("accepted")) > 20
