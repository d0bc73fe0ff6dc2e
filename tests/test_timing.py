"""Who is called when; the seconds themselves are not asserted."""

import time

import pytest

from tilewright import timing


def recorder(calls, name, seconds=0.0):
    def call():
        calls.append(name)
        time.sleep(seconds)

    return call


def test_functions_take_turns():
    calls = []
    long = timing.SLICE_SECONDS * 2  # one call fills a slice
    functions = {name: recorder(calls, name, long) for name in "ab"}
    samples = timing.time_in_turn(functions, rounds=5)
    assert [len(samples[name]) for name in "ab"] == [5, 5]
    assert calls[:2] == ["a", "b"]  # the warm-up
    assert calls[2:] == ["a", "b"] * 5


def test_a_turn_after_a_rest_begins_with_an_untimed_call():
    calls = []
    samples = timing.time_in_turn({"a": recorder(calls, "a", timing.SLICE_SECONDS * 2)}, rounds=4, rest=0.001)
    assert len(samples["a"]) == 4
    assert len(calls) == 1 + 2 * 4


def test_what_comes_before_each_call_is_not_timed(monkeypatch):
    now = 0.0
    calls = []

    def spend(name, seconds):
        def call():
            nonlocal now
            now += seconds
            calls.append(name)

        return call

    monkeypatch.setattr(time, "perf_counter", lambda: now)
    samples = timing.time_in_turn({"a": spend("call", 0.01)}, rounds=3, before_each=spend("flush", 0.5))
    assert calls[-6:] == ["flush", "call"] * 3
    assert samples["a"] == pytest.approx((0.01,) * 3)


def test_a_very_long_call_is_made_once(monkeypatch):
    monkeypatch.setattr(timing, "LONG_CALL_SECONDS", 0.01)
    calls = []
    samples = timing.time_in_turn({"a": recorder(calls, "a", 0.02), "b": recorder(calls, "b", 0.004)}, rounds=3)
    assert len(samples["a"]) == 1
    assert calls.count("a") == 1
    assert len(samples["b"]) == 3


def test_paired_ratio():
    assert timing.paired_ratio([2.0, 4.0, 9.0], [1.0, 2.0, 3.0]) == pytest.approx((2.0, 2.0, 3.0), abs=0.6)
    middle, low, high = timing.paired_ratio([3.0] * 5, [2.0] * 5)
    assert (middle, low, high) == pytest.approx((1.5, 1.5, 1.5))
