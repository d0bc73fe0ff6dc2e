"""Processes that do what may crash, hang or eat memory, one call at a time.

>>> worker = Worker(initializer)
>>> worker.call(function, (1, 2), seconds=30.0)     # what it returned; Overdue, Lost or Raised otherwise
>>> worker.close()

They are new processes, not copies of this one, whose threads and locks a copy would not survive. Functions travel by
their names where their module can be imported there, and by their code otherwise. A worker that is lost is replaced by
the next call. One that has lost its parent ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib
import itertools
import math
import os
import pickle
import resource
import select
import signal
import struct
import subprocess
import sys
import threading
import time
import traceback
import weakref
from collections.abc import Callable
from typing import Any

import cloudpickle

from tilewright.errors import ResourceError

__all__ = ["Lost", "Overdue", "Raised", "Worker"]

_LENGTH = struct.Struct("<Q")
#: seconds that a new process may take to be there and to run its initializer
START_SECONDS = 120.0
#: seconds that a call may take at most, where it has a limit; the system counts milliseconds in 32 bits
MOST_SECONDS = 2e6
PIPES = "TILEWRIGHT_WORKER_PIPES"
#: Functions of the parent may name its modules, which are there once this is imported.
_ALIAS = "tilewright.compat.tvm"
_MAIN = "from tilewright.meta_schedule.worker import serve; serve()"


class Overdue(Exception):
    """The call took too long; its process was killed."""


class Lost(Exception):
    """The process died during the call; the text has the signal or exit status."""


class Raised(Exception):
    """The function raised; the text is its traceback, as the worker saw it."""


def _wait(fd: int, event: int, until: float) -> None:
    """Wait until a pipe can be read or written, or its other end is closed."""
    poll = select.poll()  # select() takes no file numbers from 1024 on
    poll.register(fd, event)
    left = None if math.isinf(until) else min(max(0.0, until - time.monotonic()), MOST_SECONDS)
    if not poll.poll(None if left is None else 1000 * left):
        raise Overdue


def _read(fd: int, size: int, until: float) -> bytes:
    parts = []
    while size:
        _wait(fd, select.POLLIN, until)
        part = os.read(fd, min(size, 1 << 20))
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _receive(fd: int, until: float = math.inf) -> bytes:
    (size,) = _LENGTH.unpack(_read(fd, _LENGTH.size, until))
    return _read(fd, size, until)


def _send(fd: int, data: bytes, until: float = math.inf) -> None:
    view = memoryview(_LENGTH.pack(len(data)) + data)
    while view:
        _wait(fd, select.POLLOUT, until)
        view = view[os.write(fd, view) :]


class _Process:
    """A started worker and the two pipes to it."""

    def __init__(self) -> None:
        self._starter = os.getpid()
        pipes: list[tuple[int, int]] = []
        try:
            for _ in range(3):
                pipes.append(os.pipe())
            (from_parent, self.to_child), (self.from_child, to_parent), (lives, self.life) = pipes
            os.set_blocking(self.to_child, False)  # a process that is stopped reads nothing
            theirs = (from_parent, to_parent, lives)
            self.child = subprocess.Popen(
                [sys.executable, "-c", _MAIN],
                env={**os.environ, PIPES: ",".join(map(str, theirs))}
                | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
                pass_fds=theirs,
                stdin=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is the parent's to handle, and what it starts dies with it
            )
        except OSError as error:
            for fd in itertools.chain(*pipes):
                os.close(fd)
            raise ResourceError.of(
                "worker/start",
                f"no worker process could be started: {error}",
                "free memory, processes and descriptors of files, or ask for fewer workers",
            ) from error
        for fd in theirs:
            os.close(fd)

    @property
    def is_own(self) -> bool:
        """Return whether this process started it, and is not a copy (fork) of the one that did."""
        return os.getpid() == self._starter

    def exchange(self, request: bytes, seconds: float) -> Any:
        """Send a message, and return the answer."""
        try:
            until = time.monotonic() + seconds
            _send(self.to_child, request, until)
            kind, value = pickle.loads(_receive(self.from_child, until))
        except Overdue:
            self.kill()
            raise Overdue(f"killed after {seconds} seconds") from None
        except (EOFError, BrokenPipeError):
            self.kill()
            raise Lost(_how(self.child.returncode)) from None
        except BaseException:  # Ctrl-C: the pending answer belongs to no later call
            self.kill()
            raise
        if kind == "raised":
            raise Raised(value)
        return value

    def interrupt(self) -> None:
        """End the process and those that it started, and notify who waits for an answer. Any thread may call it."""
        with contextlib.suppress(ProcessLookupError):
            if self.life >= 0 and self.is_own:
                os.killpg(self.child.pid, signal.SIGKILL)

    def kill(self) -> None:
        """End the process, when nobody waits for an answer. A fork of the parent only forgets it."""
        if self.life < 0:
            return
        if self.is_own:
            self.interrupt()
            self.child.wait()
        for fd in (self.to_child, self.from_child, self.life):
            os.close(fd)
        self.life = -1


def _how(status: int) -> str:
    if status >= 0:
        return f"the worker process ended with status {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    return f"the worker process died of {name}"


def _end(holder: list[_Process]) -> None:
    while holder:
        holder.pop().kill()


class Worker:
    """A process that is there when it is needed. Calls from several threads take turns."""

    def __init__(self, initializer: Callable[[], None] | None = None) -> None:
        self._initializer = initializer
        self._process: list[_Process] = []
        self._lock = threading.Lock()
        self._end = weakref.finalize(self, _end, self._process)

    @property
    def pid(self) -> int | None:
        """Return the process id; None if there is no process."""
        return self._process[0].child.pid if self._process else None

    def call(self, function: Callable[..., Any], args: tuple[Any, ...], seconds: float) -> Any:
        """Return the result of a function called in the process. The time limit does not include starting the process.

        Raises:
            Overdue: it did not come back in time.
            Lost: its process died.
            Raised: it raised.
            tilewright.ResourceError: no process could be started.
        """
        request = cloudpickle.dumps((function, args))
        with self._lock:
            if self._process and not self._process[0].is_own:
                _end(self._process)
            if not self._process:
                self._start()
            try:
                return self._process[0].exchange(request, seconds)
            except Raised:
                raise
            except BaseException:
                self._process.clear()
                raise

    def _start(self) -> None:
        self._process.append(_Process())
        try:
            setup = (list(sys.path), _ALIAS in sys.modules, self._initializer)
            self._process[0].exchange(cloudpickle.dumps(setup), START_SECONDS)
        except BaseException:
            _end(self._process)
            raise

    def close(self) -> None:
        """End the process, also while a call of another thread waits for it; a later call starts another one."""
        while not self._lock.acquire(timeout=0.02):
            for process in self._process[:]:
                process.interrupt()
        try:
            _end(self._process)
        finally:
            self._lock.release()


def _die_with_parent(life: int) -> None:
    """End this process when its parent is gone, which closes the other end of a pipe. The system kills it, also in a
    call that keeps other threads of Python from running; where the system cannot, a thread of Python ends it."""

    def look() -> None:
        os.read(life, 1)  # nobody writes: it returns when the parent is gone
        os._exit(0)

    with contextlib.suppress(OSError):
        fcntl.fcntl(life, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(life, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(life, fcntl.F_SETFL, fcntl.fcntl(life, fcntl.F_GETFL) | os.O_ASYNC)
    threading.Thread(target=look, daemon=True).start()


def serve() -> None:
    """Run a worker: a setup, then one call after another, until the parent closes the pipe."""
    requests, answers, life = (int(part) for part in os.environ.pop(PIPES).split(","))
    _die_with_parent(life)
    os.dup2(2, 1)  # what is printed goes to standard error: standard output may be that of a command
    while True:
        try:
            request = _receive(requests)
        except EOFError:
            return
        try:
            data = cloudpickle.dumps(("value", _run(pickle.loads(request))))
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:
            data = pickle.dumps(("raised", traceback.format_exc()))
        _send(answers, data)


def _limit_memory() -> None:
    """Limit the process to half of the machine's memory, so that an excessive allocation fails without affecting
    others."""
    half = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (half if hard == resource.RLIM_INFINITY else min(half, hard), hard))


def _run(request: Any) -> Any:
    if len(request) == 2:
        function, args = request
        return function(*args)
    path, has_alias, initializer = request
    sys.path[:] = path
    _limit_memory()
    if has_alias:
        importlib.import_module(_ALIAS)
    if initializer is not None:
        initializer()
    return None
