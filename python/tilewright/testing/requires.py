"""Marks of tests that need something of the machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Requirement:
    """Something that a test needs; tests are skipped where it is missing.

    >>> @requires_llvm
    ... def test_it(): ...
    >>> @pytest.mark.parametrize("target", [pytest.param("cuda", marks=requires_cuda.marks())])
    """

    def __init__(self, name: str, *, available: bool | Callable[[], bool] = False) -> None:
        self.name = name
        self._available = available

    @property
    def available(self) -> bool:
        """Return whether the feature is available. A function is called when a test is marked, so that devices are not
        searched before."""
        return self._available() if callable(self._available) else self._available

    def marks(self) -> list[Any]:
        """Return the marks for pytest."""
        import pytest

        return [pytest.mark.skipif(not self.available, reason=f"Tilewright has no {self.name} here")]

    def __call__(self, func: Any = None, *, support_required: str = "compile-and-run") -> Any:
        """Decorate a test; parentheses are optional. `support_required` may be "compile-only", too: both need the
        feature."""
        if support_required not in ("compile-and-run", "compile-only", "optional"):
            raise ValueError(f"support_required is {support_required!r}")
        if func is None:
            return self
        if support_required == "optional":
            return func
        for mark in self.marks():
            func = mark(func)
        return func


def host_features() -> frozenset[str]:
    """Return the feature names of this machine's processor."""
    from tilewright import _core

    return frozenset(_core.Target("native").features)


def requires_package(*names: str) -> Requirement:
    """Return the mark of a test that imports packages."""
    import importlib.util

    missing = [name for name in names if importlib.util.find_spec(name) is None]
    return Requirement(", ".join(missing or names), available=not missing)
