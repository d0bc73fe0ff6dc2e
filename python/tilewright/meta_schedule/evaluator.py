"""Timing a kernel as runners do: a warm-up call, then repeats of several calls each."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tilewright import _core
from tilewright.errors import ArgumentError
from tilewright.support import limits

__all__ = ["EvaluatorConfig", "evaluate"]


@dataclass(frozen=True)
class EvaluatorConfig:
    """Options for the number of calls of a kernel.

    Attributes:
        number: minimum number of calls per sample.
        repeat: number of samples.
        min_repeat_ms: minimum milliseconds of a sample; more calls are made if necessary.
        enable_cpu_cache_flush: whether the caches are filled with other data before each call.
    """

    number: int = 3
    repeat: int = 1
    min_repeat_ms: int = 100
    enable_cpu_cache_flush: bool = False

    def __post_init__(self) -> None:
        limits.kind("number", self.number, numbers.Integral, "a whole number of calls")
        limits.kind("repeat", self.repeat, numbers.Integral, "a whole number of samples")
        limits.kind("min_repeat_ms", self.min_repeat_ms, numbers.Real, "a number of milliseconds")
        if self.number < 1 or self.repeat < 1 or not self.min_repeat_ms >= 0:
            raise ArgumentError.of(
                "evaluator/config",
                f"{self} measures nothing",
                "number and repeat are at least 1, min_repeat_ms at least 0",
            )


def evaluate(kernel: Any, args: Sequence[Any], config: EvaluatorConfig) -> list[float]:
    """Return the seconds per call, one number for each repeat, without Python's overhead.

    Raises:
        tilewright.ArgumentError: the arguments do not fit the kernel.
    """
    kernel(*args)  # reports invalid arguments, and warms the caches
    number, samples = config.number, []
    for _ in range(config.repeat):
        spent = _seconds_of(kernel, number, args, config.enable_cpu_cache_flush)
        while spent * 1e3 < config.min_repeat_ms:
            wanted = config.min_repeat_ms / 1e3 / max(spent / number, 1e-9)
            number = max(2 * number, int(1.1 * wanted) + 1) if spent else 2 * number
            spent = _seconds_of(kernel, number, args, config.enable_cpu_cache_flush)
        samples.append(spent / number)
    return samples


def _seconds_of(kernel: Any, calls: int, args: Sequence[Any], flush: bool) -> float:
    if not flush:
        return float(_core.time_calls(kernel, calls, *args))
    spent = 0.0
    for _ in range(calls):
        _core.flush_caches()
        spent += _core.time_calls(kernel, 1, *args)
    return spent
