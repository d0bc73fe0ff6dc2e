"""Measured limits of a device: memory bandwidth by a copy, arithmetic rate by chains of multiply-adds."""

from __future__ import annotations

import json
from typing import Any

from tilewright import _core
from tilewright.database.origins import origin_of
from tilewright.errors import ResourceError, ScriptError
from tilewright.kernel.device import Device, device
from tilewright.kernel.kernel import compile_quietly, kernels_of
from tilewright.script.scripts import from_source
from tilewright.support import machine
from tilewright.support.machine import Level, Roofs
from tilewright.support.notes import announced
from tilewright.timing import KernelCalls

__all__ = ["describe_device", "device_roofs"]

#: threads per block of the probes; every device supports this number
_THREADS = 64
#: number of float32 elements that the copies move: larger than any cache; small enough for a device's cache
_IN_MEMORY, _IN_CACHE = 1 << 25, 1 << 18
#: independent chains of a thread, threads, and steps of a chain: enough to hide latencies on any device
_CHAINS, _CHAINED_THREADS, _STEPS = 8, 1 << 15, 256
#: lanes of a chain, of which the highest rate counts: processors need vectors, GPUs do not
_LANES = (1, 4, 8)
#: times that each probe is executed; the fastest counts
_ROUNDS = 5
#: minimum duration of a probe, so that the launch overhead is negligible
_PROBE_SECONDS = 2e-3
_found: dict[str, Roofs | None] = {}


def describe_device(target: Any) -> str:
    """Return the device that kernels of a target run on, with name and driver: ``"opencl:0 (name, driver)"``.

    Without such a device, this is its number alone.
    """
    where, origin = str(device(str(target))), origin_of(_core.Target(target))
    host, versions = json.loads(origin.host), json.loads(origin.versions)
    facts = [fact for fact in (host.get("device"), versions.get("driver")) if fact]
    return f"{where} ({', '.join(facts)})" if facts else where


def device_roofs(target: Any) -> Roofs | None:
    """Measure the peak bandwidth and arithmetic rate of the device of a target, once per process.

    The bandwidth of memory is that of a copy of 128 MiB, counting bytes read and bytes written; if a copy of 1 MiB is
    faster, it gives the bandwidth of the cache. The arithmetic rate is that of chains of multiply-adds in float32,
    float64 and int32 on all threads; tensor cores are not measured. ``TILEWRIGHT_ROOFS=FILE`` keeps the limits for
    later processes, like those of the processor.

    Returns:
        The limits; None if there is no such device, or it does not run the probes.
    """
    found = _core.Target(target)
    where, key = device(str(target)), f"{found.kind}, {describe_device(target)}"
    if not where.exist:
        return None
    if key not in _found:
        kept = machine.kept(key, threads=0)
        if kept is None:
            with announced(f"measuring the limits of {where}"):
                kept = _measure(found.kind, where)
            if kept is not None:
                machine.keep(key, kept)
        _found[key] = kept
    return _found[key]


def _measure(kind: str, where: Device) -> Roofs | None:
    try:
        memory, cache = _copy_rate(kind, where, _IN_MEMORY), _copy_rate(kind, where, _IN_CACHE)
    except ResourceError:  # as when there is too little memory
        return None
    peaks = {dtype: _arithmetic_rate(kind, where, dtype) for dtype in ("float32", "float64", "int32")}
    if not peaks["float32"]:
        return None
    levels = [Level("memory", 0, memory)]
    if cache > memory:
        levels.insert(0, Level("cache", 2 * 4 * _IN_CACHE, cache))
    return Roofs(0, {dtype: rate for dtype, rate in peaks.items() if rate}, tuple(levels), "arithmetic")


def _copy_rate(kind: str, where: Device, size: int) -> float:
    """Return the bytes per second that a copy of `size` float32 elements reads and writes."""
    at = f"block * {4 * _THREADS} + thread * 4 + lane"
    program = f"""
@T.prim_func
def copy(A: T.Buffer(({size},)), B: T.Buffer(({size},))):
    for block in T.thread_binding({size // (4 * _THREADS)}, thread="blockIdx.x"):
        for thread in T.thread_binding({_THREADS}, thread="threadIdx.x"):
            for lane in T.vectorized(4):
                B[{at}] = A[{at}]
"""
    return 2 * 4 * size / _seconds(program, kind, [where.zeros(size), where.zeros(size)])


def _arithmetic_rate(kind: str, where: Device, dtype: str) -> float:
    """Return the operations per second, counting a multiply-add as two; 0 if the device does not support the type."""
    rates = [0.0]
    for lanes in _LANES:
        size = _CHAINED_THREADS * lanes
        try:
            values = [where.zeros(size, dtype), where.zeros(size, dtype)]
            seconds = _seconds(_chains(dtype, lanes), kind, values)
        except (ResourceError, ScriptError):  # the device does not support the type
            continue
        rates.append(2.0 * size * _CHAINS * _STEPS / seconds)
    return max(rates)


def _chains(dtype: str, lanes: int) -> str:
    """Return a program whose threads execute independent chains of multiply-adds."""
    size, at, factor = _CHAINED_THREADS * lanes, f"x[c * {lanes} + lane]", 3 if dtype == "int32" else 0.5
    result = f"B[(block * {_THREADS} + thread) * {lanes} + lane]"
    return f"""
@T.prim_func
def multiply_adds(A: T.Buffer(({size},), "{dtype}"), B: T.Buffer(({size},), "{dtype}")):
    for block in T.thread_binding({_CHAINED_THREADS // _THREADS}, thread="blockIdx.x"):
        for thread in T.thread_binding({_THREADS}, thread="threadIdx.x"):
            x = T.decl_buffer(({_CHAINS * lanes},), "{dtype}", scope="local")
            for c in T.unroll({_CHAINS}):
                for lane in T.vectorized({lanes}):
                    {at} = A[(block * {_THREADS} + thread) * {lanes} + lane] + T.cast(c, "{dtype}")
            for k in range({_STEPS}):
                for c in T.unroll({_CHAINS}):
                    for lane in T.vectorized({lanes}):
                        {at} = {at} * T.{dtype}({factor}) + T.{dtype}(1)
            for c in T.unroll({_CHAINS}):
                for lane in T.vectorized({lanes}):
                    {result} = {result} + {at}
"""


def _seconds(program: str, kind: str, values: list[Any]) -> float:
    """Return the seconds per call: the minimum over rounds of consecutive calls."""
    (kernel,) = kernels_of(compile_quietly(from_source(program), kind))
    calls = KernelCalls(kernel, values)
    calls.seconds_of(1)  # drivers compile at the first launch
    count = max(1, round(_PROBE_SECONDS / max(calls.seconds_of(1), 1e-6)))
    return min(calls.seconds_of(count) for _ in range(_ROUNDS)) / count
