"""Check the answers of tasks. A worker is another machine, which may send anything: what does not have the form of an
answer is refused before a session uses it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from tilewright import _core
from tilewright.cluster.messages import unpack

__all__ = ["decoded"]


def decoded(packed: Any, sizes: Sequence[int], kernels: int | None = None) -> dict[str, Any]:
    """Return the answer of a task that measures.

    Args:
        packed: the answer as bytes.
        sizes: bytes of each output and in-out argument of the program, in their order.
        kernels: number of kernels of the finals; None for other tasks.

    Raises:
        ValueError: this is not the answer of such a task.
    """
    try:
        answer = unpack(packed)
    except Exception as error:
        raise ValueError(f"{type(error).__name__}: {error}") from None
    if problem := _problem_of(answer, sizes, kernels):
        raise ValueError(problem)
    return dict(answer)


def _problem_of(answer: Any, sizes: Sequence[int], kernels: int | None) -> str:
    """Return why this is not the answer of such a task; "" if it may be one."""
    if not isinstance(answer, Mapping):
        return f"a {type(answer).__name__} instead of a map"
    if wrong := next((name for name in _FORMS if not _has_form(answer, name, sizes)), None):
        return f"{wrong!r} has another form"
    if answer.get("error") or answer.get("lost_build"):
        return ""
    missing = [name for name in _needed(answer, kernels) if answer.get(name) is None]
    if missing:
        return f"{missing[0]!r} is missing"
    if kernels is not None and not len(answer["seconds"]) == len(answer["disturbed"]) == kernels:
        return f"it has times of {len(answer['seconds'])} kernels instead of {kernels}"
    return ""


def _needed(answer: Mapping[str, Any], kernels: int | None) -> tuple[str, ...]:
    if kernels is not None:
        return "seconds", "disturbed"
    reference = answer.get("reference")
    return ("outputs",) if reference and _core.measured_facts(reference)["outcome"] == "ok" else ()


def _has_form(answer: Mapping[Any, Any], name: str, sizes: Sequence[int]) -> bool:
    value = answer.get(name)
    if value is None:
        return name not in _REQUIRED
    if name == "outputs":
        return _is_list(value, bytes) and [len(each) for each in value] == list(sizes)
    return bool(_FORMS[name](value))


def _is_list(value: Any, kind: type, count: int | None = None) -> bool:
    return (
        isinstance(value, list)
        and all(isinstance(each, kind) for each in value)
        and (count is None or len(value) == count)
    )


def _is_result(value: Any) -> bool:
    facts = _core.measured_facts(value) if isinstance(value, bytes) else {"code": "cluster/garbage"}
    return facts["code"] != "cluster/garbage" and (facts["outcome"] != "ok" or bool(facts["seconds"]))


def _is_duration(value: Any) -> bool:
    return isinstance(value, float) and math.isfinite(value) and value >= 0


def _are_times(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(k, str) and _is_duration(v) for k, v in value.items())


def _are_rounds(value: Any) -> bool:
    return _is_list(value, list) and all(_is_duration(each) and each > 0 for kernel in value for each in kernel)


#: the fields that a session uses, and whether a value has the form of one; `outputs` depend on the program
_FORMS: dict[str, Any] = {
    "worker": lambda value: isinstance(value, str),
    "host": lambda value: isinstance(value, str),
    "error": lambda value: _is_list(value, str, 3),
    "lost_build": lambda value: _is_list(value, str, 2),
    "result": _is_result,
    "reference": _is_result,
    "outputs": None,
    "object": lambda value: isinstance(value, bytes),
    "times": _are_times,
    "built_by": lambda value: (
        isinstance(value, list) and len(value) == 2 and isinstance(value[0], str) and _are_times(value[1])
    ),
    "seconds": _are_rounds,
    "disturbed": lambda value: _is_list(value, list) and all(_is_list(kernel, bool) for kernel in value),
    "failed": lambda value: _is_list(value, str, 3),
}
#: what every answer has
_REQUIRED = ("worker", "host")
