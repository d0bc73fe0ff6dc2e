"""What a session takes for the answer of a task: a worker may send anything."""

from __future__ import annotations

from typing import Any

import pytest

from tilewright import _core
from tilewright.cluster.answers import decoded
from tilewright.cluster.messages import pack

SENT = {"worker": "tcp://1", "host": "{}", "times": {"measuring": 0.5}}
FAILED = _core.failed_measurement("run_error", "some/code", "it failed")
FINALS = {"seconds": [[1.0, 2.0], [3.0]], "disturbed": [[False, True], [False]], "failed": None}


@pytest.mark.parametrize(
    ("answer", "kernels"),
    [
        ({"result": FAILED, "built_by": ["tcp://2", {"building": 1.0}], "object": None}, None),
        ({"reference": FAILED, "outputs": None}, None),
        ({"reference": FAILED, "outputs": [bytes(4), bytes(8)], "object": b"code"}, None),
        ({"error": ["cluster/canceled", "nobody waits", ""]}, None),
        ({"lost_build": ["reference", "cluster/canceled"]}, 2),
        (FINALS, 2),
    ],
)
def test_answers(answer: dict[str, Any], kernels: int | None) -> None:
    assert decoded(pack(SENT | answer), [4, 8], kernels) == SENT | answer


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"result": b"anything"}, "'result' has another form"),
        ({"result": "text"}, "'result' has another form"),
        ({"outputs": [bytes(4)]}, "'outputs' has another form"),
        ({"outputs": [bytes(4), bytes(7)]}, "'outputs' has another form"),
        ({"outputs": "text"}, "'outputs' has another form"),
        ({"error": ["code"]}, "'error' has another form"),
        ({"error": "code"}, "'error' has another form"),
        ({"lost_build": [1, 2]}, "'lost_build' has another form"),
        ({"object": "text"}, "'object' has another form"),
        ({"times": {"measuring": float("nan")}}, "'times' has another form"),
        ({"times": {"measuring": -1.0}}, "'times' has another form"),
        ({"built_by": ["tcp://2"]}, "'built_by' has another form"),
        ({"worker": 3}, "'worker' has another form"),
        ({"host": None}, "'host' has another form"),
    ],
)
def test_what_is_no_answer(answer: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        decoded(pack(SENT | answer), [4, 8])


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
