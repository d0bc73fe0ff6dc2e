"""Measured limits of this machine: peak arithmetic rate, and bandwidth of each level of memory."""

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
from tilewright.support.json_text import parse_json
from tilewright.support.notes import announced
from tilewright.support.wrong_arguments import explained

#: accepted forms of a target: its text, a dict, or a Target
TargetLike = str | dict[str, Any] | _core.Target


def is_for_device(target: TargetLike) -> bool:
    """Return whether kernels of a target run on a device with its own memory, launched by host code."""
    return "gpu" in _core.Target(target).keys


@dataclass(frozen=True)
class Roof:
    """A limit on one call: no kernel takes less than `seconds`, because of `name` (vector ports, L2, memory, ...)."""

    name: str
    seconds: float


@dataclass(frozen=True)
class Level:
    """A level of the memory hierarchy: its capacity (bytes; 0 for memory) and read bandwidth (bytes per second)."""

    name: str
    capacity: int
    bandwidth: float


@dataclass(frozen=True)
class Roofs:
    """Measured limits for a number of threads, or of a device.

    Attributes:
        threads: number of threads of the processor; 0 for a device.
        peaks: operations per second by the data type of the operands. For "int8" and "bfloat16", those of dot-product
            instructions with wider accumulators, if the processor has them.
        levels: levels of memory, from the fastest to the largest.
        arithmetic: name of the limit given by `peaks`.
    """

    threads: int
    peaks: dict[str, float]
    levels: tuple[Level, ...]
    arithmetic: str = "vector ports"

    def binding(self, flops: float, traffic: float, dtype: str = "float32", *, cold: bool = False) -> Roof:
        """Return the limit that binds a call with this number of operations and bytes of compulsory traffic.

        The traffic runs at the bandwidth of the smallest level that holds all of it; of memory if `cold`. (The roofline
        of Williams, Waterman and Patterson, CACM 2009, with one ceiling for each cache level.) A processor is assumed
        to compute unknown data types at the rate of float32; a device may have special units for them, so that only its
        memory is a limit.
        """
        level = next((x for x in self.levels if not cold and x.capacity >= traffic), self.levels[-1])
        otherwise = self.peaks["float32"] if self.threads else math.inf
        arithmetic = flops / self.peaks.get(dtype, otherwise)
        movement = traffic / level.bandwidth
        if arithmetic >= movement:
            return Roof(self.arithmetic, arithmetic)
        return Roof(level.name, movement)


#: limits of a machine that was not measured: they allow any time
UNKNOWN_ROOFS = Roofs(0, {"float32": math.inf}, (Level("", 0, math.inf),), "")


@explained
def cpu_count(logical: bool = True) -> int:
    """Return how many processors this process may use; if not `logical`, those of one core count once."""
    usable = os.sched_getaffinity(0)
    if logical:
        return len(usable)
    places = (Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list") for cpu in usable)
    cores = {place.read_text() for place in places if place.exists()}
    return len(cores) or len(usable)


@explained
def rate_unit(dtype: str) -> str:
    """Return the unit of a billion operations per second on a data type."""
    return "GFLOP/s" if "float" in dtype else "Gop/s"


#: seconds of rest before several threads are measured: OpenBLAS's threads spin on the other cores for 2**28 ticks of
#: the time-stamp counter after a call (128 ms at 2.1 GHz), and would slow down the next measurement
REST_SECONDS = 0.25
#: measured limits by the number of threads, and how often they were measured
_found: dict[int, tuple[Roofs, int]] = {}
#: maximum number of measurements: a machine that exceeds its limits even then is too noisy
MOST_PROBES = 3
#: environment variable with a file that stores the limits for later processes
KEPT = "TILEWRIGHT_ROOFS"


def roofs(threads: int = 1) -> Roofs:
    """Return the limits, measuring them first (about a second, once per process and number of threads). More threads
    than cores have the limits of the cores, which they share.

    ``TILEWRIGHT_ROOFS=FILE`` in the environment stores them in a file, from which later processes read them.

    They are measured twice, since the bandwidth of L2 depends on the physical pages: by 8 % between measurements. Other
    programs should not run meanwhile, because they would make the limits too low.
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
    """Return the limits after another measurement, needed because a kernel exceeded them: the highest values so far."""
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
    """Return the limits that an earlier process stored, if the environment names a file that has them.

    Args:
        key: name of the machine or device.
        threads: number of threads; 0 for a device.
    """
    try:
        known = parse_json(Path(os.environ[KEPT]).read_text())[key]
        peaks = {str(dtype): float(peak) for dtype, peak in known["peaks"].items()}
        levels = tuple(Level(str(name), int(size), float(rate)) for name, size, rate in known["levels"])
        arithmetic = str(known.get("arithmetic", Roofs.arithmetic))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return Roofs(threads, peaks, levels, arithmetic) if levels and "float32" in peaks else None


@explained
def keep(key: str, found: Roofs) -> None:
    """Store limits in the file that the environment names, beside those of other machines and numbers of threads."""
    if not (name := os.environ.get(KEPT)):
        return
    try:
        known = dict(parse_json(Path(name).read_text()))
    except (OSError, ValueError, TypeError):
        known = {}
    levels = [astuple(level) for level in found.levels]
    known[key] = {"peaks": found.peaks, "levels": levels, "arithmetic": found.arithmetic}
    with contextlib.suppress(OSError):  # without the file, they are measured again
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
    # Private caches count once per core; the last level is shared.
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
    """Fill the caches with other data."""
    _core.flush_caches()
