"""tvm.target: targets with the attributes that TVM gives them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tilewright import _core
from tilewright.compat.tvm.alias import Renamed
from tilewright.kernel import device as devices
from tilewright.support.thread_stack import ThreadStack

__all__ = ["Target", "TargetKind", "create", "cuda", "current", "hexagon", "list_tags"]


class TargetKind(str):
    """The kind of a target: "llvm", ..."""

    @property
    def name(self) -> str:
        """Return the kind as plain text."""
        return str(self)


#: defaults that TVM returns for options that a target does not set
_DEFAULTS: dict[str, Any] = {
    **dict.fromkeys(("arch", "device_name", "mcpu"), ""),
    **dict.fromkeys(("max_function_args", "vtcm_capacity", "l2_cache_size_bytes"), 0),
    "model": "unknown",
}

_ACTIVE: ThreadStack[TargetAsTVM] = ThreadStack()


class TargetAsTVM(_core.Target):
    """A target with TVM's attributes, which is a context."""

    @property
    def kind(self) -> TargetKind:
        """Return the kind of the target."""
        return TargetKind(_core.Target.kind.__get__(self))

    @property
    def attrs(self) -> dict[str, Any]:
        """Return the options of the target, including those that follow from its processor."""
        return {name: value for name, value in json.loads(self.json()).items() if name not in ("kind", "host", "keys")}

    def __getattr__(self, name: str) -> Any:
        """Return an option by TVM's name: ``target.mcpu``, ``target.max_num_threads``."""
        options = self.attrs
        for key in (name, name.replace("_", "-")):
            if key in options:
                return options[key]
        if name in _DEFAULTS:
            return _DEFAULTS[name]
        if name in ("mattr", "libs"):
            return []
        raise AttributeError(f"the target has no {name}", name=name)

    @property
    def host(self) -> TargetAsTVM | None:
        """Return the target of the host code that launches it; None if there is none."""
        host = _core.Target.host.__get__(self)
        return None if host is None else TargetAsTVM(host)

    def with_host(self, host: _core.Target) -> TargetAsTVM:
        """Return this target, launched from another host."""
        return TargetAsTVM(_core.Target.with_host(self, host))

    def with_num_cores(self, cores: int) -> TargetAsTVM:
        """Return this machine with another number of cores."""
        return TargetAsTVM(_core.Target.with_num_cores(self, cores))

    @property
    def supports_integer_dot_product(self) -> bool:
        """Return whether devices have a product of four 8-bit integers: those of CUDA since sm_61."""
        return self.kind == "cuda" and self.arch.startswith("sm_") and int(self.arch[3:].rstrip("af")) >= 61

    @property
    def supports_cooperative_matrix(self) -> bool:
        """Return False: no target here is one of Vulkan, which has these matrices."""
        return False

    def get_target_device_type(self) -> int:
        """Return the type of the devices as DLPack numbers them."""
        kinds = {"cuda": "cuda", "opencl": "opencl"}
        return int(devices.device(kinds.get(self.kind, "cpu")).device_type)

    def export(self) -> dict[str, Any]:
        """Return the target as a dict, from which Target() creates an equal target."""
        exported = {"kind": str(self.kind), "tag": "", "keys": self.keys, **self.attrs}
        if self.host is not None:
            exported["host"] = self.host.export()
        return exported

    def __enter__(self) -> TargetAsTVM:
        _ACTIVE.items.append(self)
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        _ACTIVE.items.pop()


def current(allow_none: bool = True) -> TargetAsTVM | None:
    """Return the target of the innermost ``with`` statement. Without one, return None or raise ValueError."""
    found = _ACTIVE.current()
    if found is None and not allow_none:
        raise ValueError("there is no current target: open one by 'with Target(...)'")
    return found


def _with_stated_threads(description: Any) -> TargetAsTVM:
    """Create a target. As in TVM, `max_threads_per_block` is 0 unless it is stated or the GPU is named by a tag."""
    target = TargetAsTVM(description)
    if isinstance(description, _core.Target) or target.kind != "cuda" or description in list_tags():
        return target
    options = json.loads(target.json())
    if "max_threads_per_block" not in str(description):
        options["max_threads_per_block"] = 0
    return TargetAsTVM(options)


def list_tags() -> list[str]:
    """Return the tags, names of complete targets."""
    return _core.known_target_tags()


def hexagon(cpu_ver: str = "v68", *, num_cores: int = 1, vtcm_capacity: int = 0, **options: Any) -> TargetAsTVM:
    """Return a Hexagon digital signal processor, for scheduling only.

    Args:
        cpu_ver: version of the processor.
        num_cores: number of cores.
        vtcm_capacity: bytes of tightly coupled memory for vectors (VTCM).
        options: further options of TVM, which only concern generated code and are ignored.
    """
    return TargetAsTVM(
        {"kind": "hexagon", "mcpu": f"hexagon{cpu_ver}", "num-cores": num_cores, "vtcm-capacity": vtcm_capacity}
    )


class Target(metaclass=Renamed):
    """A target, and the target of the code that launches it."""

    node = _core.Target
    current = staticmethod(current)

    @staticmethod
    def make(target: Any, host: Any = None) -> Any:
        """Return the target; the host must be a processor."""
        made = _with_stated_threads(target)
        return made if host is None else made.with_host(_core.Target(host))

    @staticmethod
    def list_kinds() -> list[str]:
        """Return the names of the kinds of targets."""
        return _core.known_target_kinds()

    list_tags = staticmethod(list_tags)

    @staticmethod
    def from_device(device: Any) -> TargetAsTVM:
        """Return the target of a device that exists on this machine.

        Raises:
            ValueError: there is none.
        """
        found = devices.device(device) if isinstance(device, str) else device
        if found.kind == "cpu":
            return TargetAsTVM("native")
        if not found.exist:
            raise ValueError(f"there is no device {found} here")
        return _with_stated_threads(_core.Target(found.kind))

    @staticmethod
    def canon_target(target: Any) -> Any:
        """Return the target of a text or a dict; a target and None are returned unchanged."""
        return target if target is None or isinstance(target, _core.Target) else Target.make(target)

    @staticmethod
    def canon_target_and_host(target: Any, target_host: Any = None) -> tuple[Any, Any]:
        """Return the target, with that host if it has none, and the host."""
        made, host = Target.canon_target(target), Target.canon_target(target_host)
        if made is None:
            if host is not None:
                raise ValueError("there is a target for the host, but none that it launches")
            return None, None
        if made.host is None and host is not None:
            made = made.with_host(host)
        return made, made.host

    @staticmethod
    def target_or_current(target: Any) -> Any:
        """Return the target; for None, that of the innermost ``with`` statement.

        Raises:
            ValueError: there is neither.
        """
        return current(allow_none=False) if target is None else Target.canon_target(target)


create = Target.make


def cuda(model: str = "unknown", arch: str | None = None, options: str | Sequence[str] | None = None) -> TargetAsTVM:
    """Return a CUDA target; `model` is ignored."""
    more = options.split() if isinstance(options, str) else list(options or ())
    made: TargetAsTVM = Target.make(" ".join(["cuda", *([f"-arch={arch}"] if arch else []), *more]))
    return made
