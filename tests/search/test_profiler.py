"""Where the time goes."""

from __future__ import annotations

import threading
import time

from tilewright.meta_schedule import Profiler


def test_names_are_summed_and_shares_shown():
    with Profiler() as profiler:
        for _ in range(2):
            with Profiler.timeit("Outer"), Profiler.timeit("Inner"):
                time.sleep(0.05)
        profiler.add("Elsewhere", 10.0)
        assert profiler.get()["Total"] >= 0.1  # so far
    seconds = profiler.get()
    assert 0.1 <= seconds["Inner"] <= seconds["Outer"] <= seconds["Total"] < 5
    assert seconds["Elsewhere"] == 10.0
    assert [row[1] for row in profiler.table().rows] == ["Total", "Elsewhere", "Outer", "Inner"]


def test_the_current_one_is_that_of_this_thread():
    seen = []
    with Profiler() as outer:
        with Profiler() as inner:
            assert Profiler.current() is inner
        assert Profiler.current() is outer
        thread = threading.Thread(target=lambda: seen.append(Profiler.current()))
        thread.start()
        thread.join()
    assert seen == [None]
    with Profiler.timeit("nothing"):
        assert Profiler.current() is None
    assert "nothing" not in outer.get()


def test_a_block_that_raises_counts():
    with Profiler() as profiler:
        try:
            with Profiler.timeit("Failing"):
                raise ValueError
        except ValueError:
            pass
    assert "Failing" in profiler.get()
