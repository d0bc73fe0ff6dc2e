"""Check the answers of tasks. A worker is another machine, which may send anything: what does not have the form of an
answer is refused before a session uses it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from tilewright import _core
from tilewright.cluster.messages import unpack

__all__ = ["decoded", "decoded_build"]


def decoded(packed: Any, sizes: Sequence[int], kernels: int | None = None, candidates: int = 0) -> dict[str, Any]:
    """Return the answer of a task that measures.

    Args:
        packed: the answer as bytes.
        sizes: bytes of each output and in-out argument of the program, in their order.
        kernels: number of kernels of the finals; None for other tasks.
        candidates: number of candidates of the task; 0 where it calls the reference alone, and for finals.

    Raises:
        ValueError: this is not the answer of such a task.
    """
    answer = _map_of(packed)
    if problem := _problem_of(answer, sizes, kernels, candidates):
        raise ValueError(problem)
    return answer


def decoded_build(packed: Any) -> dict[str, Any]:
    """Return the answer of a task that builds.

    Raises:
        ValueError: this is not the answer of such a task.
    """
    answer = _map_of(packed)
    problem = _other_form(answer, _BUILD_FORMS, ("worker",))
    if not problem and answer.get("error") is None and answer.get("built") is None:
        problem = "'built' is missing"
    if problem:
        raise ValueError(problem)
    return answer


def _map_of(packed: Any) -> dict[str, Any]:
    try:
        answer = unpack(packed)
    except Exception as error:
        raise ValueError(f"{type(error).__name__}: {error}") from None
    if not isinstance(answer, Mapping):
        raise ValueError(f"a {type(answer).__name__} instead of a map")
    return dict(answer)


def _problem_of(answer: Mapping[str, Any], sizes: Sequence[int], kernels: int | None, candidates: int) -> str:
    """Return why this is not the answer of such a task; "" if it may be one."""
    if wrong := _other_form(answer, _FORMS, ("worker", "host")):
        return wrong
    if answer.get("outputs") is not None and [len(each) for each in answer["outputs"]] != list(sizes):
        return "'outputs' has another form"
    if answer.get("error") is not None or answer.get("lost_build") is not None:
        return ""
    missing = [name for name in _needed(answer, kernels, candidates) if answer.get(name) is None]
    if missing:
        return f"{missing[0]!r} is missing"
    if kernels is not None and not len(answer["seconds"]) == len(answer["disturbed"]) == kernels:
        return f"it has times of {len(answer['seconds'])} kernels instead of {kernels}"
    return _problem_of_candidates(answer, candidates) if candidates else ""


def _problem_of_candidates(answer: Mapping[str, Any], candidates: int) -> str:
    answers = answer["answers"]
    if len(answers) != candidates:
        return f"it answers for {len(answers)} candidates instead of {candidates}"
    if _fails(answer.get("reference")):
        return ""  # no candidate was measured
    if any(each.get("result") is None and each.get("lost_build") is None for each in answers):
        return "'result' is missing"
    return ""


def _fails(reference: bytes | None) -> bool:
    return reference is not None and _core.measured_facts(reference)["outcome"] != "ok"


def _needed(answer: Mapping[str, Any], kernels: int | None, candidates: int) -> tuple[str, ...]:
    if kernels is not None:
        return "seconds", "disturbed"
    what = "answers" if candidates else "reference"
    return (what,) if answer.get("reference") is None or _fails(answer["reference"]) else (what, "outputs")


def _other_form(answer: Mapping[Any, Any], forms: Mapping[str, Any], required: Sequence[str] = ()) -> str:
    """Return which field has not its form, in words; "" if all have."""
    for name, has_form in forms.items():
        value = answer.get(name)
        if (name in required) if value is None else not has_form(value):
            return f"{name!r} has another form"
    return ""


def _are_maps(value: Any, forms: Mapping[str, Any], required: Sequence[str] = ()) -> bool:
    return _is_list(value, Mapping) and not any(_other_form(each, forms, required) for each in value)


def _is_list(value: Any, kind: type, count: int | None = None) -> bool:
    return (
        isinstance(value, list)
        and all(isinstance(each, kind) for each in value)
        and (count is None or len(value) == count)
    )


def _is_build(value: Any) -> bool:
    return isinstance(value, bytes) and _core.measured_facts(value)["code"] != "cluster/garbage"


def _is_result(value: Any) -> bool:
    facts = _core.measured_facts(value) if _is_build(value) else {"outcome": "ok", "seconds": []}
    return facts["outcome"] != "ok" or bool(facts["seconds"])


def _is_duration(value: Any) -> bool:
    return isinstance(value, float) and math.isfinite(value) and value >= 0


def _are_times(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(k, str) and _is_duration(v) for k, v in value.items())


def _are_rounds(value: Any) -> bool:
    return _is_list(value, list) and all(_is_duration(each) and each > 0 for kernel in value for each in kernel)


#: the fields of a candidate of a chunk, and whether a value has the form of one
_CANDIDATE_FORMS: dict[str, Any] = {
    "lost_build": lambda value: isinstance(value, str),
    "result": _is_result,
    "object": lambda value: isinstance(value, bytes),
    "times": _are_times,
    "built_by": lambda value: (
        isinstance(value, list) and len(value) == 2 and isinstance(value[0], str) and _are_times(value[1])
    ),
}
#: the fields that a session uses
_FORMS: dict[str, Any] = {
    "worker": lambda value: isinstance(value, str),
    "host": lambda value: isinstance(value, str),
    "error": lambda value: _is_list(value, str, 3),
    "lost_build": lambda value: isinstance(value, str),
    "answers": lambda value: _are_maps(value, _CANDIDATE_FORMS),
    "reference": _is_result,
    "outputs": lambda value: _is_list(value, bytes),
    "object": lambda value: isinstance(value, bytes),
    "times": _are_times,
    "seconds": _are_rounds,
    "disturbed": lambda value: _is_list(value, list) and all(_is_list(kernel, bool) for kernel in value),
    "failed": lambda value: _is_list(value, str, 3),
}
#: the fields of a module that was built
_MODULE_FORMS: dict[str, Any] = {
    "result": _is_build,
    "object": lambda value: isinstance(value, bytes),
    "times": _are_times,
}
#: those of the task that has built it
_BUILD_FORMS: dict[str, Any] = {
    "worker": lambda value: isinstance(value, str),
    "error": lambda value: _is_list(value, str, 3),
    "built": lambda value: _are_maps(value, _MODULE_FORMS, ("result", "times")),
}
