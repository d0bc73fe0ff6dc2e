"""Texts of programs with fields that are missing, null or of the wrong kind: refused, or a program like any other.

Nothing that is loaded may end the process, whatever is done with it. Every field of every node of some programs, before
and after lowering, is replaced by null, by other nodes and by values of other types.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from tests.samples import samples

import tilewright as tw
from tilewright import ir
from tilewright.script import tir as T


@T.prim_func
def product(a: T.handle, B: T.Buffer((6, 8)), C: T.Buffer((4, 8)), scale: T.float32):
    n = T.int32()
    A = T.match_buffer(a, (4, n), strides=(T.int32(), 1), offset_factor=1)
    X = T.alloc_buffer((4, 8), scope="local")
    for i in T.parallel(4):
        for j, k in T.grid(8, n):
            with T.block("X"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                T.block_attr({"note": [1, "two", {"three": T.float32(3)}]})
                with T.init():
                    X[vi, vj] = T.float32(0)
                X[vi, vj] += A[vi, vk] * B[T.min(vk, 5), vj]
    for i in T.serial(4, annotations={"pragma": 1}):
        with T.block("views"):
            vi = T.axis.spatial(4, i)
            T.reads(X[vi, 0:8])
            T.writes(C[vi, 0:8])
            V = T.match_buffer(X[vi, 0:8], (8,), offset_factor=1, scope="local")
            W = T.match_buffer(C[vi, 0:8], (8,), offset_factor=1)
            for j in T.vectorized(8):
                with T.block("C"):
                    vj = T.axis.spatial(8, j)
                    T.where(j < 7)
                    W[vj] = T.if_then_else(V[vj] > T.float32(0), T.exp(V[vj]) * scale, T.Select(vj > 2, V[vj], scale))


@T.prim_func
def statements(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
    T.func_attr({"tir.noalias": True})
    t = T.allocate([16], "int32", "global")
    D = T.decl_buffer((16,), "int32", data=t)
    for x in T.thread_binding(16, thread="threadIdx.x"):
        D[x] = A[x] // 3
    assert A[0] < 100, "small"
    y = A[2] + 1
    B[0:8:2] = T.Broadcast(y, 4)
    B[T.ramp(1, 2, 4)] = D[T.ramp(0, 1, 4)] + T.Cast("int32x4", T.Broadcast(T.float32(2), 4))
    if y > 3:
        B[15] = T.shift_left(y, 2)
    else:
        B[14] = T.truncmod(y, 5)
    while B[3] < 9:
        B[3] = B[3] + 1


def programs() -> dict[str, Any]:
    plain = tw.Schedule(product).mod
    texts = {"scheduled": plain, "statements": statements, "lowered": tw.lower(plain)}
    for name in ("lower_init_blocks", "lower_blocks"):
        texts[name] = tw.lower(plain, after=name)
    return {name: json.loads(ir.save_json(program)) for name, program in texts.items()}


PROGRAMS = programs()
SHARE = samples(10) / 1000  #: of the values that are put in the place of a field


def paths(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Places in a field, itself included."""
    yield at
    if isinstance(value, list):
        for number, item in enumerate(value):
            yield from paths(item, (*at, number))
    if isinstance(value, dict):
        for key, item in value.items():
            yield from paths(item, (*at, key))


#: stands for a text that json.dumps() does not write: lists in each other, as no program has them
DEEP = "<deep>"
NESTED = "[" * 100_000 + "]" * 100_000


def text_of(document: Any) -> str:
    return json.dumps(document).replace(json.dumps(DEEP), NESTED)


def replacements(value: Any, index: int, rng: random.Random) -> list[Any]:
    """Values to put there; small integers are nodes, of any kind."""
    nodes = [rng.randrange(max(index, 1)) for _ in range(6)]
    others: list[Any] = [
        None,
        -1,
        0,
        6,
        8,
        2**31,
        2**63,
        -(2**63),
        2**70,
        1.5,
        True,
        "",
        "x",
        "int32",
        "handle",
        [],
        {},
        DEEP,
    ]
    others += [[None], [0], [[0, 0]], {"x": None}, {"x": 0}, [value], [*value, None] if isinstance(value, list) else 3]
    return nodes + rng.sample(others[1:], 8) + [None]


def mutants(name: str, share: float, seed: int) -> Iterator[str]:
    rng = random.Random(seed)
    document = PROGRAMS[name]
    for index, node in enumerate(document["nodes"]):
        for field, value in node.items():
            for path in paths(value):
                for new in replacements(value, index, rng):
                    if new is not None and rng.random() > share:
                        continue
                    changed = copy.copy(document)
                    changed["nodes"] = list(document["nodes"])
                    changed["nodes"][index] = mutant = copy.deepcopy(node)
                    *way, last = (field, *path)
                    target = mutant
                    for step in way:
                        target = target[step]
                    target[last] = new
                    yield text_of(changed)
            changed = copy.copy(document)
            changed["nodes"] = list(document["nodes"])
            changed["nodes"][index] = {key: item for key, item in node.items() if key != field}
            yield text_of(changed)


def use(node: Any, is_compiled: bool) -> None:
    """Everything that there is to do with a program; errors are answers.

    Machine code is made of some: LLVM takes longer than all the rest, and sees only what lowering lets through.
    """

    def attempt(step: Any) -> bool:
        try:
            step()
        except tw.InternalError:
            raise
        except (tw.Error, TypeError, ValueError):
            return False
        return True

    attempt(lambda: node.script())
    attempt(lambda: ir.structural_hash(node))
    attempt(lambda: ir.structural_equal(node, node))
    attempt(lambda: ir.save_json(node))
    for stage in ("scheduled", "lowered"):
        attempt(lambda stage=stage: ir.verify(node, stage))
    attempt(lambda: tw.Schedule(node))
    attempt(lambda: tw.lower(node))
    if is_compiled:
        attempt(lambda: tw.compile(node))


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_mutants_are_refused_or_used(name: str) -> None:
    loaded = refused = 0
    for text in mutants(name, SHARE, seed=1):
        try:
            node = ir.load_json(text)
        except tw.Error:
            refused += 1
            continue
        loaded += 1
        use(node, is_compiled=loaded % 4 == 0)
    assert loaded > 20 and refused > 200


@pytest.mark.parametrize("text", [NESTED, NESTED[:100_000], '{"tilewright": 2, "root": 0, "nodes": ' + NESTED + "}"])
@pytest.mark.parametrize("load", [ir.load_json, ir.from_json])
def test_what_nests_too_deep(load: Any, text: str) -> None:
    """Writing such a value for a message would need a stack frame for each list."""
    with pytest.raises(tw.Error, match="nested too deep") as caught:
        load(text)
    assert not isinstance(caught.value, tw.InternalError)


def test_what_is_compiled_by_rules_is_verified_before() -> None:
    source = """@T.prim_func
def f(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
    for i in range(16):
        with T.block("b"):
            v = T.axis.spatial(16, i)
            B[v] = A[T.bitwise_and(A[v], 3) % 16]
"""
    text = json.loads(tw.ir.to_json(tw.script.from_source(source)))
    for node in text["nodes"]:
        if node["class"] == "Call":
            node["args"] = node["args"][:1]
    function = tw.ir.from_json(json.dumps(text))
    for schedule in (None, "by rules", "as written"):
        with pytest.raises(tw.ScriptError, match="takes 2 arguments, not 1"):
            tw.compile(function, schedule=schedule)
