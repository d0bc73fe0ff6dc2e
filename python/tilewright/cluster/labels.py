"""The label of a worker: its versions, its target, its host, and its resources.

Dask places tasks by resources, which have names and amounts. The names say for which versions and which target a
worker builds or measures, so Dask itself keeps tasks away from workers of other versions and processors.
"""

from __future__ import annotations

import functools
import json
import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tilewright import _core
from tilewright.database.origins import library_versions, this_host
from tilewright.errors import ResourceError
from tilewright.support import machine
from tilewright.version import __version__

#: key of the label in the data that Dask keeps of a worker
NAME = "tilewright"
#: The fraction of a slot that a measuring task requests from Dask: Dask then starts two tasks per slot. One measures;
#: the other has its inputs and waits.
SHARE = 0.5
#: amount of the resource of :func:`present`: small tasks are not limited
_MANY = 1000.0


@functools.cache
def versions() -> str:
    """Return the versions that a session and its workers must share: objects and results travel as bytes."""
    return f"tilewright {__version__}, LLVM {_core.llvm_version()}, ABI {_core.ABI_VERSION}"


@functools.cache
def native_key() -> str:
    """Return the target key of this machine."""
    return target_key(_core.Target("native"))


def target_key(target: _core.Target) -> str:
    """Return the key by which targets and measuring hosts are matched: the target's text for one core."""
    return str(target.with_num_cores(1))


def present() -> str:
    """Return the resource that every worker of these versions has."""
    return versions()


def builds() -> str:
    """Return the resource of builds: any worker of these versions builds for any target."""
    return f"build, {versions()}"


def measures(key: str) -> str:
    """Return the resource of measurements for a target, by its key."""
    return f"measure {key}, {versions()}"


def resources(measure: int, build: int, key: str) -> dict[str, float]:
    """Return the resources of a worker, for Dask."""
    offered = {present(): _MANY}
    if measure:
        offered[measures(key)] = float(measure)
    if build:
        offered[builds()] = float(build)
    return offered


@functools.cache
def host_text() -> str:
    """Return the description of this host for records: the machine, its name, and its caches."""
    native = _core.Target("native")
    caches = [native.l1_bytes, native.l2_bytes, native.l3_bytes]
    facts = json.loads(this_host()) | {"host": socket.gethostname(), "caches": caches}
    return json.dumps(facts, separators=(",", ":"))


@functools.cache
def machine_text() -> str:
    """Return what identifies this host: names alone may repeat, as in containers and copies of a machine."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        boot = ""
    return f"{socket.gethostname()} {boot}"


def label(measure: int, build: int, *, probe: bool) -> dict[str, Any]:
    """Return the label of this worker; `probe` also measures the limits of the machine, for two seconds."""
    entries: dict[str, Any] = {
        "versions": versions(),
        "libraries": json.loads(library_versions()),
        "target": native_key(),
        "host": json.loads(host_text()),
        "machine": machine_text(),
        "measure": measure,
        "build": build,
        "pid": os.getpid(),
    }
    if probe:
        roofs = machine.roofs(1)
        entries["roofs"] = {"flops": roofs.peaks, "bytes": {level.name: level.bandwidth for level in roofs.levels}}
    return entries


def label_of(worker: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the label of a worker as the scheduler knows it; None for workers of other software."""
    found = worker.get(NAME)
    return dict(found) if isinstance(found, Mapping) and "versions" in found else None


def check_versions(known: Mapping[str, Mapping[str, Any]], who: str) -> None:
    """Check that the workers of a cluster have the versions of this process.

    Args:
        known: workers as the scheduler knows them, by address.
        who: this process, for the message.

    Raises:
        tilewright.ResourceError: one has others.
    """
    for address, worker in known.items():
        other = label_of(worker)
        if other is not None and other["versions"] != versions():
            raise ResourceError.of(
                "cluster/versions",
                f"{who} has {versions()}, and {name_of(address, worker)} of the same cluster has {other['versions']}",
                "install the same version of Tilewright on all hosts, then start the workers again",
            )


def name_of(address: str, worker: Mapping[str, Any]) -> str:
    """Return the name of a worker for messages: its host, and the name that it was given or its address."""
    found = label_of(worker)
    host = found["host"].get("host", "") if found else ""
    name = str(worker.get("name") or address)
    return f"{host} ({name})" if host else name
