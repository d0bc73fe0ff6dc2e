"""tvm.ir.instrument: callbacks about passes while they run."""

from __future__ import annotations

import functools
import inspect
import sys
import time
from collections.abc import Sequence
from typing import Any

__all__ = [
    "PassInstrument",
    "PassPrintingInstrument",
    "PassTimingInstrument",
    "PrintAfterAll",
    "PrintBeforeAll",
    "pass_instrument",
]


class PassInstrument:
    """Callbacks of a context for its passes; subclasses override the methods that they need."""

    def enter_pass_ctx(self) -> None:
        """Handle the start of the context."""

    def exit_pass_ctx(self) -> None:
        """Handle the end of the context."""

    def should_run(self, mod: Any, info: Any) -> bool:
        """Return whether a pass runs on the module; passes that the context requires always run."""
        return True

    def run_before_pass(self, mod: Any, info: Any) -> None:
        """Handle the start of a pass."""

    def run_after_pass(self, mod: Any, info: Any) -> None:
        """Handle the end of a pass, whose result is the module."""


def pass_instrument(pi_cls: Any = None) -> Any:
    """Decorate a class with some of the methods as a class of instruments."""

    def wrap(cls: Any) -> Any:
        if not inspect.isclass(cls):
            raise TypeError("pi_cls must be a class")
        made = type(cls.__name__, (cls, PassInstrument), {"__doc__": cls.__doc__})
        return functools.update_wrapper(made, cls, updated=())

    return wrap if pi_cls is None else wrap(pi_cls)


class PassTimingInstrument(PassInstrument):
    """How long each pass of the context took, those that it ran itself below it."""

    def __init__(self) -> None:
        self._lines: list[list[Any]] = []
        self._open: list[tuple[int, float]] = []

    def enter_pass_ctx(self) -> None:
        """Reset the times."""
        self._lines, self._open = [], []

    def run_before_pass(self, mod: Any, info: Any) -> None:
        """Start the clock of a pass."""
        self._open.append((len(self._lines), time.perf_counter()))
        self._lines.append([len(self._open) - 1, info.name, 0.0])

    def run_after_pass(self, mod: Any, info: Any) -> None:
        """Stop the clock of a pass."""
        line, begin = self._open.pop()
        self._lines[line][2] = time.perf_counter() - begin

    def render(self) -> str:
        """Return a line for each pass: its time and its fraction of all. Call it before the context ends."""
        whole = sum(seconds for depth, _, seconds in self._lines if depth == 0) or 1.0
        lines = [
            f"{'  ' * depth}{name}: {seconds * 1e6:.0f}us ({100 * seconds / whole:.2f}%)"
            for depth, name, seconds in self._lines
        ]
        return "\n".join([*lines, f"Total time: {whole * 1e3:.3f}ms"]) if lines else ""


class PassPrintingInstrument(PassInstrument):
    """Print the module before some passes, and after some."""

    def __init__(self, print_before_pass_names: Sequence[str], print_after_pass_names: Sequence[str]) -> None:
        self.print_before_pass_names, self.print_after_pass_names = print_before_pass_names, print_after_pass_names

    def run_before_pass(self, mod: Any, info: Any) -> None:
        """Print the module, if the pass is listed."""
        if info.name in self.print_before_pass_names:
            sys.stdout.write(f"Print IR before: {info.name}\n{mod}\n\n\n")

    def run_after_pass(self, mod: Any, info: Any) -> None:
        """Print the module, if the pass is listed."""
        if info.name in self.print_after_pass_names:
            sys.stdout.write(f"Print IR after: {info.name}\n{mod}\n\n\n")


class PrintBeforeAll(PassInstrument):
    """Print the module before each pass."""

    def run_before_pass(self, mod: Any, info: Any) -> None:
        """Print the module."""
        sys.stdout.write(f"Before Running Pass: {info.name}\n{mod}\n")


class PrintAfterAll(PassInstrument):
    """Print the module after each pass."""

    def run_after_pass(self, mod: Any, info: Any) -> None:
        """Print the module."""
        sys.stdout.write(f"After Running Pass: {info.name}\n{mod}\n")
