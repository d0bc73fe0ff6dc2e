"""Who is called when; the seconds themselves are not asserted."""

import itertools
import pickle
import time

import numpy as np
import pytest

import tilewright as tw
from tilewright import timing
from tilewright.script import tir as T
from tilewright.support import machine


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    """Whatever else runs on the machine."""
    monkeypatch.setattr(timing, "_involuntary_switches", lambda threads: 0)


def recorder(calls, name, seconds=0.0):
    def call():
        calls.append(name)
        time.sleep(seconds)

    return call


def test_functions_take_turns():
    calls = []
    long = timing.SLICE_SECONDS * 2  # one call fills a slice
    functions = {name: recorder(calls, name, long) for name in "ab"}
    samples = timing.time_interleaved(functions, rounds=5)
    assert [len(samples[name]) for name in "ab"] == [5, 5]
    assert calls[:2] == ["a", "b"]  # the warm-up
    assert calls[2:] == ["a", "b"] * 5


def test_with_several_threads_each_has_the_machine_to_itself(monkeypatch):
    monkeypatch.setattr(timing.machine, "REST_SECONDS", 0.0)
    monkeypatch.setattr(timing.machine, "roofs", lambda threads: roofs_of(1e15))
    calls = []
    long = timing.SLICE_SECONDS * 2
    functions = {name: recorder(calls, name, long) for name in "ab"}
    times = timing.compare(functions, timing.Work(1, 1), threads=2, rounds=4)
    assert calls == ["a"] * 5 + ["b"] * 5
    assert [len(times[name].seconds) for name in "ab"] == [4, 4]


def roofs_of(rate):
    return machine.Roofs(1, {"float32": rate}, (machine.Level("memory", 0, rate),))


def test_limits_that_are_exceeded_are_measured_again(monkeypatch):
    monkeypatch.delenv("TILEWRIGHT_ROOFS", raising=False)
    found = iter([roofs_of(5e2), roofs_of(1e3), roofs_of(1e2), roofs_of(1e4)])
    monkeypatch.setattr(machine, "_probe", lambda threads: next(found))
    monkeypatch.setattr(machine, "_found", {})
    fast = {"a": lambda: None}
    (time_of,) = timing.compare(fast, timing.Work(1, 1), rounds=3).values()
    # Of the first two the higher one counts; the look that followed, since even that was exceeded, found less.
    assert time_of.roof.seconds == 1e-3
    assert time_of.fraction > 1 and "%! of" in str(time_of)
    (time_of,) = timing.compare(fast, timing.Work(1, 1), rounds=3).values()
    assert time_of.roof.seconds == 1e-4
    (time_of,) = timing.compare(fast, timing.Work(1, 1), rounds=3).values()
    assert time_of.roof.seconds == 1e-4  # three such looks at most


def test_limits_are_kept_in_a_file_that_the_environment_names(tmp_path, monkeypatch):
    file = tmp_path / "roofs.json"
    monkeypatch.setenv("TILEWRIGHT_ROOFS", str(file))
    rates = []

    def measure(*measured, threads=1):
        monkeypatch.setattr(machine, "_found", {})  # as in another process
        rates[:] = measured
        monkeypatch.setattr(machine, "_probe", lambda threads: roofs_of(rates.pop(0)))
        return machine.roofs(threads).peaks["float32"]

    assert measure(1e9, 2e9) == 2e9 == measure()  # the second one measures nothing
    assert machine.roofs(1).levels == (machine.Level("memory", 0, 2e9),)
    rates[:] = [3e9]
    assert machine.probe_again(1).peaks["float32"] == 3e9 == measure()
    for damaged in ("", "[1]", '{"a": 1}', file.read_text().replace("peaks", "other"), file.read_text()[:-20]):
        file.write_text(damaged)
        assert measure(1e9, 4e9) == 4e9 == measure()
    file.write_text(file.read_text().replace("-mcpu=", "-mcpu=other-"))
    assert measure(5e9, 1e9) == 5e9
    monkeypatch.setenv("TILEWRIGHT_ROOFS", str(tmp_path / "missing" / "roofs.json"))
    assert measure(1e9, 6e9) == 6e9 and measure(7e9, 1e9) == 7e9
    monkeypatch.delenv("TILEWRIGHT_ROOFS")
    assert measure(1e9, 8e9) == 8e9


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (1e-3, "1 ms"),
        (9.999e-4, "1 ms"),
        (9.99e-4, "999 us"),
        (5.26e-8, "52.6 ns"),
        (0.9999, "1 s"),
        (123.4, "123 s"),
        (1234.5, "1234 s"),
        (9.996e-7, "1 us"),
        (0.0, "0 ns"),
    ],
)
def test_seconds_are_three_digits_and_a_unit(seconds, text):
    assert timing.format_seconds(seconds) == text


def test_estimates_and_what_is_beyond_the_limit_are_marked():
    guess, exact = timing.Work(1, 1, exact=False), timing.Work(1, 1)
    assert timing.format_estimate(3.14159, guess) == "~3.1" and timing.format_estimate(3.14159, exact) == "3.1"
    assert timing.format_share(0.956, exact) == "96 %" and timing.format_share(1.04, exact) == "104 %!"
    assert timing.format_share(1.04, guess) == "~104 %!"


def test_a_kernel_is_timed_without_python():
    @T.prim_func
    def tiny(X: T.Buffer((8,), "float32"), Y: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("Y"):
                vi = T.axis.spatial(8, i)
                Y[vi] = X[vi] + T.float32(1)

    x, y = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    kernel = tw.compile(tiny)
    calls = timing.KernelCalls(kernel, (x, y))
    samples = timing.time_interleaved({"alone": calls, "called": lambda: calls()}, rounds=9)
    np.testing.assert_array_equal(y, x + 1)
    assert min(samples["alone"]) < min(samples["called"])
    with pytest.raises(tw.ArgumentError):
        timing.KernelCalls(kernel, (x,)).seconds_of(1)
    with pytest.raises(TypeError, match="takes a kernel"):
        tw._core.time_calls(len, 1, x)


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
    samples = timing.time_interleaved({"a": spend("call", 0.01)}, rounds=3, before_each=spend("flush", 0.5))
    assert calls[-6:] == ["flush", "call"] * 3
    assert samples["a"] == pytest.approx((0.01,) * 3)


def test_a_very_long_call_is_made_once(monkeypatch):
    monkeypatch.setattr(timing, "LONG_CALL_SECONDS", 0.01)
    calls = []
    samples = timing.time_interleaved({"a": recorder(calls, "a", 0.02), "b": recorder(calls, "b", 0.004)}, rounds=3)
    assert len(samples["a"]) == 1
    assert calls.count("a") == 1
    assert len(samples["b"]) == 3


def test_ratio():
    assert timing.ratio([2.0, 4.0, 9.0], [1.0, 2.0, 3.0]) == pytest.approx((2.0, 2.0, 3.0), abs=0.6)
    middle, low, high = timing.ratio([3.0] * 5, [2.0] * 5)
    assert (middle, low, high) == pytest.approx((1.5, 1.5, 1.5))
    # That of the medians, which are what a table shows, and not a median of other numbers.
    first, second = [1.0, 3.0, 10.0], [2.0, 1.0, 9.0]
    middle, low, high = timing.ratio(first, second)
    assert middle == 3.0 / 2.0 and low <= middle <= high


def test_rates_are_of_the_program_as_written(tmp_path):
    """Neither what a schedule computes again nor what it computes beyond the edges counts as work."""
    n = 96

    @T.prim_func
    def twice(A: T.Buffer((n, n), "float32"), C: T.Buffer((n, n), "float32")):
        B = T.alloc_buffer((n, n), "float32")
        for i, j in T.grid(n, n):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2) + T.float32(1)
        for i, j in T.grid(n, n):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, vj] + B[vi, n - 1 - vj] + B[n - 1 - vi, vj]

    again = tw.Schedule(twice)
    again.compute_inline("B")
    tiled = tw.Schedule(twice)
    tiled.split(tiled.get_loops("C")[1], [None, 64])
    file = tmp_path / "records.db"
    tw.tune(twice, space=lambda sch: sch.compute_inline("B"), trials=1, database=file, progress=None)
    kernels = [tw.compile(each) for each in (twice, again, tiled)] + [
        tw.compile(twice, schedule="as written"),
        tw.compile(twice, database=file),
        pickle.loads(pickle.dumps(tw.compile(again))),
    ]
    arrays = np.ones((n, n), "float32"), np.zeros((n, n), "float32")
    assert {kernel.benchmark(*arrays).work.flops for kernel in kernels} == {4 * n * n}


def lost_in(monkeypatch, slices):
    """Other programs take the processor away in these slices, counted from 0 with the warm-up."""
    asked = []

    def lost(threads):
        asked.append(threads)  # before and after each slice
        return sum(len(asked) >= 2 * each + 2 for each in slices)

    monkeypatch.setattr(timing, "_involuntary_switches", lost)


def test_disturbed_rounds_are_left_out_where_enough_are_left(monkeypatch):
    # Slices of two functions: their warm-ups are 0 and 1, round n has 2 + 2 n and 3 + 2 n.
    lost_in(monkeypatch, [3, 6])
    long = timing.SLICE_SECONDS * 2
    turns = timing.time_slices({name: recorder([], name, long) for name in "ab"}, rounds=5)
    assert [len(turns.seconds[name]) for name in "ab"] == [3, 3]
    assert turns.disturbed == {"a": 0.2, "b": 0.2}
    lost_in(monkeypatch, range(3, 20))
    turns = timing.time_slices({name: recorder([], name, long) for name in "ab"}, rounds=5)
    assert [len(turns.seconds[name]) for name in "ab"] == [5, 5]
    assert turns.disturbed == {"a": 0.8, "b": 1.0}


def test_of_what_others_disturb_the_time_on_the_processor_counts(monkeypatch):
    # Of the 20 ms that go by in a call its thread has the processor for 15.
    wall = busy = 0.0

    def call():
        nonlocal wall, busy
        wall, busy = wall + 0.02, busy + 0.015

    waited = itertools.count()
    monkeypatch.setattr(timing, "_run_queue_seconds", lambda: float(next(waited)))
    monkeypatch.setattr(time, "perf_counter", lambda: wall)
    monkeypatch.setattr(time, "thread_time", lambda: busy)
    for threads, others, beside in ((1, range(40), 0), (1, range(40), 1), (2, range(40), 0), (1, [], 0)):
        # Where other threads of the process work, too, the function may wait for them.
        monkeypatch.setattr(time, "process_time", lambda beside=beside: busy * (1 + beside))
        lost_in(monkeypatch, others)
        turns = timing.time_slices({"a": call}, rounds=4, threads=threads)
        counts = 0.015 if threads == 1 and others and not beside else 0.02
        assert turns.seconds["a"] == pytest.approx((counts,) * 4)
        assert turns.disturbed == {"a": 1.0 if others else 0.0}


def test_a_moment_of_the_system_is_no_other_program(monkeypatch):
    lost_in(monkeypatch, range(40))
    begin = time.perf_counter

    def works():
        until = begin() + 0.01
        while begin() < until:
            pass

    monkeypatch.setattr(timing.time, "thread_time", time.perf_counter)  # the thread had its processor all the time
    turns = timing.time_slices({"a": works}, rounds=4)
    assert turns.disturbed == {"a": 0.0}


def test_what_was_measured_beside_others_says_so(monkeypatch):
    monkeypatch.setattr(timing.machine, "roofs", lambda threads: roofs_of(1e15))
    calls = {"a": recorder([], "a", timing.SLICE_SECONDS * 2)}
    (alone,) = timing.compare(calls, timing.Work(1, 1), rounds=4).values()
    assert alone.disturbed == 0 and alone.table().title.endswith("warm caches, alone")
    lost_in(monkeypatch, range(20))
    (beside,) = timing.compare(calls, timing.Work(1, 1), rounds=4).values()
    assert beside.disturbed == 1 and beside.table().title.endswith("warm caches, contended")
    assert timing.contention_label(0.3) == ""
    assert "contended" not in str(alone) and str(beside).endswith(", contended")
    lost_in(monkeypatch, [1])
    (some,) = timing.compare(calls, timing.Work(1, 1), rounds=4).values()
    assert str(some).endswith(", 25% of the slices disturbed")


def test_times_in_turn_say_what_was_measured_beside_others(monkeypatch):
    calls = {"a": recorder([], "a", timing.SLICE_SECONDS * 2)}
    alone = timing.time_interleaved(calls, rounds=4)
    assert alone.disturbed == {"a": 0} and "contended" not in str(alone)
    lost_in(monkeypatch, range(20))
    beside = timing.time_interleaved(calls, rounds=4)
    assert beside.disturbed == {"a": 1} and str(beside).endswith(", contended")


def test_slices_are_as_long_after_a_slow_start():
    # The first call takes longer than a slice, as where another program has the processor.
    made = []

    def slow_at_first():
        made.append(time.perf_counter())
        time.sleep(0.0001 if len(made) > 1 else 2 * timing.SLICE_SECONDS)

    timing.time_slices({"a": slow_at_first}, rounds=4)
    # A round of one call, then slices as for its usual time.
    assert len(made) > 2 + 3 * 5
