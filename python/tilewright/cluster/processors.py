"""Locks that decide which worker of a host uses its processors.

The host is the unit: all workers on it share a folder of lock files, one for each slot that measures and one for each
processor. Locks are those of the system (``flock``), so a worker that is killed gives its locks back.

- A measurement has a slot, and the processors of its kernel for itself.
- A build shares the processors that the plan of the measuring pipeline leaves to builds (``cpu_plan.h``) with other
  builds. Where kernels use the whole machine, these are the same, and builds and measurements take turns.
- While nothing is measured, a build of the host may use the processors of kernels: the guest.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import stat
import struct
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tilewright import _core
from tilewright.errors import ResourceError

#: where another folder for locks is wanted, such as for several workers in containers of one host
FOLDER_VARIABLE = "TILEWRIGHT_HOST_FOLDER"
#: seconds between two tries
_TRY, _LONGEST_TRY = 0.002, 0.02
#: seconds between two looks whether a task is wanted that waits for another task of its process
_LOOK = 0.1
#: struct flock of a lock on a whole file, beside that of flock(): it shows, without a lock, that a measurement has it
_MARK = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)


class Canceled(Exception):
    """A task was canceled."""


class Freed:
    """Event for the threads of this process that wait for processors: it counts how often the process has released
    some. Processors that other processes release are found by polling."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.count = 0

    def notify(self) -> None:
        """Count a release, and wake all waiting threads."""
        with self._changed:
            self.count += 1
            self._changed.notify_all()

    def wait(self, count: int, seconds: float) -> None:
        """Wait for a release after the one with this number, for at most `seconds`; return at once if there was one."""
        with self._changed:
            self._changed.wait_for(lambda: self.count != count, seconds)


#: of this process
FREED = Freed()


def _shared_folder() -> str:
    """Return the folder that workers of several users share; "" if this user's workers have their own."""
    return os.environ.get(FOLDER_VARIABLE, "")


def folder() -> Path:
    """Return the folder of the lock files of this host.

    Raises:
        tilewright.ResourceError: there is none, or another user has made it.
    """
    shared = _shared_folder()
    path = Path(shared or Path(tempfile.gettempdir()) / f"tilewright-host-{os.getuid()}")
    try:
        path.mkdir(mode=0o700, parents=True)
        if shared:
            path.chmod(0o1777)
    except FileExistsError:
        found = path.lstat()
        if not shared and not (stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()):
            raise _no_locks(path, "it is not a folder of this user") from None
    except OSError as error:
        raise _no_locks(path, error.strerror or str(error)) from None
    return path


def _no_locks(path: Path, why: str) -> ResourceError:
    hint = f"name a folder that all workers of this host may write to in the environment variable {FOLDER_VARIABLE}"
    return ResourceError.of("cluster/host-folder", f"{path}: the lock files of workers cannot be there: {why}", hint)


def _open(name: str) -> int:
    """Open a lock file. Without O_CREAT where it exists: systems refuse that for files of others in shared folders."""
    path, how = folder() / name, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    while True:
        try:
            with contextlib.suppress(FileNotFoundError):
                return os.open(path, how)
            file = os.open(path, how | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            continue  # another worker has just made it
        except OSError as error:
            raise _no_locks(path, error.strerror or str(error)) from None
        if _shared_folder():
            os.fchmod(file, 0o666)
        return file


def _try(file: int, how: int) -> bool:
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextlib.contextmanager
def held(name: str, how: int, wait: Callable[[], None]) -> Iterator[None]:
    """Hold a lock. `wait` is called between two tries, and raises an error at the deadline."""
    file = _open(name)
    try:
        while not _try(file, how):
            wait()
        if how == fcntl.LOCK_EX:
            fcntl.fcntl(file, fcntl.F_OFD_SETLK, _MARK)
        yield
    finally:
        os.close(file)
        FREED.notify()


def waiting(seconds: float, wanted: Callable[[], bool]) -> Callable[[], None]:
    """Return a function that waits briefly, to call after each try to get a processor that failed. It raises an error
    after `seconds`, or if the task is canceled."""
    end = time.monotonic() + seconds
    pause, count = _TRY, FREED.count

    def wait() -> None:
        nonlocal pause, count
        if not wanted():
            raise Canceled
        if time.monotonic() > end:
            raise ResourceError.of(
                "cluster/busy-host",
                f"the processors of this host were not free for {seconds:.0f} s",
                "is a worker on it stopped?",
            )
        FREED.wait(count, pause)
        pause, count = min(2 * pause, _LONGEST_TRY), FREED.count

    return wait


@contextlib.contextmanager
def _pinned_for_a_while(pin: Callable[[], None]) -> Iterator[None]:
    """Pin the calling thread, and restore the processors that it may run on at the end."""
    before = os.sched_getaffinity(0)
    pin()
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@functools.cache
def _all_processors() -> frozenset[int]:
    """Return the processors of this process: those of the first thread that asks, which is before one is pinned here.
    Threads that a pinned one starts inherit its processors."""
    return frozenset(os.sched_getaffinity(0))


def on_all() -> contextlib.AbstractContextManager[None]:
    """Allow the calling thread all processors for a while: plans use those that it may run on."""
    every = _all_processors()
    return _pinned_for_a_while(lambda: os.sched_setaffinity(0, every))


@functools.cache
def _plan(threads: int) -> tuple[list[int], list[int], bool]:
    """Return the processors for kernels with `threads` threads and for builds, and whether they are the same."""
    with on_all():
        return _core.plan_processors(threads)


@functools.cache
def _plan_on(usable: frozenset[int]) -> tuple[list[int], list[int], bool]:
    """Return the plan for single-threaded kernels of a thread that may run on these processors, as the calling one may.
    It follows from files of the system, which take longer to read than a task takes to begin."""
    return _core.plan_processors(1)


def stay_off_kernels() -> None:
    """Pin the calling thread, and threads that it starts, to processors that single-threaded kernels do not use."""
    _all_processors()
    measure, build, exclusive = _plan_on(frozenset(os.sched_getaffinity(0)))
    if not exclusive and measure != build:
        os.sched_setaffinity(0, build)


def off_kernels() -> contextlib.AbstractContextManager[None]:
    """Keep the calling thread, and threads that it starts meanwhile, off the processors of single-threaded kernels."""
    return _pinned_for_a_while(stay_off_kernels)


class Turns:
    """A first-in, first-out semaphore for the threads of this process."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._queue: list[object] = []  # a ticket per thread; the first ones hold the semaphore

    @contextlib.contextmanager
    def turn(self, slots: int, wanted: Callable[[], bool]) -> Iterator[None]:
        """Hold the semaphore, which admits `slots` threads at a time. A release wakes the next thread at once.

        Raises:
            Canceled: `wanted` returned false while the thread waited.
        """
        ticket = object()
        with self._changed:
            self._queue.append(ticket)
        try:
            with self._changed:
                while self._queue.index(ticket) >= slots:
                    if not wanted():
                        raise Canceled
                    self._changed.wait(_LOOK)
            yield
        finally:
            with self._changed:
                self._queue.remove(ticket)
                self._changed.notify_all()


@contextlib.contextmanager
def measuring(threads: int, slots: int, wait: Callable[[], None]) -> Iterator[int]:
    """Hold a slot and the processors of a kernel with `threads` threads. Yields the number of the slot.

    The calling thread is pinned to processors that lower slots do not use, so plans made on it are disjoint.
    """
    with contextlib.ExitStack() as locks:
        slot = _free_slot(slots, wait, locks)
        locks.enter_context(on_all())
        for _ in range(slot):
            left = os.sched_getaffinity(0) - {*_core.plan_processors(threads)[0]}
            os.sched_setaffinity(0, left or _all_processors())
        for cpu in sorted(_core.plan_processors(threads)[0]):
            # Later builds block on the gate, so a stream of builds cannot starve the measurement.
            with held(f"gate-{cpu}", fcntl.LOCK_EX, wait):
                locks.enter_context(held(f"processor-{cpu}", fcntl.LOCK_EX, wait))
            _wait_for_guest(cpu, wait)
        yield slot


def _free_slot(slots: int, wait: Callable[[], None], locks: contextlib.ExitStack) -> int:
    files = [_open(f"measure-{slot}") for slot in range(slots)]
    locks.callback(FREED.notify)
    for file in files:
        locks.callback(os.close, file)
    while True:
        for slot, file in enumerate(files):
            if _try(file, fcntl.LOCK_EX):
                return slot
        wait()


@contextlib.contextmanager
def building(threads: int, wait: Callable[[], None]) -> Iterator[None]:
    """Share the processors that kernels with `threads` threads leave to builds."""
    with contextlib.ExitStack() as locks:
        for cpu in sorted(_plan(threads)[1]):
            with held(f"gate-{cpu}", fcntl.LOCK_SH, wait):
                locks.enter_context(held(f"processor-{cpu}", fcntl.LOCK_SH, wait))
        yield


@contextlib.contextmanager
def spare(threads: int) -> Iterator[bool]:
    """Be the guest of the host on the processors of a kernel with `threads` threads, if no measurement uses or waits
    for them. A measurement that comes later waits for the guest.

    The calling thread, and threads and processes that it starts meanwhile, are pinned to these processors. Yields
    whether they were free.
    """
    free = False
    try:
        with contextlib.ExitStack() as locks:
            measure, _, exclusive = _plan(threads)
            free = not exclusive and all(_is_guest(cpu, locks) for cpu in sorted(measure))
            if free:
                locks.enter_context(_pinned_for_a_while(lambda: os.sched_setaffinity(0, measure)))
            yield free
    finally:
        if free:
            FREED.notify()


def _is_guest(cpu: int, locks: contextlib.ExitStack) -> bool:
    if _is_for_measurement(cpu):  # which waits for a guest, so this one must not have the lock for a moment
        return False
    guest = _open(f"guest-{cpu}")
    locks.callback(os.close, guest)
    if not _try(guest, fcntl.LOCK_EX):
        return False
    if _process_of(guest) != str(os.getpid()):
        _write_process(guest)
    return not _is_for_measurement(cpu)


def _is_for_measurement(cpu: int) -> bool:
    """Return whether a measurement uses a processor, or waits for it."""
    return any(_is_marked(name) for name in (f"gate-{cpu}", f"processor-{cpu}"))


def _is_marked(name: str) -> bool:
    """Return whether a measurement has a lock. This takes none, which a process that is stopped would keep."""
    file = _open(name)
    try:
        (kind,) = struct.unpack_from("h", fcntl.fcntl(file, fcntl.F_OFD_GETLK, _MARK))
        return bool(kind != fcntl.F_UNLCK)
    finally:
        os.close(file)


def _wait_for_guest(cpu: int, wait: Callable[[], None]) -> None:
    """Wait until no guest is on a processor, except one whose process is stopped: it may hold its lock for long."""
    file = _open(f"guest-{cpu}")
    try:
        while not _try(file, fcntl.LOCK_SH) and not _is_stopped(_process_of(file)):
            wait()
    finally:
        os.close(file)


def _is_stopped(process: str) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] in "Tt"
    except (OSError, IndexError):  # it has ended, or is in another container
        return False


def _write_process(file: int) -> None:
    """Write the number of this process to a lock file that it holds."""
    os.ftruncate(file, 0)
    os.pwrite(file, str(os.getpid()).encode(), 0)


def _process_of(file: int) -> str:
    """Return the process that holds a lock file, as text; empty where it is about to write that."""
    return os.pread(file, 20, 0).decode(errors="replace")


class Measures:
    """Whether this process was the first on its host to claim measurements; it keeps the claim until it ends."""

    def __init__(self) -> None:
        self._file = _open("measures")
        self.first = _try(self._file, fcntl.LOCK_EX)
        if self.first:
            _write_process(self._file)

    @property
    def holder(self) -> str:
        """Return the process that holds the claim, as text; empty until that process has written its name."""
        return _process_of(self._file)

    def close(self) -> None:
        """Release the claim."""
        os.close(self._file)
