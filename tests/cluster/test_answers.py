"""What a session takes for the answer of a task: a worker may send anything."""

from __future__ import annotations

from typing import Any

import pytest

from tilewright import _core
from tilewright.cluster.answers import decoded, decoded_build
from tilewright.cluster.messages import pack

SENT = {"worker": "tcp://1", "host": "{}", "times": {"measuring": 0.5}}
FAILED = _core.failed_measurement("run_error", "some/code", "it failed")
FINALS = {"seconds": [[1.0, 2.0], [3.0]], "disturbed": [[False, True], [False]], "failed": None}


@pytest.mark.parametrize(
    ("answer", "kernels", "candidates"),
    [
        ({"answers": [{"result": FAILED, "built_by": ["tcp://2", {"building": 1.0}], "object": None}]}, None, 1),
        ({"answers": [{"result": FAILED, "times": {}}, {"lost_build": "cluster/task", "times": {}}]}, None, 2),
        ({"answers": [{"times": {}}, {"times": {}}], "reference": FAILED, "outputs": None}, None, 2),
        ({"reference": FAILED, "outputs": None, "answers": []}, None, 0),
        ({"reference": FAILED, "outputs": [bytes(4), bytes(8)], "object": b"code"}, None, 0),
        ({"error": ["cluster/canceled", "nobody waits", ""]}, None, 2),
        ({"lost_build": "cluster/canceled"}, 2, 0),
        ({"lost_build": "cluster/canceled"}, None, 2),
        (FINALS, 2, 0),
    ],
)
def test_answers(answer: dict[str, Any], kernels: int | None, candidates: int) -> None:
    assert decoded(pack(SENT | answer), [4, 8], kernels, candidates) == SENT | answer


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"reference": b"anything"}, "'reference' has another form"),
        ({"reference": "text"}, "'reference' has another form"),
        ({"reference": None}, "'reference' is missing"),
        ({"outputs": [bytes(4)]}, "'outputs' has another form"),
        ({"outputs": [bytes(4), bytes(7)]}, "'outputs' has another form"),
        ({"outputs": "text"}, "'outputs' has another form"),
        ({"error": ["code"]}, "'error' has another form"),
        ({"error": "code"}, "'error' has another form"),
        ({"lost_build": [1, 2]}, "'lost_build' has another form"),
        ({"object": "text"}, "'object' has another form"),
        ({"times": {"measuring": float("nan")}}, "'times' has another form"),
        ({"times": {"measuring": -1.0}}, "'times' has another form"),
        ({"worker": 3}, "'worker' has another form"),
        ({"host": None}, "'host' has another form"),
    ],
)
def test_what_is_no_answer(answer: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        decoded(pack(SENT | {"reference": FAILED} | answer), [4, 8])


@pytest.mark.parametrize(
    "candidate",
    [
        {"result": b"anything"},
        {"result": "text"},
        {"result": FAILED, "object": "text"},
        {"result": FAILED, "times": {"measuring": float("nan")}},
        {"result": FAILED, "times": {"measuring": -1.0}},
        {"result": FAILED, "built_by": ["tcp://2"]},
        {"lost_build": ["cluster/task"]},
        "text",
        None,
    ],
)
def test_what_is_no_answer_for_a_candidate(candidate: Any) -> None:
    for answers in ([candidate, {"result": FAILED}], [{"result": FAILED}, candidate]):
        with pytest.raises(ValueError, match="'answers' has another form"):
            decoded(pack(SENT | {"answers": answers}), [4, 8], candidates=2)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({}, "'answers' is missing"),
        ({"answers": {"0": {"result": FAILED}}}, "'answers' has another form"),
        ({"answers": [{"result": FAILED}]}, "for 1 candidates instead of 2"),
        ({"answers": [{"result": FAILED}, {"times": {}}]}, "'result' is missing"),
        ({"answers": [{"result": FAILED}, {"result": None, "lost_build": None}]}, "'result' is missing"),
    ],
)
def test_what_is_no_answer_for_a_chunk(answer: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        decoded(pack(SENT | answer), [4, 8], candidates=2)


def test_builds() -> None:
    module = {"result": FAILED, "object": None, "times": {"building": 1.0}}
    answer = {"worker": "tcp://1", "built": [module, module | {"object": b"code"}]}
    assert decoded_build(pack(answer)) == answer
    failed = {"worker": "tcp://1", "error": ["cluster/canceled", "nobody waits", ""]}
    assert decoded_build(pack(failed)) == failed
    others = (
        ("object", "text"),
        ("result", b"anything"),
        ("result", None),
        ("times", None),
        ("times", {"building": -1.0}),
    )
    for name, value in others:
        with pytest.raises(ValueError, match="'built' has another form"):
            decoded_build(pack(answer | {"built": [module, module | {name: value}]}))
    for other in ({"built": None}, {"worker": None}, {"error": "code"}, {"built": module}):
        with pytest.raises(ValueError):
            decoded_build(pack(answer | other))


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"seconds": None}, "'seconds' is missing"),
        ({"seconds": [[1.0, 0.0], [3.0]]}, "'seconds' has another form"),
        ({"seconds": [[1.0, float("inf")], [3.0]]}, "'seconds' has another form"),
        ({"seconds": [1.0, 3.0]}, "'seconds' has another form"),
        ({"disturbed": [[False, 1], [False]]}, "'disturbed' has another form"),
        ({"seconds": [[1.0]], "disturbed": [[False]]}, "times of 1 kernels instead of 2"),
    ],
)
def test_what_are_no_finals(answer: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        decoded(pack(SENT | FINALS | answer), [4, 8], 2)


def test_bytes_that_are_no_map() -> None:
    for packed in (b"", b"garbage", pack([1, 2]), pack(None), None, 3):
        with pytest.raises(ValueError):
            decoded(packed, [])
