"""The limits of the machine that this runs on, measured: peak arithmetic, and bandwidth of each level of memory."""

from __future__ import annotations

import contextlib
import json
import math
import os
import time
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from tilewright import _core
from tilewright.support.notes import announced
from tilewright.support.wrong_arguments import explained

#: how a target is given: its text, the same as a dict, or itself
TargetLike = str | dict[str, Any] | _core.Target


def is_for_device(target: TargetLike) -> bool:
    """Return whether kernels of a target run on a device with memory of its own, launched by code of the host."""
    return "gpu" in _core.Target(target).keys


@dataclass(frozen=True)
class Roof:
    """A limit on one call: no kernel is faster than `seconds`, because of `name` (vector ports, L2, memory, ...)."""

    name: str
    seconds: float


@dataclass(frozen=True)
class Level:
    """A level of the memory hierarchy: what fits (bytes; 0 for memory) and how fast it is read (bytes per second)."""

    name: str
    capacity: int
    bandwidth: float


@dataclass(frozen=True)
class Roofs:
    """Measured limits for a number of threads, or of a device.

    Attributes:
        threads: of the processor; 0 for a device.
        peaks: operations per second by the dtype of what is multiplied or added; of "int8" and "bfloat16" those of dot
            products, whose sums are wider, where the processor has instructions for them.
        levels: from the fastest to the largest.
        arithmetic: the name of the limit that `peaks` are.
    """

    threads: int
    peaks: dict[str, float]
    levels: tuple[Level, ...]
    arithmetic: str = "vector ports"

    def binding(self, flops: float, traffic: float, dtype: str = "float32", *, cold: bool = False) -> Roof:
        """The limit that binds a call of that many operations and bytes of compulsory traffic.

        The traffic runs at the speed of the smallest level that holds all of it; of memory when `cold`. (The roofline
        of Williams, Waterman and Patterson, CACM 2009, with one ceiling for each cache level.) Of a type whose peak is
        not known, a processor computes as many as of float32; a device may have units for products of it, so that its
        memory alone is a limit.
        """
        level = next((x for x in self.levels if not cold and x.capacity >= traffic), self.levels[-1])
        otherwise = self.peaks["float32"] if self.threads else math.inf
        arithmetic = flops / self.peaks.get(dtype, otherwise)
        movement = traffic / level.bandwidth
        if arithmetic >= movement:
            return Roof(self.arithmetic, arithmetic)
        return Roof(level.name, movement)


#: of a machine that was not measured: no time falls below them
UNKNOWN_ROOFS = Roofs(0, {"float32": math.inf}, (Level("", 0, math.inf),), "")


@explained
def cpu_count(logical: bool = True) -> int:
    """How many processors this process may use; with `logical` false, those of one core count once."""
    usable = os.sched_getaffinity(0)
    if logical:
        return len(usable)
    places = (Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list") for cpu in usable)
    cores = {place.read_text() for place in places if place.exists()}
    return len(cores) or len(usable)


@explained
def rate_unit(dtype: str) -> str:
    """What a billion operations on a type in a second are called."""
    return "GFLOP/s" if "float" in dtype else "Gop/s"


#: seconds of rest before several threads are measured: OpenBLAS's threads go on spinning on the other cores for 2**28
#: ticks of the time-stamp counter after a call (128 ms at 2.1 GHz), and would slow down whoever comes next
REST_SECONDS = 0.25
#: what was found, by the number of threads, and how often it was measured
_found: dict[int, tuple[Roofs, int]] = {}
#: a machine whose limits are still exceeded then is not quiet enough to be measured
MOST_PROBES = 3
#: the variable of the environment with a file in which the limits are kept for the processes that follow
KEPT = "TILEWRIGHT_ROOFS"


def roofs(threads: int = 1) -> Roofs:
    """Measures the limits (about a second, once a process and number of threads). More threads than there are cores
    have those of the cores: they take turns.

    ``TILEWRIGHT_ROOFS=FILE`` in the environment keeps them in a file, from which later processes take them.

    Twice, since the speed of L2 depends on the pages that hold the memory: by 8 % from one time to the
    next. Nothing else should be running: what shares the machine makes them too low.
    """
    threads = min(threads, cpu_count())
    if threads not in _found:
        known = kept(_key(threads), threads)
        if known is None:
            with announced("measuring the limits of this machine"):
                known = _highest(_probe(threads), _probe(threads))
            keep(_key(threads), known)
        _found[threads] = (known, 1)
    return _found[threads][0]


@explained
def probe_again(threads: int = 1) -> Roofs:
    """The limits after another look, because something was faster: of each, the highest ever seen."""
    threads = min(threads, cpu_count())
    before, count = _found.get(threads) or (roofs(threads), 1)
    if count < MOST_PROBES:
        _found[threads] = (_highest(before, _probe(threads)), count + 1)
        keep(_key(threads), _found[threads][0])
    return _found[threads][0]


def _key(threads: int) -> str:
    return f"{_core.Target('native')}, {threads}"


@explained
def kept(key: str, threads: int) -> Roofs | None:
    """Return the limits that an earlier process measured, if the environment names a file that has them.

    Args:
        key: names the machine or device.
        threads: of what was measured; 0 for a device.
    """
    try:
        known = json.loads(Path(os.environ[KEPT]).read_text())[key]
        peaks = {str(dtype): float(peak) for dtype, peak in known["peaks"].items()}
        levels = tuple(Level(str(name), int(size), float(rate)) for name, size, rate in known["levels"])
        arithmetic = str(known.get("arithmetic", Roofs.arithmetic))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return Roofs(threads, peaks, levels, arithmetic) if levels and "float32" in peaks else None


@explained
def keep(key: str, found: Roofs) -> None:
    """Write limits to the file that the environment names, beside those of other machines and numbers of threads."""
    if not (name := os.environ.get(KEPT)):
        return
    try:
        known = dict(json.loads(Path(name).read_text()))
    except (OSError, ValueError, TypeError):
        known = {}
    levels = [astuple(level) for level in found.levels]
    known[key] = {"peaks": found.peaks, "levels": levels, "arithmetic": found.arithmetic}
    with contextlib.suppress(OSError):  # it is measured again
        part = Path(f"{name}.{os.getpid()}.part")
        part.write_text(json.dumps(known))
        part.replace(name)


def _highest(before: Roofs, now: Roofs) -> Roofs:
    peaks = {dtype: max(peak, now.peaks[dtype]) for dtype, peak in before.peaks.items()}
    levels = tuple(
        Level(old.name, old.capacity, max(old.bandwidth, new.bandwidth))
        for old, new in zip(before.levels, now.levels, strict=True)
    )
    return Roofs(before.threads, peaks, levels)


def _probe(threads: int) -> Roofs:
    if threads > 1:
        time.sleep(REST_SECONDS)
    raw = _core.measure_roofs(threads)
    host = _core.Target("native")
    # Caches that belong to a core count once a core; the last level is shared.
    sizes = {"L1": host.l1_bytes * threads, "L2": host.l2_bytes * threads, "L3": host.l3_bytes}
    levels = [
        Level(n, size, raw[f"{n.lower()}_read"]) for n, size in sizes.items() if size and raw[f"{n.lower()}_read"]
    ]
    float32 = max(raw["f32_flops"].values())
    peaks = {
        "float32": float32,
        "float64": max(raw["f64_flops"].values()),
        "bfloat16": max(float32, raw["bf16_dot"]),
        "int32": raw["i32_add"],
        "int8": max(raw["i32_add"], raw["i8_dot"]),
    }
    return Roofs(threads, peaks, (*levels, Level("memory", 0, raw["dram_read"])))


def flush_caches() -> None:
    """Fills the caches with other data."""
    _core.flush_caches()
