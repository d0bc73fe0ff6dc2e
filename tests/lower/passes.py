"""What tests of single passes share: the program before and after one pass, as text, as nodes, and run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import tilewright as tw
from tilewright import _core, ir

TARGET = "llvm -mcpu=x86-64-v3"  # 16 registers of 8 floats


def lowered_before(program: Any, name: str, target: str = TARGET) -> ir.Module:
    """Lower the program by all passes before this one."""
    names = [each for each, _ in _core.list_passes()]
    if name == names[0]:
        return tw.Schedule(program).mod
    earlier = names[names.index(name) - 1]
    return tw.lower(program, after=earlier, target=target)


def around(program: Any, name: str, target: str = TARGET) -> tuple[ir.Module, ir.Module]:
    """Return the module that reaches a pass, and what the pass alone makes of it."""
    earlier = lowered_before(program, name, target)
    return earlier, _core.run_pass(name, earlier, target)


def script_after(program: Any, name: str, target: str = TARGET) -> str:
    """Return the script of what the pass alone makes of the program that reaches it."""
    return str(around(program, name, target)[1].script())


def check(before: Any, name: str, expected: Any) -> None:
    """Lowering `before` up to pass `name` gives `expected`, whatever their names are."""
    after = tw.lower(before, after=name, target=TARGET)
    ir.assert_structural_equal(next(iter(after.functions.values())).body, expected.body, map_free_vars=True)


def check_unchanged(program: Any, name: str, target: str = TARGET) -> None:
    """Assert that the pass has nothing to do in the program."""
    earlier, later = around(program, name, target)
    ir.assert_structural_equal(later, earlier)


def agrees(program: Any, name: str, given: Sequence[Any], expected: Sequence[Any], target: str = TARGET) -> None:
    """Assert that before and after the pass alone, the interpreter leaves `expected` in the arguments.

    Args:
        program: a program, from before lowering.
        name: the pass.
        given: the arguments; arrays are copied.
        expected: what the arrays among the arguments hold in the end, which NumPy has computed.
        target: what is lowered for.
    """
    for module in around(program, name, target):
        arguments = [each.copy() if isinstance(each, np.ndarray) else each for each in given]
        _core.interpret(module, next(iter(module.functions)), *arguments)
        arrays = [each for each in arguments if isinstance(each, np.ndarray)]
        for found, wanted in zip(arrays, expected, strict=True):
            np.testing.assert_array_equal(found, wanted, err_msg=module.script())


def allocations(program: Any, after: str) -> dict[str, tuple[str, list[Any]]]:
    """Return for each allocated buffer the loop around its block, and its shape."""
    found: dict[str, tuple[str, list[Any]]] = {}

    def walk(node: Any, loop: str) -> None:
        if isinstance(node, _core.For):
            loop = node.loop_var.name_hint
        if isinstance(node, _core.Block):
            for buffer in node.alloc_buffers:
                found[buffer.name] = (loop, [getattr(extent, "value", extent) for extent in buffer.shape])
        for child in (getattr(node, name, None) for name in ("body", "block", "then_case", "else_case", "init")):
            if child is not None:
                walk(child, loop)
        for child in getattr(node, "seq", ()):
            walk(child, loop)

    for func in tw.lower(program, after=after, target=TARGET).functions.values():
        walk(func.body, "")
    return found
