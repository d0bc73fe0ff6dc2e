"""What a worker says of itself: its versions, its target, its host, and what it offers.

Dask places tasks by resources, which have names and amounts. The names say for which versions and which target a
worker builds or measures, so Dask itself keeps tasks away from workers of other versions and processors.
"""

from __future__ import annotations

import functools
import json
import os
import socket
from collections.abc import Mapping
from typing import Any

from tilewright import _core
from tilewright.database.origins import library_versions, this_host
from tilewright.support import machine
from tilewright.version import __version__

#: where Dask keeps the label of a worker, among what it says at its start
NAME = "tilewright"
#: of workers of one version; each can hold many small tasks at a time
_MANY = 1000.0


@functools.cache
def versions() -> str:
    """What sessions and workers must have in common: objects and results are bytes that others must understand."""
    return f"tilewright {__version__}, LLVM {_core.llvm_version()}, ABI {_core.ABI_VERSION}"


@functools.cache
def native_key() -> str:
    """The key of this machine's processor."""
    return target_key(_core.Target("native"))


def target_key(target: _core.Target) -> str:
    """What a target and the hosts that measure for it have in common: its text for one core."""
    return str(target.with_num_cores(1))


def present() -> str:
    """The resource that every worker of these versions has."""
    return versions()


def builds() -> str:
    """The resource of builds: any worker of these versions builds for any target."""
    return f"build, {versions()}"


def measures(key: str) -> str:
    """The resource of measurements for a target, by its key."""
    return f"measure {key}, {versions()}"


def resources(measure: int, build: int, key: str) -> dict[str, float]:
    """What a worker offers to Dask."""
    offered = {present(): _MANY}
    if measure:
        offered[measures(key)] = float(measure)
    if build:
        offered[builds()] = float(build)
    return offered


@functools.cache
def host_text() -> str:
    """This host, as records hold it: the machine, its name, and its caches."""
    native = _core.Target("native")
    caches = [native.l1_bytes, native.l2_bytes, native.l3_bytes]
    facts = json.loads(this_host()) | {"host": socket.gethostname(), "caches": caches}
    return json.dumps(facts, separators=(",", ":"))


def label(measure: int, build: int, *, probe: bool) -> dict[str, Any]:
    """All that a worker says of itself; `probe` measures the limits of the machine, which takes two seconds."""
    told: dict[str, Any] = {
        "versions": versions(),
        "libraries": json.loads(library_versions()),
        "target": native_key(),
        "host": json.loads(host_text()),
        "measure": measure,
        "build": build,
        "pid": os.getpid(),
    }
    if probe:
        roofs = machine.roofs(1)
        told["roofs"] = {"flops": roofs.peaks, "bytes": {level.name: level.bandwidth for level in roofs.levels}}
    return told


def label_of(worker: Mapping[str, Any]) -> dict[str, Any] | None:
    """The label of a worker as the scheduler knows it; None where it is none of ours."""
    found = worker.get(NAME)
    return dict(found) if isinstance(found, Mapping) and "versions" in found else None


def name_of(address: str, worker: Mapping[str, Any]) -> str:
    """How messages call a worker."""
    told = label_of(worker)
    host = told["host"].get("host", "") if told else ""
    return f"{host} ({address})" if host else address
