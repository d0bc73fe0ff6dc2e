"""Printed programs start with TVM's imports while its names are in use."""

from __future__ import annotations

from typing import Any

from tilewright import _core
from tilewright.compat.tvm.runtime.object_path import ObjectPath
from tilewright.script.display import print_script

_script = _core.Node.script


def script(self: _core.Node, *args: Any, **options: Any) -> str:
    """The node as TVMScript text, with TVM's imports."""
    underlined = options.get("path_to_underline") or []
    noted = options.get("path_to_annotate") or {}
    if underlined:
        options["path_to_underline"] = [_text(self, path) for path in underlined]
    if noted:
        options["path_to_annotate"] = {_text(self, path): note for path, note in noted.items()}
    return _script(self, *args, **{"package": "tvm", **options})


def _text(root: _core.Node, path: str) -> str:
    return path.to_text(root) if isinstance(path, ObjectPath) else path


def text(self: _core.Node) -> str:
    """The node as TVMScript text, with TVM's imports."""
    return script(self)


def trace_text(self: _core.Trace) -> str:
    """The trace as a function that takes a schedule."""
    lines = self.as_python() or ["pass"]
    return "# from tvm import tir\ndef apply_trace(sch: tir.Schedule) -> None:\n" + "\n".join(f"  {x}" for x in lines)


def show_trace(self: _core.Trace, style: str | None = None, black_format: bool | None = None) -> None:
    """Print the trace, colored where a program would be."""
    print_script(trace_text(self), style, black_format)


def show_schedule(
    self: _core.Schedule, style: str | None = None, black_format: bool | None = None, **options: Any
) -> None:
    """Print the program and the trace; the arguments are those of a program's show()."""
    self.mod.show(style, black_format, **options)
    show_trace(self.trace, style, black_format)


def print_as_tvm() -> None:
    """From now on."""
    setattr(_core.Trace, "show", show_trace)  # noqa: B010
    setattr(_core.Schedule, "show", show_schedule)  # noqa: B010
    for name in ("__str__", "__repr__"):
        setattr(_core.Trace, name, trace_text)
    for name, function in {"script": script, "__str__": text, "__repr__": text}.items():
        setattr(_core.Node, name, function)
