"""Loops whose iterations provably depend on one another are refused; the interpreter says which ones these are."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest

import tilewright as tw
from tilewright import script
from tilewright.script import tir as T

HEADER = (
    '@T.prim_func\ndef f(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32"), I: T.Buffer((64,), "int32")):\n'
)


def parse(body: str) -> tw.ir.PrimFunc:
    return script.from_source(HEADER + "".join(f"    {line}\n" for line in body.splitlines()))


def arguments() -> list[np.ndarray]:
    return [np.arange(64, dtype="float32"), np.zeros(64, "float32"), np.arange(64, dtype="int32")]


def races(program: tw.ir.PrimFunc) -> bool:
    """What the interpreter says, which sees each iteration."""
    try:
        tw.compile(program, target="interpreter", schedule="as written")(*arguments())
    except tw.ScriptError as error:
        assert error.code == "interpret/race"
        return True
    return False


def refused(program: tw.ir.PrimFunc, target: str = "llvm") -> bool:
    try:
        tw.compile(program, target=target, schedule="as written")
    except tw.ScriptError as error:
        assert error.code == "lower/race"
        return True
    return False


RACING = {
    "chain": "for i in KIND(63):\n    A[i + 1] = A[i] + T.float32(1)",
    "chain backwards": "for i in KIND(63):\n    A[i] = A[i + 1] + T.float32(1)",
    "two to one": "for i in KIND(64):\n    B[i // 2] = A[i]",
    "wrapped": "for i in KIND(64):\n    B[i % 32] = A[i]",
    "mirrored": "for i in KIND(64):\n    B[i] = B[63 - i] + T.float32(1)",
    "tiles that overlap": "for i in KIND(7):\n    for j in range(9):\n        B[i * 8 + j] = A[j]",
    "two statements": "for i in KIND(63):\n    B[i] = A[i]\n    A[i] = B[i + 1]",
    "in a branch": "for i in KIND(63):\n    if i > 5:\n        A[i + 1] = A[i]",
    "blocks": """for i in KIND(63):
    with T.block("S"):
        v = T.axis.spatial(63, i)
        A[v + 1] = A[v] + T.float32(1)""",
}
SHARED = {
    "one element": "for i in T.parallel(64):\n    B[0] = A[i]",
    "a sum": "for i in T.parallel(64):\n    B[0] = B[0] + A[i]",
    "a reduction": """for i in T.parallel(64):
    with T.block("S"):
        v = T.axis.reduce(64, i)
        with T.init():
            B[0] = T.float32(0)
        B[0] = B[0] + A[v]""",
    "a buffer of all": """t = T.alloc_buffer((1,))
for i in T.parallel(8):
    for j in range(8):
        t[0] = A[i * 8 + j]
B[0] = t[0]""",
}
FREE = {
    "own elements": "for i in KIND(64):\n    B[i] = A[i] + T.float32(1)",
    "in place": "for i in KIND(64):\n    A[i] = A[63 - i + i * 2 - 63] + T.float32(1)",
    "tiles": "for i in KIND(8):\n    for j in range(8):\n        B[i * 8 + j] = A[j]",
    "halves": "for i in KIND(32):\n    B[i] = B[i + 32]",
    "a branch that never runs": "for i in KIND(64):\n    if i > 99:\n        B[0] = A[i]",
    "data decide": "for i in KIND(64):\n    if A[i] > T.float32(1000):\n        B[0] = A[i]",
    "scatter": "for i in KIND(64):\n    B[I[i]] = A[i]",
    "odd and even": "for i in KIND(32):\n    B[i * 2] = B[i * 2 + 1]",
}


@pytest.mark.parametrize("kind", ["T.parallel", "T.vectorized"])
@pytest.mark.parametrize("what", RACING)
def test_races_are_refused(what: str, kind: str) -> None:
    program = parse(RACING[what].replace("KIND", kind))
    assert races(program) and refused(program)
    assert not refused(parse(RACING[what].replace("KIND", "range")))


def on_device(body: str) -> tw.ir.PrimFunc:
    """The loop is bound to the blocks of a kernel."""
    return parse(re.sub(r"KIND\((\d+)\)|T\.parallel\((\d+)\)", r'T.thread_binding(\1\2, thread="blockIdx.x")', body))


@pytest.mark.parametrize("what", [*RACING, *SHARED])
def test_races_of_blocks_are_refused(what: str) -> None:
    program = on_device((RACING | SHARED)[what])
    assert races(program) and refused(program, "opencl")


@pytest.mark.parametrize("what", FREE)
def test_blocks_that_do_not_meet_are_compiled(what: str) -> None:
    assert not refused(on_device(FREE[what]), "opencl")


THREADS = """for b in T.thread_binding(2, thread="blockIdx.x"):
    S = T.alloc_buffer((32,), "float32", scope="shared")
    for t in T.thread_binding(32, thread="threadIdx.x"):
        S[t] = A[b * 32 + t]
    for t in T.thread_binding(32, thread="threadIdx.x"):
        STATEMENT
"""


@pytest.mark.parametrize(
    "statement",
    [
        *("B[b * 32 + t // 2] = S[t]", "B[b * 32 + t % 16] = S[t]", "S[0] = S[t] + T.float32(1)"),
        *("B[b] = B[b] + S[t]", "B[t] = S[t]"),
    ],
)
def test_threads_that_store_different_values_to_one_element_are_refused(statement: str) -> None:
    program = parse(THREADS.replace("STATEMENT", statement))
    assert races(program) and refused(program, "opencl")


@pytest.mark.parametrize(
    "statement",
    [
        *("B[b * 32 + t] = S[31 - t]", "B[b * 32 + t % 16] = S[t % 16]", "B[b * 32] = A[b]"),
        *("B[b * 32 + (t * 5) % 32] = S[t]", "S[t] = S[t] + A[t]"),
    ],
)
def test_threads_that_wait_or_agree_are_compiled(statement: str) -> None:
    assert not refused(parse(THREADS.replace("STATEMENT", statement)), "opencl")


@pytest.mark.parametrize("what", SHARED)
def test_what_threads_share(what: str) -> None:
    program = parse(SHARED[what])
    assert races(program) and refused(program)
    # Lanes that all write one element have an order: the loop is serial, with a warning (docs/compiling.md).
    if what == "one element":
        with pytest.warns(tw.PerformanceWarning, match="not vectorized"):
            assert not refused(parse(SHARED[what].replace("parallel", "vectorized")))


@pytest.mark.filterwarnings("ignore::tilewright.PerformanceWarning")
@pytest.mark.parametrize("kind", ["T.parallel", "T.vectorized"])
@pytest.mark.parametrize("what", FREE)
def test_what_is_free_or_not_known_is_compiled(what: str, kind: str) -> None:
    program = parse(FREE[what].replace("KIND", kind))
    assert not races(program) and not refused(program)
    mine, plain = arguments(), arguments()
    tw.compile(program, schedule="as written")(*mine)
    tw.compile(parse(FREE[what].replace("KIND", "range")))(*plain)
    assert all((a == b).all() for a, b in zip(mine, plain, strict=True))


@pytest.mark.filterwarnings("ignore::tilewright.PerformanceWarning")
@pytest.mark.parametrize(
    "body",
    [
        SHARED["a sum"],
        SHARED["a reduction"],
        "for i in T.parallel(64):\n    B[i // 4] = B[i // 4] + A[i]",
        "for i in T.parallel(64):\n    B[i % 8] = T.max(A[i], B[i % 8])",
    ],
)
def test_lanes_put_reductions_together(body: str) -> None:
    assert refused(parse(body)) and races(parse(body))
    program = parse(body.replace("parallel", "vectorized"))
    assert not refused(program) and not races(program)


def test_buffers_of_iterations_are_their_own() -> None:
    program = parse("""for i in T.parallel(8):
    with T.block("outer"):
        v = T.axis.spatial(8, i)
        t = T.alloc_buffer((8,))
        for j in range(8):
            t[j] = A[v * 8 + j]
        for j in range(8):
            B[v * 8 + j] = t[7 - j]""")
    assert not races(program) and not refused(program)


def test_the_line_the_witness_and_a_hint() -> None:
    with pytest.raises(tw.ScriptError) as caught:
        tw.compile(parse(RACING["chain"].replace("KIND", "T.parallel")))
    text = str(caught.value)
    assert "function 'f'" in text and "A[1] in iteration i = 0 of a parallel loop" in text + text.replace(
        "i = 1", "i = 0"
    )
    assert caught.value.line == 4 and "hint: leave this loop serial" in text
    assert "^^^" in text, "the program is shown, though its text is not kept"


def test_what_is_not_proved_is_a_note() -> None:
    def notes(body: str) -> list[str]:
        return [
            note.message
            for note in tw.compile(parse(body), schedule="as written").notes
            if note.code == "lower/unproved-parallel"
        ]

    (note,) = notes(FREE["scatter"].replace("KIND", "T.parallel"))
    assert (
        note
        == "loop 'i' is parallel, and it is not proved that its iterations are independent: iterations may meet in 'B'"
    )
    assert notes(FREE["own elements"].replace("KIND", "T.parallel")) == []
    assert notes(FREE["tiles"].replace("KIND", "T.parallel")) == []
    assert notes(FREE["scatter"].replace("KIND", "range")) == []


def test_what_data_choose_on_a_device_is_a_note() -> None:
    def notes(body: str) -> list[tuple[str, str]]:
        script = f"""
@T.prim_func
def f(I: T.Buffer((64,), "int32"), A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for b in T.thread_binding(4, thread="blockIdx.x"):
        for t in T.thread_binding(16, thread="threadIdx.x"):
            {body}
"""
        kernel = tw.compile(tw.script.from_source(script), target="opencl")
        return [(note.code, note.message.split("'")[1]) for note in kernel.notes]

    assert notes("B[I[b * 16 + t]] = A[b * 16 + t]") == [("lower/unproved-parallel", "b")]
    assert notes("B[b * 16 + I[t]] = A[b * 16 + t]") == [("lower/unproved-parallel", "b")]
    assert notes("B[b * 16 + t] = A[I[b * 16 + t]]") == []
    assert notes("B[b * 16 + t] = A[b * 16 + t]") == []


def test_what_a_view_only_reads_is_no_meeting() -> None:
    """The blocks say nothing, so that only the accesses themselves can tell."""
    body = """
for i in T.parallel(16):
    with T.block("outside"):
        T.reads()
        T.writes()
        for k in range(4):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                T.reads(A[0:64], B[vi * 4:vi * 4 + 4])
                T.writes(B[vi * 4:vi * 4 + 4])
                a = T.match_buffer(A[0:64], (64,))
                T.writes(B[vi * 4])
                B[vi * 4] = B[vi * 4] + a[vk]
""".strip()
    body = body.replace("                T.writes(B[vi * 4])\n", "")
    kernel = tw.compile(parse(body), schedule="as written")
    assert [note.code for note in kernel.notes if note.code == "lower/unproved-parallel"] == []


def test_digits_of_a_loop_over_two_open_sizes_are_its_own() -> None:
    @T.prim_func
    def f(a: T.handle, b: T.handle):
        n = T.int32()
        m = T.int32()
        A = T.match_buffer(a, (n, m, 16))
        B = T.match_buffer(b, (n, m, 16))
        with T.block("root"):
            for q in T.parallel(n * m):
                for j in range(16):
                    B[q // m, q % m, j] = A[q // m, q % m, j] * 2.0

    kernel = tw.compile(f, schedule="as written")
    assert [note for note in kernel.notes if note.code == "lower/unproved-parallel"] == []
    a, b = np.random.default_rng(0).random((3, 5, 16), "float32"), np.zeros((3, 5, 16), "float32")
    kernel(a, b)
    np.testing.assert_array_equal(b, 2 * a)


def index_of(rng: random.Random) -> str:
    inner = rng.choice(
        ["i", "i", "i * 2", "i * 8 + j", "i + j", "63 - i", "i // 2", "i % 4", "i * 3", "j", "i * 4 + j * 2"]
    )
    return f"({inner} + {rng.choice([0, 0, 1, 2, 7])}) % 64"


@pytest.mark.filterwarnings("ignore::tilewright.PerformanceWarning")
def test_whatever_is_refused_races() -> None:
    rng = random.Random(0)
    counts = {True: 0, False: 0}
    for _ in range(150):
        target = rng.choice("AB")
        lines = [f"for i in {rng.choice(['T.parallel', 'T.vectorized'])}(8):", "    for j in range(8):"]
        for _ in range(rng.choice([1, 1, 2])):
            value = f"{rng.choice('AB')}[{index_of(rng)}] + T.float32(1)"
            guard = rng.choice(["", "", f"if i {rng.choice(['>', '<', '=='])} {rng.randrange(8)}: "])
            lines.append(f"        {guard}{target}[{index_of(rng)}] = {value}")
        program = parse("\n".join(lines).replace(": A[", ":\n            A[").replace(": B[", ":\n            B["))
        was_refused = refused(program)
        counts[was_refused] += 1
        assert not was_refused or races(program), program.script()
    assert min(counts.values()) > 10, counts


def test_vectors_that_overlap() -> None:
    rng = random.Random(1)
    counts = {True: 0, False: 0}
    for _ in range(120):
        lanes, stride, step = rng.choice([2, 4, 8]), rng.choice([1, 1, 2, 3, -1]), rng.choice([1, 2, 4, 8])
        start = (lanes - 1) * (stride < 0)
        body = f"for i in T.parallel(4):\n    B[T.ramp(i * {step} + {start}, {stride}, {lanes})] = A[0:{lanes}]"
        program = parse(body)
        assert refused(program) == races(program), program.script()
        counts[races(program)] += 1
    assert min(counts.values()) > 10, counts


def test_what_is_proved_by_axes_does_not_race() -> None:
    """Tiles that stick out of their axes, below a block that says nothing, so that the accesses must tell."""
    rng = random.Random(2)
    counts = {True: 0, False: 0}
    for _ in range(150):
        rows, extent, tile = rng.randrange(1, 4), rng.randrange(2, 12), rng.randrange(1, 6)
        apart = rng.choice([extent, extent, extent + 1, extent - 1, 1])
        tiles, shift = -(-extent // tile), rng.choice([0, 0, 1])
        row, column, step = rng.choice(
            [("i", "o", "k"), ("q // TILES", "q % TILES", "k"), ("i", "q % TILES", "k"), ("i", "o // 2", "k")]
        )
        fused = "q" in row + column
        loops = f"{rows if 'q' not in row else 1}, {tiles}, {tile}"
        kinds = f"for q in T.parallel({rows * tiles}):" if fused else f"for p in T.parallel({rows}):"
        row = row if fused else row.replace("i", "p")
        body = f"""
{kinds}
    with T.block("outside"):
        T.reads()
        T.writes()
        for i, o, k in T.grid({loops}):
            with T.block("B"):
                vi = T.axis.spatial({rows}, {row})
                vj = T.axis.spatial({extent}, ({column}) * {tile} + {step})
                T.where(({column}) * {tile} + {step} < {extent})
                B[vi * {apart} + vj + {shift}] = A[vj]
""".replace("TILES", str(tiles)).strip()
        program = parse(body)
        try:
            notes = tw.compile(program, schedule="as written").notes
        except tw.ScriptError as error:
            assert error.code == "lower/race" and races(program), body
            continue
        proved = "lower/unproved-parallel" not in [note.code for note in notes]
        counts[proved] += 1
        assert not proved or not races(program), body
    assert min(counts.values()) > 10, counts
