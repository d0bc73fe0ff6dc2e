"""tvm.testing: tests that run for several targets, of which this is one machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright import _core
from tilewright.compat.tvm.runtime.devices import Device, device
from tilewright.testing.requires import Requirement

__all__ = [
    "device_enabled",
    "enabled_targets",
    "exclude_targets",
    "fixtures",
    "known_failing_targets",
    "parametrize_targets",
    "requires_llvm_minimum_version",
    "uses_gpu",
]


def has_cuda() -> bool:
    """Return whether there is a CUDA device."""
    return device("cuda").exist


def device_enabled(target: Any) -> bool:
    """Return whether kernels for the target run on this machine."""
    kind = str(target if isinstance(target, str) else target.kind.name).split()[0]
    return kind == "llvm" or (kind == "cuda" and has_cuda())


def enabled_targets() -> list[tuple[str, Device]]:
    """Return the targets that kernels run for on this machine, with their devices."""
    return [(kind, device(kind)) for kind in ("llvm", "cuda") if device_enabled(kind)]


def fixtures() -> Any:
    """Return a pytest plugin with the fixtures `target` and `dev`."""
    import pytest

    class Fixtures:
        @pytest.fixture
        def target(self, request: Any) -> Any:
            return getattr(request, "param", "llvm")

        @pytest.fixture
        def dev(self, target: Any) -> Device:
            return device(str(target))

    return Fixtures()


def parametrize_targets(*targets: Any) -> Any:
    """Return the mark of a test that runs once for each of the targets; those without a device on this machine are
    skipped."""
    import pytest

    if len(targets) == 1 and callable(targets[0]) and not isinstance(targets[0], str | _core.Target):
        return targets[0]
    marked = [
        pytest.param(one, marks=[] if device_enabled(one) else [pytest.mark.skip(f"Tilewright has no {one} here")])
        for one in targets
    ]
    return pytest.mark.parametrize("target", marked, indirect=True)


def exclude_targets(*targets: str) -> Callable[[Any], Any]:
    """Return the mark of a test that does not run for some targets."""
    import pytest

    return pytest.mark.skip("not for this target") if "llvm" in targets else lambda test: test


def known_failing_targets(*targets: str) -> Callable[[Any], Any]:
    """Return the mark of a test that is known to fail for some targets."""
    import pytest

    return pytest.mark.xfail(reason="known to fail for this target") if "llvm" in targets else lambda test: test


def uses_gpu(func: Any = None) -> Any:
    """Mark a test that uses a GPU if there is one."""
    return func if func is not None else lambda test: test


def requires_llvm_minimum_version(major_version: int) -> Requirement:
    """Return the mark of tests that need a release of LLVM."""
    return Requirement(f"LLVM {major_version}", available=int(_core.llvm_version().split(".")[0]) >= major_version)
