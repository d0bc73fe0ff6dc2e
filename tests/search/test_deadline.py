"""Limits of time: what is overdue is interrupted, and a limit costs no thread of its own."""

from __future__ import annotations

import os
import threading
import time

import pytest

import tilewright as tw
from tilewright.search import deadline


def test_limits_share_a_thread() -> None:
    with deadline.limit(60, "the first"):
        before = threading.active_count()
        with deadline.limit(60, "the second"), deadline.limit(60, "the third"):
            assert threading.active_count() == before
    for _ in range(1000):
        with deadline.limit(60, "one of many"):
            pass
    assert threading.active_count() <= before


def test_a_later_limit_that_ends_earlier_is_kept() -> None:
    with (
        deadline.limit(60, "what is around"),
        pytest.raises(tw.ResourceError, match=r"what is inside within 0\.05 s") as caught,
        deadline.limit(0.05, "what is inside"),
    ):
        while True:
            pass
    assert caught.value.code == "space/deadline"


def test_what_ended_in_time_is_not_interrupted_later() -> None:
    with deadline.limit(0.05, "a short one"):
        pass
    ends = time.monotonic() + 0.15
    while time.monotonic() < ends:
        pass


def test_limits_hold_in_a_copy_of_the_process() -> None:
    with deadline.limit(60, "what started the thread"):
        pass
    child = os.fork()
    if child == 0:
        status = 1
        try:
            with deadline.limit(0.05, "the copy's"):
                ends = time.monotonic() + 20
                while time.monotonic() < ends:
                    pass
        except tw.ResourceError:
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
