"""Schedules of a subclass: copies keep the class, and a schedule can be seen as an object of one."""

import pytest

import tilewright as tw
from tilewright.testing import workloads


class Counting(tw.Schedule):
    def loops(self):
        return len(self.get_loops("C"))


def test_both_are_one_schedule():
    sch = tw.Schedule(workloads.matmul(8, 8, 8), seed=1)
    seen = sch.seen_as(Counting)
    assert isinstance(seen, Counting) and seen.loops() == 3
    sch.split(seen.get_loops("C")[0], [None, 2])
    assert seen.loops() == 4 == len(sch.get_loops("C"))
    assert str(seen.mod) == str(sch.mod) and seen.fork_seed() != sch.fork_seed()
    del sch
    assert seen.loops() == 4


def test_copies_keep_their_class():
    copy = Counting(workloads.matmul(8, 8, 8), seed=1).copy()
    assert type(copy) is Counting and copy.loops() == 3
    assert type(tw.Schedule(workloads.matmul(8, 8, 8)).copy()) is tw.Schedule


def test_other_classes_are_refused():
    with pytest.raises(tw.ArgumentError, match=r"schedule/class"):
        tw.Schedule(workloads.matmul(8, 8, 8)).seen_as(int)
