"""Where records come from: the machine that measured, and the versions that took part."""

from __future__ import annotations

import functools
import importlib.metadata
import json
import platform
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tilewright import _core
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

#: what a record says of a host, and which libraries it gives the version of: databases have a column for each
HOST_FACTS = ("processor", "machine", "cores", "features", "system")
LIBRARIES = ("tilewright", "llvm", "python", "numpy", "xgboost")


@functools.cache
def this_host() -> str:
    """This machine, as records hold it: one text for all who measure here."""
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
    """Return the versions that are used here, by library, without those that are not installed."""
    found = {"tilewright": __version__, "llvm": _core.llvm_version(), "python": platform.python_version()}
    for package, name in (("numpy", "numpy"), ("xgboost", "xgboost"), ("xgboost-cpu", "xgboost")):
        try:
            found[name] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return _text(found)


def origin_of(target: _core.Target) -> Origin:
    """Return where measurements for a target come from: this machine, with the device, its driver, and what compiles
    kernels for it."""
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
    """Who measured: the host and the versions that took part, each a JSON text; empty where nobody said."""

    host: str = ""
    versions: str = ""

    @classmethod
    def here(cls) -> Origin:
        """This machine with what is installed."""
        return cls(this_host(), library_versions())


def _text(facts: Mapping[str, Any]) -> str:
    return json.dumps(facts, separators=(",", ":"))


def facts_of(text: str) -> dict[str, Any]:
    """What a record says of its host, or of its versions; nothing where nobody said, or where it is not ours."""
    try:
        facts = json.loads(text or "{}")
    except ValueError:
        return {}
    return facts if isinstance(facts, dict) else {}


def origin_table(rows: Iterable[_core.Record]) -> Table | None:
    """How many of these records come from which machine and which versions, most first; None where no record says."""
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
