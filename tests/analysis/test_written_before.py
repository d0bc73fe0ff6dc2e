"""Which loads read only what the program has stored before, said by running the loops in Python."""

from __future__ import annotations

import pytest

import tilewright as tw
from tilewright import _core
from tilewright.script import from_source

#: Statements over A, B and C of 8 elements and a number `steps`, and whether B needs an argument.
PROGRAMS = {
    "the same element": ("for i in range(8):\n    B[i] = A[i]\n    C[i] = B[i]", False),
    "a later element": ("for i in range(8):\n    B[i] = A[i]\n    C[i] = B[7 - i]", True),
    "after the loop": ("for i in range(8):\n    B[i] = A[i]\nfor i in range(8):\n    C[i] = B[7 - i]", False),
    "half of the elements": ("for i in range(4):\n    B[i] = A[i]\nfor i in range(8):\n    C[i] = B[i]", True),
    "what half has stored": ("for i in range(4):\n    B[i] = A[i]\n    C[i] = B[i]", False),
    "never read": ("for i in range(steps):\n    B[i] = A[i]", False),
    "before the store": ("for i in range(8):\n    C[i] = B[i]\n    B[i] = A[i]", True),
    "in the same branch": ("for i in range(8):\n    if A[i] > 0:\n        B[i] = A[i]\n        C[i] = B[i]", False),
    "in the other branch": (
        "for i in range(8):\n    if A[i] > 0:\n        B[i] = A[i]\n    else:\n        C[i] = B[i]",
        True,
    ),
    "behind a branch": ("for i in range(8):\n    if A[i] > 0:\n        B[i] = A[i]\n    C[i] = B[i]", True),
    "a loop that may not run": (
        "for t in range(steps):\n    for i in range(8):\n        B[i] = A[i]\nfor i in range(8):\n    C[i] = B[i]",
        True,
    ),
    "in a loop that may not run": (
        "for t in range(steps):\n    for i in range(8):\n        B[i] = A[i]\n"
        "    for i in range(8):\n        C[i] = B[i]",
        False,
    ),
    "the tile": (
        "for t in range(2):\n    for i in range(4):\n        B[t * 4 + i] = A[i]\n"
        "    for i in range(4):\n        C[t * 4 + i] = B[t * 4 + 3 - i]",
        False,
    ),
    "the next tile": (
        "for t in range(2):\n    for i in range(4):\n        B[t * 4 + i] = A[i]\n"
        "    for i in range(4):\n        C[t * 4 + i] = B[(t + 1) % 2 * 4 + i]",
        True,
    ),
    "tiles with a condition": (
        "for t, i in T.grid(3, 3):\n    with T.block('B'):\n        T.where(t * 3 + i < 8)\n"
        "        v = T.axis.spatial(8, t * 3 + i)\n        B[v] = A[v]\n"
        "for i in range(8):\n    C[i] = B[i]",
        False,
    ),
    "tiles of half the axis": (
        "for i in range(8):\n    with T.block('B'):\n        v = T.axis.spatial(8, i // 2)\n        B[v] = A[v]\n"
        "for i in range(8):\n    C[i] = B[i]",
        True,
    ),
    "diagonals": (
        "for t in range(4):\n    for i in range(4):\n        with T.block('B'):\n"
        "            v = T.axis.spatial(8, t + i)\n            B[v] = A[v]\n"
        "for i in range(8):\n    C[i] = B[i]",
        True,
    ),
    "the end of the axis": (
        "for i in range(9):\n    with T.block('B'):\n        T.where(i >= 4)\n"
        "        v = T.axis.spatial(8, i - 1)\n        B[v] = A[v]\n"
        "for i in range(8):\n    C[i] = B[i]",
        True,
    ),
    "not in the first iteration": (
        "for t in range(2):\n    for i in range(8):\n        with T.block('B'):\n            T.where(t >= 1)\n"
        "            v = T.axis.spatial(8, i)\n            B[v] = A[v]\n"
        "    for i in range(8):\n        C[i] = B[7 - i]",
        True,
    ),
    "in all iterations": (
        "for t in range(2):\n    for i in range(8):\n        with T.block('B'):\n            T.where(t < 2)\n"
        "            v = T.axis.spatial(8, i)\n            B[v] = A[v]\n"
        "    for i in range(8):\n        C[i] = B[7 - i]",
        False,
    ),
    "an index that changes": ("B[C[0]] = 1\nC[0] = 3\nC[1] = B[C[0]]", True),
    "an index that stays": ("B[A[0]] = 1\nC[0] = 3\nC[1] = B[A[0]]", False),
    "a condition on data": (
        "for i in range(8):\n    with T.block('B'):\n        T.where(A[i] > 0)\n"
        "        v = T.axis.spatial(8, i)\n        B[v] = A[v]\n"
        "for i in range(8):\n    C[i] = B[i]",
        True,
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_loads_of_what_was_stored(name: str) -> None:
    body, needed = PROGRAMS[name]
    indented = "\n".join("    " + line for line in body.splitlines())
    function = from_source(f"""
@T.prim_func
def main(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32"), steps: T.int32):
{indented}
""")
    roles = _core.parameter_roles(function, tw.Schedule(function).mod)
    assert roles[1][0] == ("inout" if needed else "output")
    # The loops themselves, in Python: whether some element is read before it is stored.
    for data, steps in (([1] * 8, 8), ([0] * 8, 0), ([1, 0] * 4, 3)):
        early = run(body, data, steps)
        assert needed or not early
    assert not needed or any(run(body, data, steps) for data, steps in (([1] * 8, 8), ([0] * 8, 0), ([1, 0] * 4, 3)))


class Watched:
    """An array that notes whether an element is read before it is stored."""

    def __init__(self) -> None:
        self.stored: set[int] = set()
        self.early = False

    def __setitem__(self, index: int, value: int) -> None:
        self.stored.add(index)

    def __getitem__(self, index: int) -> int:
        self.early |= index not in self.stored
        return 0


def run(body: str, data: list[int], steps: int) -> bool:
    lines = []
    for line in body.splitlines():
        if "T.block" in line:
            line = line.replace("with T.block('B')", "if True")
        elif "T.where" in line:
            line = line.replace("T.where(", "if not (") + ": continue"
        elif "T.axis.spatial" in line:
            line = line.replace("T.axis.spatial(8, ", "(")
        lines.append(
            line.replace("for t, i in T.grid(3, 3)", "for t, i in ((t, i) for t in range(3) for i in range(3))")
        )
    watched = Watched()
    exec("\n".join(lines), {"A": data, "B": watched, "C": [0] * 8, "steps": steps})
    return watched.early
