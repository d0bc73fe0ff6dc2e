"""Processes that may be lost."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import tilewright as tw
from tilewright.meta_schedule.worker import Lost, Overdue, Raised, Worker


@pytest.fixture
def worker():
    made = Worker()
    yield made
    made.close()


def is_alive(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


def test_calls(worker):
    offset = 3
    assert worker.call(lambda a: a + offset, (4,), seconds=30) == 7
    pid = worker.pid
    assert worker.call(os.getpid, (), seconds=30) == pid != os.getpid()


def test_a_process_with_many_open_files_has_workers():
    """Whose pipes have numbers that select() does not take."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, limits[1]), limits[1]))
    taken = [os.open(os.devnull, os.O_RDONLY) for _ in range(1024)]
    worker = Worker()
    try:
        assert worker.call(abs, (-3,), seconds=30) == 3
        with pytest.raises(Overdue):
            worker.call(time.sleep, (100,), seconds=0.1)
    finally:
        worker.close()
        for fd in taken:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_pipes_that_cannot_be_made_leave_no_others():
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Numbers that are free below others that are not would let the limit end in front of the fifth one.
    last = max(int(name) for name in os.listdir("/proc/self/fd"))
    held = [os.open(os.devnull, os.O_RDONLY)]
    while held[-1] <= last:
        held.append(os.open(os.devnull, os.O_RDONLY))
    resource.setrlimit(resource.RLIMIT_NOFILE, (held[-1] + 6, limits[1]))  # two pipes and a half
    try:
        with pytest.raises(tw.ResourceError, match=r"no worker process could be started: .*Too many open files"):
            Worker().call(abs, (-3,), seconds=30)
        held += [os.open(os.devnull, os.O_RDONLY) for _ in range(5)]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        for fd in held:
            os.close(fd)


def test_what_raises_keeps_the_process(worker):
    pid = worker.call(os.getpid, (), seconds=30)
    with pytest.raises(Raised, match="ZeroDivisionError"):
        worker.call(lambda: 1 // 0, (), seconds=30)
    with pytest.raises(Raised, match="pickle"):  # an answer that cannot travel
        worker.call(lambda: (x for x in ()), (), seconds=30)
    assert worker.pid == pid


def test_what_hangs_is_killed_with_what_it_started(worker):
    def hang(place):
        child = subprocess.Popen(["sleep", "1000"])
        Path(place).write_text(str(child.pid))
        while True:
            pass

    place = Path(os.environ.get("TMPDIR", "/tmp")) / f"tilewright-test-{os.getpid()}"
    pid = worker.call(os.getpid, (), seconds=30)
    try:
        with pytest.raises(Overdue):
            worker.call(hang, (str(place),), seconds=1)
        grandchild = int(place.read_text())
    finally:
        place.unlink()
    assert worker.pid is None
    assert not is_alive(pid)
    until = time.monotonic() + 10
    while is_alive(grandchild) and time.monotonic() < until:
        time.sleep(0.01)
    assert not is_alive(grandchild)
    assert worker.call(lambda: 1, (), seconds=30) == 1  # in a new one


@pytest.mark.parametrize("how", [signal.SIGSEGV, signal.SIGKILL])
def test_what_dies_says_how(worker, how):
    with pytest.raises(Lost, match=how.name):
        worker.call(lambda: os.kill(os.getpid(), how), (), seconds=30)
    with pytest.raises(Lost, match="status 3"):
        worker.call(lambda: os._exit(3), (), seconds=30)
    assert worker.call(lambda: 1, (), seconds=30) == 1


def test_a_process_that_is_stopped_reads_no_arguments(worker):
    os.kill(worker.call(os.getpid, (), seconds=30), signal.SIGSTOP)
    with pytest.raises(Overdue):
        worker.call(len, (bytes(1 << 22),), seconds=0.5)
    assert worker.call(len, (bytes(1 << 22),), seconds=1e300) == 1 << 22


def test_a_program_with_many_open_files(worker):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    try:
        with contextlib.ExitStack() as files:
            for _ in range(1100):
                files.callback(os.close, os.open(os.devnull, os.O_RDONLY))
            assert worker.call(lambda: 1, (), seconds=30) == 1
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_memory_is_limited(worker):
    def hungry():
        try:
            return len(bytearray(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 3 // 4))
        except MemoryError:
            return "refused"

    assert worker.call(hungry, (), seconds=30) == "refused"


def test_initializer_that_fails():
    def initializer():
        raise ValueError("not today")

    worker = Worker(initializer)
    with pytest.raises(Raised, match="not today"):
        worker.call(lambda: 1, (), seconds=30)
    assert worker.pid is None


def test_no_process_can_be_started(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(tw.ResourceError) as error:
        Worker().call(lambda: 1, (), seconds=30)
    assert error.value.code == "worker/start"
    assert len(os.listdir("/proc/self/fd")) == before


def test_nothing_is_left_behind(worker):
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        pid = worker.call(os.getpid, (), seconds=30)
        worker.close()
        assert not is_alive(pid)
    assert len(os.listdir("/proc/self/fd")) == before


def test_another_thread_closes_a_worker_that_is_busy(worker):
    errors = []

    def wait():
        try:
            worker.call(time.sleep, (1000,), seconds=1000)
        except Lost as error:
            errors.append(error)

    for pause in (0.0, 0.1, 2.0):  # before, while and after the process starts
        thread = threading.Thread(target=wait)
        thread.start()
        time.sleep(pause)
        while thread.is_alive():
            worker.close()
            time.sleep(0.01)
    assert len(errors) == 3


def test_a_copy_of_the_parent_has_a_worker_of_its_own():
    script = (
        "import os, sys\n"
        "from tilewright.meta_schedule.worker import Worker\n"
        "used, unused = Worker(), Worker()\n"
        "pids = [worker.call(os.getpid, (), seconds=30) for worker in (used, unused)]\n"
        "if (child := os.fork()) == 0:\n"
        "    own = used.call(os.getpid, (), seconds=30)\n"
        "    sys.exit(own == pids[0])\n"  # at its exit, workers are closed
        "_, status = os.waitpid(child, 0)\n"
        "assert status == 0\n"
        "assert pids == [worker.call(os.getpid, (), seconds=30) for worker in (used, unused)]\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "call",
    [
        "w.call(time.sleep, (1000,), seconds=1000)",
        # No other thread of Python runs meanwhile.
        "w.call(re.match, (r'(a+)+$', 'a' * 40 + 'b'), seconds=1000)",
    ],
)
def test_workers_end_with_their_parent(call):
    script = (
        "import os, re, time\n"
        "from tilewright.meta_schedule.worker import Worker\n"
        "w = Worker()\n"
        "print(w.call(os.getpid, (), seconds=30), flush=True)\n"
        f"{call}\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert is_alive(pid)
        parent.kill()
    until = time.monotonic() + 10
    while is_alive(pid) and time.monotonic() < until:
        time.sleep(0.05)
    assert not is_alive(pid)
