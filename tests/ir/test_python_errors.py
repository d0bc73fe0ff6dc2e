"""What Python's side of the IR refuses."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest

import tilewright as tw
from tilewright import _core, ir
from tilewright.script import tir as T


@T.prim_func
def fill(A: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("A"):
            vi = T.axis.spatial(8, i)
            A[vi] = T.float32(1)


def sum_of(terms: int) -> ir.Expr:
    x = ir.Var("x", "int32")
    total = x
    for _ in range(terms):
        total = total + x
    return total


REFUSED: dict[str, Callable[[], object]] = {
    "ir/rewrite-sort": lambda: ir.rewrite(fill, lambda node: ir.Evaluate(0) if isinstance(node, ir.FloatImm) else None),
    "ir/rewrite-depth": lambda: ir.rewrite(sum_of(5000), lambda node: None),
    "ir/intrinsic-name": lambda: _core.call_intrinsic("tir.nothing", []),
    "ir/not-compiled": lambda: fill(3),
    "schedule/program": lambda: tw.Schedule(fill.body),
    "schedule/seed": lambda: tw.Schedule(fill, seed=-2),
}


@pytest.mark.parametrize("code", REFUSED)
def test_refusals(code: str) -> None:
    with pytest.raises(tw.ArgumentError) as error:
        REFUSED[code]()
    assert error.value.code == code
    assert error.value.hint


@pytest.mark.deep
def test_a_deep_expression_is_rewritten_up_to_the_limit() -> None:
    seen = []
    ir.rewrite(sum_of(100), lambda node: seen.append(node))
    assert len(seen) >= 101


@pytest.mark.deep
def test_no_memory_for_a_deep_stack() -> None:
    """In a process of its own whose address space is nearly used up."""
    code = """
import resource
import tilewright as tw
from tilewright import ir
x = ir.Var("x", "int32")
total = x
for _ in range(5000):
    total = total + x
pages = int(open("/proc/self/statm").read().split()[0])
limit = pages * resource.getpagesize() + (16 << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    tw.ir.structural_hash(total)
except tw.ResourceError as error:
    print(error.code, bool(error.hint))
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "stack/memory True\n"
