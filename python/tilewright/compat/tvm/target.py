"""tvm.target: targets with the attributes that TVM gives them."""

from __future__ import annotations

import json
import threading
from typing import Any

from tilewright import _core
from tilewright.compat.tvm.alias import Renamed, missing

__path__: list[str] = []
__getattr__ = missing("tvm.target")

__all__ = ["Target", "TargetKind", "current", "hexagon", "list_tags"]

_KIND = _core.Target.kind


class TargetKind(str):
    """What runs the code: "llvm", ..."""

    @property
    def name(self) -> str:
        """The kind as plain text."""
        return str(self)


def _kind(self: _core.Target) -> TargetKind:
    return TargetKind(_KIND.__get__(self))


def _attrs(self: _core.Target) -> dict[str, Any]:
    """The options of the target, those included that follow from its processor."""
    return {name: value for name, value in json.loads(self.json()).items() if name not in ("kind", "host")}


def _export(self: _core.Target) -> dict[str, Any]:
    """The target as a dict, of which Target() makes the same target."""
    exported = {"kind": str(self.kind), "tag": "", "keys": self.keys, **_attrs(self)}
    if self.host is not None:
        exported["host"] = _export(self.host)
    return exported


_local = threading.local()


def _stack() -> list[_core.Target]:
    """The targets whose `with` this thread is in."""
    stack: list[_core.Target] = _local.__dict__.setdefault("targets", [])
    return stack


def _enter(self: _core.Target) -> _core.Target:
    _stack().append(self)
    return self


def _exit(self: _core.Target, kind: Any, error: Any, traceback: Any) -> None:
    _stack().pop()


def current(allow_none: bool = True) -> _core.Target | None:
    """The target of the innermost `with`; without one, None or a ValueError."""
    if not _stack() and not allow_none:
        raise ValueError("there is no current target: open one by 'with Target(...)'")
    return _stack()[-1] if _stack() else None


def _with_stated_threads(description: Any) -> _core.Target:
    """The target; how many threads a block of a GPU has is known where it is said, or the GPU is named by its tag."""
    target = _core.Target(description)
    if isinstance(description, _core.Target) or _KIND.__get__(target) != "cuda" or description in list_tags():
        return target
    options = json.loads(target.json())
    if "max_threads_per_block" not in str(description):
        options["max_threads_per_block"] = 0
    return _core.Target(options)


def list_tags() -> list[str]:
    """Names of whole targets."""
    return _core.known_target_tags()


def hexagon(cpu_ver: str = "v68", *, num_cores: int = 1, vtcm_capacity: int = 0, **options: Any) -> _core.Target:
    """A digital signal processor, for schedules only.

    Args:
        cpu_ver: its version.
        num_cores: how many cores it has.
        vtcm_capacity: tightly coupled memory for vectors, in bytes.
        options: what else there is, which concerns generated code only.
    """
    return _core.Target(
        {"kind": "hexagon", "mcpu": f"hexagon{cpu_ver}", "num-cores": num_cores, "vtcm-capacity": vtcm_capacity}
    )


class Target(metaclass=Renamed):
    """A target, and the target of the code that launches it."""

    node = _core.Target
    current = staticmethod(current)

    @staticmethod
    def make(target: Any, host: Any = None) -> Any:
        """The target; the host must be a processor."""
        made = _with_stated_threads(target)
        return made if host is None else made.with_host(_core.Target(host))

    @staticmethod
    def list_kinds() -> list[str]:
        """What kinds of targets there are."""
        return _core.known_target_kinds()

    list_tags = staticmethod(list_tags)


def targets_as_tvm() -> None:
    """From now on targets have TVM's attributes, and are contexts."""
    for name, function in {"kind": _kind, "attrs": _attrs}.items():
        setattr(_core.Target, name, property(function))
    setattr(_core.Target, "export", _export)  # noqa: B010
    setattr(_core.Target, "__enter__", _enter)  # noqa: B010
    setattr(_core.Target, "__exit__", _exit)  # noqa: B010
