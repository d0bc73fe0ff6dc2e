"""The parser and the reader of JSON on damaged input: the answer is a program or a ScriptError, and it comes in time.

python tests/script/test_fuzz.py SECONDS [SEED]     longer, with other seeds
"""

import random
import string
import sys
import time

import pytest
from random_programs import program
from test_constructs import BODIES, PROGRAMS, function

import tilewright as tw
from tilewright import ir
from tilewright.script.ir_builder import IRBuilder
from tilewright.script.ir_builder import tir as B

SEEDS = [*map(function, BODIES.values()), *PROGRAMS.values()]
TOKENS = [
    *("T.grid(4, 4)", "T.block('b')", "with", "for i in", "range(n)", "A[i, 0:4]", "T.axis.remap('SR', [i, n])"),
    *(
        "def f():",
        "lambda x: x",
        "T.alloc_buffer((4,))",
        "n // 0",
        "n % 0",
        "1 << 63",
        "-1",
        "None",
        "True",
        "...",
        "*A",
    ),
    *(
        "T.float32('nan')",
        "T.int8(1000)",
        "1e400",
        "10**400",
        "[]",
        "{}",
        "()",
        "A.data",
        "cls.g",
        "import os",
        "@T.macro",
    ),
    *(
        "T.Ramp(0, 1, 0)",
        "T.Broadcast(n, -1)",
        "T.Let(n, where={})",
        "T.int32()",
        "T",
        "I",
        "\\",
        "'''",
        "#",
        "\t",
        "\x00",
        "é",
    ),
    *(
        "T.init()",
        "T.reads()",
        "return",
        "while n > 0:",
        "T.If(n > 1)",
        "yield",
        "await x",
        "global n",
        "del A",
        "x = y = n",
    ),
    *("A[", "]", "(", ")", ":", ",", "=", "==", "and", "not", "if", "else", "else:", "f'{n}'", "A.shape[9]", "n.x.y.z"),
]


def attempt(text: str, is_deep: bool = False) -> None:
    """Parses; what comes out must print and come back, unless it is nested too deep for Python."""
    start = time.process_time()
    try:
        parsed = tw.script.from_source(text)
    except tw.ScriptError as error:
        assert error.message, text
    else:
        printed = parsed.script(show_meta=True)
        try:
            again = tw.script.from_source(printed, check_well_formed=False)
        except tw.ScriptError as error:
            assert is_deep and error.code == "script/syntax", f"{error}\n{text}"
        else:
            ir.assert_structural_equal(again, parsed, True)
        ir.assert_structural_equal(ir.from_json(ir.to_json(parsed)), parsed, True)
    assert time.process_time() - start < 20, f"slow:\n{text}"


def random_text(rng: random.Random) -> str:
    if rng.random() < 0.3:
        return rng.randbytes(rng.randint(0, 200)).decode("utf-8", "replace")
    if rng.random() < 0.5:
        return "".join(rng.choice(string.printable) for _ in range(rng.randint(0, 200)))
    return function("\n".join(" ".join(rng.choices(TOKENS, k=rng.randint(1, 6))) for _ in range(rng.randint(1, 6))))


def mutated(rng: random.Random, text: str) -> str:
    """A few edits: of characters, of words, of lines."""
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(text) + 1)
        lines = text.splitlines(keepends=True) or [""]
        line = rng.randrange(len(lines))
        match rng.randrange(8):
            case 0:
                text = text[:at] + text[at + rng.randint(1, 5) :]
            case 1:
                text = text[:at] + rng.choice(TOKENS) + text[at:]
            case 2:
                text = text[:at] + rng.choice(string.printable) + text[at + 1 :]
            case 3:
                text = "".join(lines[:line] + lines[line + 1 :])
            case 4:
                text = "".join([*lines[:line], lines[line], *lines[line:]])
            case 5:
                other = rng.choice(SEEDS).splitlines(keepends=True)
                text = "".join([*lines[:line], rng.choice(other), *lines[line:]])
            case 6:
                lines[line] = rng.choice(["  ", "    ", "\t", ""]) + lines[line].lstrip()
                text = "".join(lines)
            case _:
                words = [w for w in text.replace("(", " ").replace(")", " ").replace(",", " ").split() if w.isascii()]
                if words:
                    text = text.replace(rng.choice(words), rng.choice([*words, *TOKENS]), 1)
    return text


def damaged_json(rng: random.Random) -> None:
    text = ir.to_json(program(rng.randrange(100)))
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(text))
        piece = rng.choice(["", "0", "9", "-1", '"', "null", "{}", "[]", "1e9", "Var", "true", "18446744073709551616"])
        text = text[:at] + piece + text[at + rng.randint(0, 3) :]
    try:
        read = ir.from_json(text)
    except tw.Error as error:
        assert error.message
    else:
        read.script(show_meta=True)
        ir.structural_hash(read)


def test_json_with_halves_of_characters() -> None:
    with pytest.raises(tw.ScriptError, match="halves of characters") as caught:
        ir.from_json('{"a": "\ud800"}')
    assert caught.value.code == "json/syntax"


def one(rng: random.Random) -> None:
    draw = rng.random()
    if draw < 0.25:
        attempt(random_text(rng))
    elif draw < 0.8:
        attempt(mutated(rng, rng.choice(SEEDS)))
    else:
        damaged_json(rng)


@pytest.mark.parametrize("seed", range(8))
def test_damaged_input(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(60):
        one(rng)


DEEP = {
    "parentheses": lambda n: function("A[0] = " + "(" * n + "A[1]" + ")" * n),
    "left sums": lambda n: function("A[0] = " + " + ".join(["A[1]"] * n)),
    "right sums": lambda n: function("A[0] = " + "A[1] + (" * n + "A[2]" + ")" * n),
    "negations": lambda n: function("A[0] = " + "-" * n + "A[1]"),
    "calls": lambda n: function("A[0] = " + "T.exp(" * n + "A[1]" + ")" * n),
    "lists": lambda n: function("x = T.meta_var(" + "[" * n + "]" * n + ")"),
    "comparisons": lambda n: function("A[0] = T.Select(" + " < ".join(["n"] * n) + ", A[1], A[2])"),
    "conjunctions": lambda n: function("A[0] = T.Select(" + " and ".join(["n < 3"] * n) + ", A[1], A[2])"),
    "conditions": lambda n: function("A[0] = " + "A[1] if n > 1 else " * n + "A[2]"),
    "attributes": lambda n: function("A[0] = n" + ".x" * n),
    "subscripts": lambda n: function("A[0] = " + "A[" * n + "0" + "]" * n),
    "loops": lambda n: function("\n".join(" " * i + "for i in range(2):" for i in range(n)) + "\n" + " " * n + "pass"),
    "branches": lambda n: function("\n".join(["if n > 1:\n    pass", *["elif n > 2:\n    pass"] * n])),
    "statements": lambda n: function("\n".join(["A[0] = 1.0"] * n)),
}


@pytest.mark.deep
@pytest.mark.parametrize("name", DEEP)
@pytest.mark.parametrize("depth", [80, 2000])
def test_deep_nesting(name: str, depth: int) -> None:
    attempt(DEEP[name](depth), is_deep=depth > 100)


@pytest.mark.deep
def test_ten_thousand_levels_through_builder_text_and_json() -> None:
    with IRBuilder() as builder, B.prim_func():
        B.func_name("main")
        A = B.arg("A", B.Buffer((8,), "float32"))
        n = B.arg("n", B.int32())
        value = A[0]
        for _ in range(9_000):
            value = B.exp(value)
        B.buffer_store(A, value, [0])
        frames = [B.If(n > 1) for _ in range(3_000)]
        inner = [B.Then() for _ in frames]
        for frame, then in zip(frames, inner, strict=True):
            frame.__enter__()
            then.__enter__()
        B.buffer_store(A, 1.0, [0])
        for frame, then in zip(reversed(frames), reversed(inner), strict=True):
            then.__exit__(None, None, None)
            frame.__exit__(None, None, None)
    func = builder.get()
    ir.assert_structural_equal(ir.from_json(ir.to_json(func)), func)
    assert len(func.script()) > 9_000
    assert ir.structural_hash(func) == ir.structural_hash(ir.from_json(ir.to_json(func)))


if __name__ == "__main__":
    seconds, first = float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    end, number = time.monotonic() + seconds, first
    while time.monotonic() < end:
        one(random.Random(number))
        number += 1
    print(f"{number - first} inputs, seeds {first} to {number - 1}")
