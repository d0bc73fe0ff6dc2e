"""sch.@name@: <what it does>."""

import pytest

import tilewright as tw
from tilewright.script import tir as T
from tilewright.testing import check


def test_the_example_of_the_contract():
    check(<before>, <lambda sch: ...>, <after>)


def test_p1_<what it requires>():
    with pytest.raises(tw.ScheduleError, match="@name@/P1"):
        <a schedule that breaks P1>
