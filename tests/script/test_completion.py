"""Regions that a script gives in part: what is missing is computed, but not of the root."""

import pytest

from tilewright import ir
from tilewright.script import from_source


def blocks_of(text: str) -> dict[str, ir.Block]:
    found: dict[str, ir.Block] = {}

    def note(node: ir.Node) -> None:
        if isinstance(node, ir.Block):
            found[node.name_hint] = node

    ir.post_order_visit(from_source(text).body, note)
    return found


def regions(block: ir.Block) -> tuple[list[str], list[str]]:
    return [str(region) for region in block.reads], [str(region) for region in block.writes]


PART = """
@T.prim_func
def main(A: T.Buffer((16, 16)), B: T.Buffer((16, 16))):
    for i, j in T.grid(16, 16):
        with T.block("X"):
            vi, vj = T.axis.remap("SS", [i, j])
            {given}
            B[vi, vj] = A[vi, vj] + T.float32(1)
"""


@pytest.mark.parametrize(
    ("given", "reads", "writes"),
    [
        ("pass", ["A[vi, vj]"], ["B[vi, vj]"]),
        ("T.reads(A[vi, 0:16])", ["A[vi, 0:16]"], ["B[vi, vj]"]),
        ("T.reads([A[vi, vj]])", ["A[vi, vj]"], ["B[vi, vj]"]),
        ("T.reads()", [], ["B[vi, vj]"]),
        ("T.writes(B[0:16, vj])", ["A[vi, vj]"], ["B[0:16, vj]"]),
        ("T.writes()", ["A[vi, vj]"], []),
    ],
)
def test_one_of_both(given: str, reads: list[str], writes: list[str]) -> None:
    assert regions(blocks_of(PART.format(given=given))["X"]) == (reads, writes)


ROOT = """
@T.prim_func
def main(A: T.Buffer((16,)), B: T.Buffer((16,))):
    with T.block({name}):
        {given}
        for i in range(16):
            with T.block("X"):
                v = T.axis.spatial(16, i)
                B[v] = A[v]
"""


@pytest.mark.parametrize("name", ['"root"', '"all"', ""])
@pytest.mark.parametrize(
    ("given", "reads", "writes"),
    [
        ("pass", [], []),
        ("T.reads(A[0:16])", ["A[0:16]"], []),
        ("T.writes(B[0:16])", [], ["B[0:16]"]),
        ("T.reads(A[0:16]); T.writes(B[0:16])", ["A[0:16]"], ["B[0:16]"]),
    ],
)
def test_the_root_keeps_what_is_said_of_it(name: str, given: str, reads: list[str], writes: list[str]) -> None:
    found = blocks_of(ROOT.format(name=name, given=given))
    assert regions(found[name.strip('"')]) == (reads, writes)
    assert regions(found["X"]) == (["A[v]"], ["B[v]"])


def test_a_block_with_axes_or_neighbors_is_no_root() -> None:
    text = ROOT.format(name='"all"', given="u = T.axis.spatial(1, 0)")
    assert regions(blocks_of(text)["all"]) == (["A[0:16]"], ["B[0:16]"])
    text = ROOT.format(name='"all"', given="pass") + "    A[0] = T.float32(1)\n"
    found = blocks_of(text)
    assert regions(found["all"]) == (["A[0:16]"], ["B[0:16]"]) and regions(found["root"]) == ([], [])


def test_a_script_with_such_a_root_is_the_one_without() -> None:
    text = """
@T.prim_func
def main(A: T.Buffer((16,)), B: T.Buffer((16,))):
    for i in range(16):
        with T.block("X"):
            v = T.axis.spatial(16, i)
            B[v] = A[v]
"""
    assert ir.structural_equal(from_source(text), from_source(ROOT.format(name='"root"', given="pass")))
