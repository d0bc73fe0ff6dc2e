"""tvm.ir.base: comparison, hashes, JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright import _core
from tilewright._core import Node
from tilewright.compat.tvm.runtime.object_path import ObjectPathPair
from tilewright.ir import load_json, save_json
from tilewright.support.nodes import nodes_of

__all__ = [
    "Node",
    "assert_structural_equal",
    "get_first_structural_mismatch",
    "load_json",
    "make_node",
    "save_json",
    "structural_equal",
    "structural_hash",
]


def _as_node(value: Any) -> Any:
    return _core.List(list(value)) if isinstance(value, list | tuple) else value


def _free_but_for_buffers(root: Any) -> list[Any]:
    """Return the variables that the statement uses and does not bind, in order of use, without the data variables of
    buffers."""
    data = [buffer.data for buffer in nodes_of(root, _core.Buffer)]
    return [v for v in _core.undefined_vars(root) if not any(v.same_as(pointer) for pointer in data)]


def _same_but_for_free_buffers(lhs: Any, rhs: Any) -> bool:
    """Return whether two statements are equal up to a mapping of the buffers that they do not declare.

    A buffer defines itself where TVM meets it first; other free variables are themselves.
    """
    if not isinstance(lhs, _core.Stmt) or not isinstance(rhs, _core.Stmt):
        return False
    left, right = (_free_but_for_buffers(root) for root in (lhs, rhs))
    same = len(left) == len(right) and all(a.same_as(b) for a, b in zip(left, right, strict=True))
    return same and _core.structural_equal(lhs, rhs, True)


class Proofs:
    """How many functions were found equal only since integer index expressions in them were proved to be."""

    functions = 0

    @classmethod
    def mismatch(cls, lhs: Any, rhs: Any, map_free_vars: bool) -> Any:
        """Return where two programs differ, as :func:`tilewright.ir.structural_mismatch`; None if they are equal.

        They are compared exactly first; where that fails, integer index expressions alone may differ, each proved equal
        under its loops.
        """
        exact = _core.structural_mismatch(lhs, rhs, map_free_vars)
        if exact is None or _same_but_for_free_buffers(lhs, rhs):
            return None
        found, functions = _core.mismatch_beyond_indices(lhs, rhs, map_free_vars)
        if found is None:
            cls.functions += functions
        return found

    @classmethod
    def report(cls) -> str:
        """Return a line for the end of a run; "" if no comparison needed a proof."""
        if cls.functions == 0:
            return ""
        return f"{cls.functions} functions compared equal after integer index expressions were proved equal"


def structural_equal(lhs: Any, rhs: Any, map_free_vars: bool = False) -> bool:
    """Return whether two programs, or lists of nodes, are equal up to names."""
    return _core.structural_equal(_as_node(lhs), _as_node(rhs), map_free_vars)


def assert_structural_equal(lhs: Any, rhs: Any, map_free_vars: bool = False) -> None:
    """Raise a ValueError if two programs differ, with the difference underlined on both sides as in TVM.

    Integer index expressions may be written in different ways, see :class:`Proofs`.
    """
    lhs, rhs = _as_node(lhs), _as_node(rhs)
    found = Proofs.mismatch(lhs, rhs, map_free_vars)
    if found is None:
        return
    found = _body_first(lhs, rhs, found, lambda a, b: Proofs.mismatch(a, b, map_free_vars))
    left, right = ObjectPathPair.of_text(lhs, rhs, found[0])
    raise ValueError(
        f"ValueError: StructuralEqual check failed, caused by lhs at {left}:\n"
        f"{lhs.script(path_to_underline=[left], syntax_sugar=False)}\n"
        f"and rhs at {right}:\n{rhs.script(path_to_underline=[right], syntax_sugar=False)}"
    )


def _body_first(lhs: Any, rhs: Any, found: Any, compare: Callable[[Any, Any], Any]) -> Any:
    """Return the first difference of two functions; like TVM, bodies are compared before attributes."""
    if not isinstance(lhs, _core.PrimFunc) or not isinstance(rhs, _core.PrimFunc):
        return found
    if found is None or not found[0].startswith("<root>.attrs"):
        return found
    same = _core.PrimFunc(rhs.params, rhs.buffer_map, rhs.ret_type, lhs.attrs, rhs.body, rhs.axes)
    return compare(lhs, same) or found


def get_first_structural_mismatch(lhs: Any, rhs: Any, map_free_vars: bool = False) -> ObjectPathPair | None:
    """Return the first difference of two programs, as paths on both sides; None if they are equal up to names."""
    lhs, rhs = _as_node(lhs), _as_node(rhs)
    found: Any = _core.structural_mismatch(lhs, rhs, map_free_vars)
    found = _body_first(lhs, rhs, found, lambda a, b: _core.structural_mismatch(a, b, map_free_vars))
    return None if found is None else ObjectPathPair.of_text(lhs, rhs, found[0])


def structural_hash(node: Any, map_free_vars: bool = False) -> int:
    """Return a number that is the same for equal programs; only types and order of free variables count."""
    return int(_core.structural_hash(_as_node(node)), 16)


def make_node(type_key: str, **kwargs: Any) -> Any:
    """Return attributes as a dict. Other kinds of nodes are created by their classes only."""
    if type_key not in ("ir.DictAttrs", "DictAttrs"):
        raise TypeError(f"Tilewright has no make_node of {type_key} yet")
    return kwargs
