"""Origins of records: the machine that measured, and the versions of the libraries."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import json
import platform
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tilewright import _core
from tilewright.support.json_text import parse_json
from tilewright.tables import Table
from tilewright.version import __version__

__all__ = [
    "HOST_FACTS",
    "LIBRARIES",
    "Origin",
    "facts_of",
    "library_versions",
    "origin_of",
    "origin_table",
    "this_host",
]

#: properties of a host in a record, and the libraries whose versions it has: databases have a column for each
HOST_FACTS = ("processor", "machine", "cores", "features", "system")
LIBRARIES = ("tilewright", "llvm", "python", "numpy", "xgboost")


@functools.cache
def this_host() -> str:
    """Return this machine's description as stored in records: the same text for all processes on it."""
    cpu, native = _core.host_cpu(), _core.Target("native")
    facts = (
        str(cpu["brand"]).strip() or native.cpu,
        platform.machine(),
        native.num_cores,
        " ".join(native.features),
        f"{platform.system()} {platform.release()}",
    )
    return _text(dict(zip(HOST_FACTS, facts, strict=True)))


@functools.cache
def library_versions() -> str:
    """Return the versions of installed libraries, by name."""
    import numpy

    found = {"tilewright": __version__, "llvm": _core.llvm_version(), "python": platform.python_version()}
    found["numpy"] = numpy.__version__
    if version := _version_of_xgboost():
        found["xgboost"] = version
    return _text(found)


def _version_of_xgboost() -> str:
    """Return the installed version, or "", from the file that ``xgboost.__version__`` reads: importing the library
    takes most of a second, and reading the metadata of packages loads a parser of e-mails."""
    spec = importlib.util.find_spec("xgboost")
    for folder in (spec and spec.submodule_search_locations) or ():
        with contextlib.suppress(OSError):
            return (Path(folder) / "VERSION").read_text().strip()
    return ""


def origin_of(target: _core.Target) -> Origin:
    """Return the origin of measurements for a target: this machine; for a device also the device, its driver, and the
    compiler of its kernels."""
    host, versions = json.loads(this_host()), json.loads(library_versions())
    if target.kind == "opencl" and (devices := _core.opencl_devices()):
        name, version, platform_name, driver = devices[_core.default_opencl_device()].split("\n")
        host |= {"device": name}
        versions |= {"driver": f"{platform_name} {driver}", "compiler": f"{platform_name}, {version}"}
    elif target.kind == "cuda" and (devices := _core.cuda_devices()):
        name, capability, driver = devices[0].split("\n")
        host |= {"device": name}
        versions |= {"driver": driver, "compiler": f"CUDA, {capability}"}
    return Origin(_text(host), _text(versions))


class Origin(NamedTuple):
    """The origin of a record: the host and the versions, each as JSON; empty if unknown."""

    host: str = ""
    versions: str = ""

    @classmethod
    def here(cls) -> Origin:
        """Return this machine with the installed versions."""
        return cls(this_host(), library_versions())


def _text(facts: Mapping[str, Any]) -> str:
    return json.dumps(facts, separators=(",", ":"))


def facts_of(text: str) -> dict[str, Any]:
    """Return the properties in a record's host or versions; empty if it has none or they have another format."""
    try:
        facts = parse_json(text or "{}")
    except ValueError:
        return {}
    return facts if isinstance(facts, dict) else {}


def origin_table(rows: Iterable[_core.Record]) -> Table | None:
    """Return how many records come from which machine and versions, most frequent first; None if no record has an
    origin."""
    counts = Counter((_host_in_words(row.host), _versions_in_words(row.versions)) for row in rows)
    if not any(host or versions for host, versions in counts):
        return None
    cells = tuple(
        (host or "unknown", versions or "unknown", str(count)) for (host, versions), count in counts.most_common()
    )
    return Table("where it was measured", ("host", "versions", "records"), cells)


def _host_in_words(text: str) -> str:
    facts = facts_of(text)
    cores = f"{facts['cores']} core{'s' * (facts['cores'] != 1)}" if "cores" in facts else ""
    known = (facts.get("processor"), facts.get("machine"), cores, facts.get("device"), facts.get("system"))
    return ", ".join(str(each) for each in known if each)


def _versions_in_words(text: str) -> str:
    return ", ".join(f"{name} {version}" for name, version in facts_of(text).items())
