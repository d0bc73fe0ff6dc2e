"""Who of the workers of a host may use its processors."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import distributed
import pytest

from tilewright import _core
from tilewright.cluster import preload, processors
from tilewright.errors import ResourceError


def patient() -> Callable[[], None]:
    return processors.waiting(60.0, lambda: True)


def hasty() -> Callable[[], None]:
    return processors.waiting(0.1, lambda: True)


def test_a_host_measures_one_kernel_at_a_time() -> None:
    with processors.measuring(1, 1, patient()):
        with pytest.raises(ResourceError) as error, processors.measuring(1, 1, hasty()):
            pass
        assert error.value.code == "cluster/busy-host"
    with processors.measuring(1, 1, hasty()) as slot:
        assert slot == 0


def test_builds_share_what_a_kernel_leaves() -> None:
    measure, build, exclusive = _core.plan_processors(1)
    assert exclusive == (measure == build)
    if exclusive:
        pytest.skip("one processor: nothing is left")
    with processors.measuring(1, 1, patient()), processors.building(1, hasty()), processors.building(1, hasty()):
        pass


def test_builds_wait_for_a_kernel_that_has_all_processors() -> None:
    everything = len(os.sched_getaffinity(0))
    measuring, building = processors.measuring, processors.building
    with measuring(everything, 1, patient()), pytest.raises(ResourceError), building(everything, hasty()):
        pass
    with building(everything, patient()), pytest.raises(ResourceError), measuring(everything, 1, hasty()):
        pass


def test_a_measurement_comes_before_later_builds() -> None:
    everything = len(os.sched_getaffinity(0))
    order: list[str] = []
    building = processors.building(everything, patient())
    with building:

        def measure() -> None:
            with processors.measuring(everything, 1, patient()):
                order.append("measure")

        waiting = threading.Thread(target=measure)
        waiting.start()
        while not (processors.folder() / f"gate-{_core.plan_processors(everything)[0][0]}").exists():
            time.sleep(0.01)
        time.sleep(0.2)  # it holds the gate now, or will be the next to do so

        def build() -> None:
            with processors.building(everything, patient()):
                order.append("build")

        later = threading.Thread(target=build)
        later.start()
        time.sleep(0.1)
    waiting.join(60)
    later.join(60)
    assert sorted(order) == ["build", "measure"]
    assert order[0] == "measure"


def test_processors_of_kernels_are_spare_while_nothing_is_measured() -> None:
    measure, _, exclusive = _core.plan_processors(1)
    if exclusive:
        pytest.skip("one processor: nothing is left")
    before = os.sched_getaffinity(0)
    with processors.spare(1) as free:
        assert free and os.sched_getaffinity(0) == set(measure)
        with processors.spare(1) as again:
            assert not again
        with pytest.raises(ResourceError), processors.measuring(1, 1, hasty()):
            pass
        with processors.building(1, hasty()):
            pass
    assert os.sched_getaffinity(0) == before
    with processors.measuring(1, 1, patient()), processors.spare(1) as free:
        assert not free
    with processors.spare(len(before)) as free:  # where kernels use all processors, builds take turns with them
        assert not free


def test_processors_that_a_measurement_waits_for_are_not_spare() -> None:
    measure, _, exclusive = _core.plan_processors(1)
    if exclusive:
        pytest.skip("one processor: nothing is left")
    measured = threading.Event()

    def take() -> None:
        with processors.measuring(1, 1, patient()):
            measured.set()

    waiting = threading.Thread(target=take)
    with processors.spare(1) as free:
        assert free
        waiting.start()
        while not _is_locked(f"processor-{measure[0]}"):
            time.sleep(0.001)
    while not measured.is_set():
        with processors.spare(1) as free:
            assert not free or measured.is_set()
    waiting.join(60)


def test_processors_are_given_on_at_once_within_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of other processes are found by trying again, which never happens here."""
    for name in ("_TRY", "_LONGEST_TRY"):
        monkeypatch.setattr(processors, name, 600.0)
    everything = len(os.sched_getaffinity(0))

    def spare(wait: Callable[[], None]) -> contextlib.AbstractContextManager[object]:
        return processors.spare(1)

    def building(wait: Callable[[], None]) -> contextlib.AbstractContextManager[object]:
        return processors.building(everything, wait)

    def measuring(wait: Callable[[], None]) -> contextlib.AbstractContextManager[object]:
        return processors.measuring(everything, 1, wait)

    for first, second in ((spare, measuring), (building, measuring), (measuring, building), (measuring, measuring)):
        tried, done = threading.Event(), threading.Event()

        def take(second: Any = second, tried: Any = tried, done: Any = done) -> None:
            with second(processors.waiting(600.0, lambda: tried.set() is None)):
                done.set()

        with first(patient()) as free:
            waiting = threading.Thread(target=take, daemon=True)
            waiting.start()
            assert free is False or tried.wait(60)  # where there is no guest, nothing waits
        assert done.wait(60)
        waiting.join(60)


#: A worker of the same host, which is a guest until it is killed.
_GUEST = """
import sys, time
from tilewright.cluster import processors
with processors.spare(1) as free:
    print(free, flush=True)
    time.sleep(600)
"""


def test_a_measurement_waits_for_a_guest_unless_that_is_stopped() -> None:
    if _core.plan_processors(1)[2]:
        pytest.skip("one processor: nothing is left")
    guest = subprocess.Popen([sys.executable, "-c", _GUEST], stdout=subprocess.PIPE, text=True)
    try:
        assert guest.stdout is not None and guest.stdout.readline() == "True\n"
        with pytest.raises(ResourceError), processors.measuring(1, 1, hasty()):
            pass
        os.kill(guest.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, guest.pid, os.WSTOPPED)
        with processors.measuring(1, 1, hasty()):
            pass
        os.kill(guest.pid, signal.SIGCONT)
        os.waitid(os.P_PID, guest.pid, os.WCONTINUED)
        with pytest.raises(ResourceError), processors.measuring(1, 1, hasty()):
            pass
    finally:
        guest.kill()
        guest.wait()
    with processors.measuring(1, 1, hasty()):
        pass


def test_a_guest_takes_no_lock_of_measurements(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is stopped meanwhile would keep it."""
    if _core.plan_processors(1)[2]:
        pytest.skip("one processor: nothing is left")
    names: dict[int, str] = {}
    taken: set[str] = set()
    opened, tried = processors._open, processors._try

    def noted(name: str) -> int:
        file = opened(name)
        names[file] = name
        return file

    def taking(file: int, how: int) -> bool:
        taken.add(names[file])
        return tried(file, how)

    monkeypatch.setattr(processors, "_open", noted)
    monkeypatch.setattr(processors, "_try", taking)
    with processors.spare(1) as free:
        assert free
    assert taken == {f"guest-{cpu}" for cpu in _core.plan_processors(1)[0]}
    # Nor that of the guest while a measurement waits for it.
    with processors.measuring(1, 1, patient()):
        taken.clear()
        with processors.spare(1) as free:
            assert not free
        assert not taken


def _is_locked(name: str) -> bool:
    file = processors._open(name)
    try:
        return not processors._try(file, fcntl.LOCK_SH)
    finally:
        os.close(file)


def test_a_canceled_task_does_not_wait() -> None:
    unwanted = processors.waiting(60.0, lambda: False)
    with (
        processors.measuring(1, 1, patient()),
        pytest.raises(processors.Canceled),
        processors.measuring(1, 1, unwanted),
    ):
        pass


def test_threads_of_a_worker_take_turns_in_the_order_in_which_they_came() -> None:
    turns, order = processors.Turns(), []

    def take(number: int) -> None:
        with contextlib.suppress(processors.Canceled), turns.turn(1, lambda: number != 2):
            order.append(number)

    threads = [threading.Thread(target=take, args=[number]) for number in range(5)]
    with turns.turn(1, lambda: True):
        for number, thread in enumerate(threads):
            thread.start()
            while len(turns._queue) < number + 2 - (number > 2) and thread.is_alive():
                time.sleep(0.001)
    for thread in threads:
        thread.join(60)
    assert order == [0, 1, 3, 4]
    with turns.turn(2, lambda: True), turns.turn(2, lambda: True):
        assert len(turns._queue) == 2
    assert turns._queue == []


def test_threads_started_off_kernels_stay_off_them() -> None:
    measure, build, exclusive = _core.plan_processors(1)
    if exclusive:
        pytest.skip("one processor: nothing is left")
    seen: list[set[int]] = []
    before = os.sched_getaffinity(0)
    with processors.off_kernels():
        thread = threading.Thread(target=lambda: seen.append(os.sched_getaffinity(0)))
        thread.start()
        thread.join()
    assert seen == [set(build)]
    assert os.sched_getaffinity(0) == before

    async def scheduler() -> None:
        async with distributed.Scheduler(host="127.0.0.1", port=0, dashboard=False) as made:
            preload.dask_setup(made)
            seen.append(os.sched_getaffinity(0))
            periods.update({name: each.callback_time for name, each in made.periodic_callbacks.items()})

    periods: dict[str, float] = {}
    thread = threading.Thread(target=lambda: asyncio.run(scheduler()))
    thread.start()
    thread.join()
    assert seen[1].isdisjoint(measure)
    assert periods["tick"] >= 1000 and periods["monitor"] >= 1000


def test_the_plan_is_made_once_for_tasks_that_begin_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    with processors.off_kernels():
        before = os.sched_getaffinity(0)
    monkeypatch.setattr(_core, "plan_processors", None)  # which reads files of the system
    with processors.off_kernels():
        assert os.sched_getaffinity(0) == before


def test_workers_of_several_users_share_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "shared" / "host"
    monkeypatch.setenv(processors.FOLDER_VARIABLE, str(place))
    before = os.umask(0o077)
    try:
        processors.Measures().close()
    finally:
        os.umask(before)
    assert place.stat().st_mode & 0o7777 == 0o1777
    assert (place / "measures").stat().st_mode & 0o7777 == 0o666
    assert processors.Measures().first


def test_folders_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "folder"):
        monkeypatch.setenv(processors.FOLDER_VARIABLE, str(place))
        with pytest.raises(ResourceError, match="the lock files of workers cannot be there") as error:
            processors.Measures()
        assert error.value.code == "cluster/host-folder" and processors.FOLDER_VARIABLE in error.value.hint
    # One that somebody else has made in the folder of temporary files, to have files of this user overwritten.
    monkeypatch.delenv(processors.FOLDER_VARIABLE)
    monkeypatch.setattr(processors.tempfile, "gettempdir", lambda: str(tmp_path))
    victim, trap = tmp_path / "victim", tmp_path / f"tilewright-host-{os.getuid()}"
    victim.mkdir()
    trap.symlink_to(victim)
    with pytest.raises(ResourceError, match="not a folder of this user"):
        processors.Measures()
    trap.unlink()
    trap.mkdir()
    (victim / "notes").write_text("precious")
    (trap / "measures").symlink_to(victim / "notes")
    with pytest.raises(ResourceError):
        processors.Measures()
    assert (victim / "notes").read_text() == "precious"


def test_a_process_that_was_restricted_after_an_import_stays_so() -> None:
    text = """
import os
import subprocess
import sys
from tilewright.cluster import processors
first = {min(os.sched_getaffinity(0))}
os.sched_setaffinity(0, first)
with processors.building(1, processors.waiting(60.0, lambda: True)):
    assert os.sched_getaffinity(0) == first
with processors.off_kernels(), processors.measuring(1, 1, processors.waiting(60.0, lambda: True)):
    assert os.sched_getaffinity(0) == first
"""
    subprocess.run([sys.executable, "-c", text], check=True, timeout=60)


def test_only_the_first_worker_of_a_host_measures() -> None:
    first, second = processors.Measures(), processors.Measures()
    assert (first.first, second.first) == (True, False)
    first.close()
    second.close()
    third = processors.Measures()
    assert third.first
    third.close()
