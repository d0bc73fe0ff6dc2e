"""The thread that advances the searches of a connection."""

from __future__ import annotations

import sys
from typing import Any

from tilewright.cluster.pump import Pump


class Member:
    """A search that does nothing."""

    task_seconds = 0.0

    def step(self) -> None: ...
    def take_event(self, event: tuple[Any, ...]) -> None: ...


def test_threads_of_searches_do_not_wait_long_for_one_that_computes() -> None:
    """The interpreter has one switch interval, which a user may have set."""
    before = sys.getswitchinterval()
    pumps, members = [Pump(), Pump()], [Member(), Member(), Member()]
    pumps[0].join(members[0])
    prompt = sys.getswitchinterval()
    assert prompt < 0.002
    pumps[0].join(members[1])
    pumps[1].join(members[2])
    for pump, member in zip((pumps[0], pumps[0], pumps[1]), members, strict=True):
        assert sys.getswitchinterval() == prompt
        pump.leave(member)
    assert sys.getswitchinterval() == before
    sys.setswitchinterval(1e-5)
    try:
        prompt = sys.getswitchinterval()
        pumps[0].join(members[0])
        assert sys.getswitchinterval() == prompt
        pumps[0].leave(members[0])
        assert sys.getswitchinterval() == prompt
    finally:
        sys.setswitchinterval(before)
