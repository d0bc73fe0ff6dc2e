"""Short names of targets for tables, without their processor features, which rarely matter there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from tilewright.support.json_text import parse_json

__all__ = ["short_targets"]

#: options that name the device, in order of preference
_DEVICES = ("mcpu", "arch", "model")
#: maximum number of letters of a part of a name, since targets of other programs, and damaged ones, may have any length
_MOST = 24


def short_targets(targets: Iterable[str]) -> dict[str, str]:
    """Return a short name for each target: "llvm haswell, 2 cores". Equal names get numbers: "llvm haswell, 2 cores
    #1"."""
    by_name: dict[str, list[str]] = defaultdict(list)
    for target in sorted(set(targets)):
        by_name[_short(target)].append(target)
    return {
        target: name if len(alike) == 1 else f"{name} #{number}"
        for name, alike in by_name.items()
        for number, target in enumerate(alike, 1)
    }


def _short(target: str) -> str:
    options = _options(target)
    device = next((str(options[name]) for name in _DEVICES if options.get(name)), "")
    name = " ".join(_cut(part) for part in (str(options.get("kind", "")), device) if part) or "unknown"
    cores = str(options.get("num-cores", ""))
    return f"{name}, {_cut(cores)} core{'' if cores == '1' else 's'}" if cores else name


def _cut(text: str) -> str:
    return text if len(text) <= _MOST else f"{text[: _MOST - 1]}…"


def _options(target: str) -> dict[str, Any]:
    """Return the options in the text of a target, which may be from a version that knows other targets."""
    if target.startswith("{"):
        try:
            options = parse_json(target)
        except ValueError:  # damaged
            return {"kind": target}
        return options if isinstance(options, dict) else {}
    kind, *words = target.split() or [""]
    return {"kind": kind} | {name.lstrip("-"): value for name, _, value in (word.partition("=") for word in words)}
