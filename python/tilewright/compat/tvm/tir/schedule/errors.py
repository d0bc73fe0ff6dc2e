"""Errors of schedule primitives in TVM's words: the whole program, with the places underlined and numbered."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tilewright import _core
from tilewright.errors import ScheduleError

#: What TVM calls primitives in messages where that is not the method's name with dashes.
_SPELLED = {
    "transform_layout": "transform_layout",
    "transform_block_layout": "transform_block_layout",
    "reindex_cache_read": "reverse-cache-read",
    "reindex_cache_write": "reverse-cache-write",
}


#: What "fast" messages of TVM say that scripts look at; others show the rule and what was observed.
_FAST = {
    "get_block/P2": "Cannot find a block with the specified name",
    "get_block/P3": "Found multiple blocks with the specified name",
}


#: Where TVM's Python asserts.
_ASSERTED = {"set_axis_separator/P1"}


def _text(method: str, sch: _core.Schedule, error: ScheduleError) -> str:
    """Return the message with the program; the first two underlined locations are called tir.Block#0, tir.For#1, ..."""
    if sch.error_render_level == "none":
        return "ScheduleError: (not rendered)"
    if sch.error_render_level == "fast":
        return f"ScheduleError: {_FAST.get(error.code, error)}"
    names = {node: f"tir.{type(node).__name__}#{i}" for i, node in enumerate(error.nodes)}
    script = sch.mod.script(syntax_sugar=False, obj_to_underline=list(names), obj_to_annotate=names)
    primitive = _SPELLED.get(method, method.replace("_", "-"))
    return (
        f"ScheduleError: An error occurred in the schedule primitive '{primitive}'.\n\n"
        f"The IR with diagnostic is:\n{script}\nError message: {error}"
    )


def translated(method: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the method of a schedule with its errors in TVM's wording."""

    @functools.wraps(function)
    def call(self: _core.Schedule, *args: Any, **kwargs: Any) -> Any:
        try:
            return function(self, *args, **kwargs)
        except ScheduleError as error:
            if error.code in _ASSERTED:
                raise AssertionError(error.message) from error
            error.args = (_text(method, self, error),)
            raise

    return call
