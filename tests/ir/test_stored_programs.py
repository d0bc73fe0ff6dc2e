"""Programs that are stored keep their hashes and stay readable.

`stored_programs.json` holds programs as version 2 of the format has written them, with their structural
hashes, which are keys of databases. Neither may ever change, whatever is added to the IR; see src/ir/added_fields.h.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.ir.test_json_mutations import product, statements

from tilewright import _core, ir
from tilewright.script import tir as T

STORED = Path(__file__).with_name("stored_programs.json")
ROOT = Path(__file__).resolve().parents[2]


@T.prim_func
def expressions(A: T.Buffer((8,), "int32"), F: T.Buffer((8,)), O: T.Buffer((8,), "int32", buffer_type="auto")):
    x = T.int32()
    O[4] = T.Let(x * x, where={x: A[5] + 1})
    O[0] = A[0] - A[1]
    O[1] = T.Div(A[0], 3) + A[1] % 5 + T.max(A[2], A[3])
    F[0] = F[1] / F[2]
    if (A[0] == A[1]) and (A[1] != A[2] or A[2] <= A[3]) and not (A[3] >= A[4]):
        O[3] = T.Shuffle([A[0], A[1]], [1])
    with T.attr(A.data, "note", "kept"):
        T.evaluate(T.call_extern("int32", "abs", A[3]))
    T.prefetch(A, [T.Range(0, 8)])


@T.prim_func
def constants(B: T.Buffer((4,), "int32")):
    table = T.allocate_const([1, 2, 3, 4], "int32", [4])
    C = T.decl_buffer((4,), "int32", data=table)
    for i in T.unroll(4):
        B[i] = C[i]


def others() -> list[Any]:
    """Nodes that functions hold rarely or never, and every kind of loop and axis."""
    i, j = ir.Var("i", "int32"), ir.Var("j", "int32")
    axes = [ir.IterVar(ir.Range(0, 4), ir.Var(f"v{int(kind)}", "int32"), kind) for kind in ir.IterType]
    thread = ir.IterVar(None, ir.Var("tx", "int32"), ir.IterType.THREAD_INDEX, "threadIdx.x")
    return [
        ir.IndexMap([i, j], [j, i * 2]),
        ir.CommReducer([i], [j], [i + j], [0]),
        ir.Module({"main": expressions, "other": constants}),
        ir.GlobalVar("other"),
        ir.BufferRealize(expressions.buffer_map[expressions.params[1]], [ir.Range(0, 8)], True, ir.Evaluate(0)),
        *axes,
        *[
            ir.For(i, 0, 4, kind, thread if kind == ir.ForKind.THREAD_BINDING else None, body=ir.Evaluate(i))
            for kind in ir.ForKind
        ],
    ]


def programs() -> list[Any]:
    return [product, statements, expressions, constants, *others()]


@pytest.fixture(scope="module")
def stored() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(STORED.read_text())
    return rows


def test_programs_keep_their_hashes_and_texts(stored: list[dict[str, Any]]) -> None:
    for program, row in zip(programs(), stored, strict=True):
        assert _core.structural_hash(program) == row["hash"]
        assert json.loads(ir.save_json(program)) == row["program"]


def test_what_is_stored_is_read(stored: list[dict[str, Any]]) -> None:
    for program, row in zip(programs(), stored, strict=True):
        read = ir.load_json(json.dumps(row["program"]))
        ir.assert_structural_equal(read, program, map_free_vars=True)
        assert _core.structural_hash(read) == row["hash"]


def test_every_kind_of_node_is_stored(stored: list[dict[str, Any]]) -> None:
    """But for kinds that came later, which are hashed by their names."""
    found = {node["class"] for row in stored for node in row["program"]["nodes"]}
    lines = (ROOT / "src/ir/kinds.def").read_text().splitlines()
    kinds = [line[2:].split(",")[0] for line in lines if line.startswith("X(")][:63]
    assert found == set(kinds)
