"""Who of the workers of a host may use its processors now.

The host is the unit: all workers on it share a folder of lock files, one for each slot that measures and one for each
processor. Locks are those of the system (``flock``), so a worker that is killed gives its locks back.

- A measurement has a slot, and the processors of its kernel for itself.
- A build shares the processors that the plan of the measuring pipeline leaves to builds (``cpu_plan.h``) with other
  builds. Where kernels use the whole machine, these are the same, and builds and measurements take turns.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tilewright import _core
from tilewright.errors import ResourceError

#: where another folder for locks is wanted, such as for several workers in containers of one host
FOLDER_VARIABLE = "TILEWRIGHT_HOST_FOLDER"
#: those of this process; its threads may be kept on some of them
_ALL = os.sched_getaffinity(0)
#: seconds between two tries
_TRY, _LONGEST_TRY = 0.002, 0.02


class Canceled(Exception):
    """Nobody waits for the result of a task any more."""


def folder() -> Path:
    """Where the locks of this host are."""
    path = Path(os.environ.get(FOLDER_VARIABLE) or Path(tempfile.gettempdir()) / f"tilewright-host-{os.getuid()}")
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def _open(name: str) -> int:
    return os.open(folder() / name, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)


def _try(file: int, how: int) -> bool:
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextlib.contextmanager
def held(name: str, how: int, wait: Callable[[], None]) -> Iterator[None]:
    """Holds a lock; `wait` is called between tries, and raises where the time is over."""
    file = _open(name)
    try:
        while not _try(file, how):
            wait()
        yield
    finally:
        os.close(file)


def waiting(seconds: float, wanted: Callable[[], bool]) -> Callable[[], None]:
    """Waits a little; raises where that has taken so many seconds, or nobody wants the result."""
    end = time.monotonic() + seconds
    pause = _TRY

    def wait() -> None:
        nonlocal pause
        if not wanted():
            raise Canceled
        if time.monotonic() > end:
            raise ResourceError.of(
                "cluster/busy-host",
                f"the processors of this host were not free for {seconds:.0f} s",
                "is a worker on it stopped?",
            )
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_TRY)

    return wait


@contextlib.contextmanager
def _on_all() -> Iterator[None]:
    """Plans are made of what the calling thread may use."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, _ALL)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def stay_off_kernels() -> None:
    """Keeps the calling thread, and those that it starts, off the processors of kernels of one thread."""
    measure, build, exclusive = _core.plan_processors(1)
    if not exclusive and measure != build:
        os.sched_setaffinity(0, build)


@contextlib.contextmanager
def measuring(threads: int, slots: int, wait: Callable[[], None]) -> Iterator[int]:
    """Holds a slot and the processors of a kernel of so many threads; gives the number of the slot.

    The calling thread is kept on what the slots before leave, so that plans made on it have other processors.
    """
    with contextlib.ExitStack() as locks:
        slot = _free_slot(slots, wait, locks)
        locks.enter_context(_on_all())
        for _ in range(slot):
            left = os.sched_getaffinity(0) - {*_core.plan_processors(threads)[0]}
            os.sched_setaffinity(0, left or _ALL)
        for cpu in sorted(_core.plan_processors(threads)[0]):
            # Builds that come later wait at the gate, so a measurement is not put off by one build after the other.
            with held(f"gate-{cpu}", fcntl.LOCK_EX, wait):
                locks.enter_context(held(f"processor-{cpu}", fcntl.LOCK_EX, wait))
        yield slot


def _free_slot(slots: int, wait: Callable[[], None], locks: contextlib.ExitStack) -> int:
    files = [_open(f"measure-{slot}") for slot in range(slots)]
    for file in files:
        locks.callback(os.close, file)
    while True:
        for slot, file in enumerate(files):
            if _try(file, fcntl.LOCK_EX):
                return slot
        wait()


@contextlib.contextmanager
def building(threads: int, wait: Callable[[], None]) -> Iterator[None]:
    """Shares the processors that kernels of so many threads leave to builds."""
    with contextlib.ExitStack() as locks:
        locks.enter_context(_on_all())
        for cpu in sorted(_core.plan_processors(threads)[1]):
            with held(f"gate-{cpu}", fcntl.LOCK_SH, wait):
                locks.enter_context(held(f"processor-{cpu}", fcntl.LOCK_SH, wait))
        yield


class Measures:
    """Whether this process is the one that measures on this host; it is until it ends."""

    def __init__(self) -> None:
        self._file = _open("measures")
        self.first = _try(self._file, fcntl.LOCK_EX)

    def close(self) -> None:
        """Another one may."""
        os.close(self._file)
