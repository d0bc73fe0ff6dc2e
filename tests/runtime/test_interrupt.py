"""Ctrl-C while a kernel runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tilewright.script import from_source

#: what takes minutes, in the forms that kernels have
PROGRAMS = {
    "scalar": """
    for i, j in T.grid(1000000, 1000000):
        A[0] = A[0] * T.float32(0.5) + T.float32(1)
""",
    "one loop": """
    for i in T.serial(T.int64(100000000000)):
        A[0] = A[0] * T.float32(0.5) + T.float32(1)
""",
    "vectors": """
    for i, j in T.grid(100000000, 4096):
        A[j] = A[j] * T.float32(0.5) + T.float32(1)
""",
    "parallel": """
    for i in T.parallel(64):
        for k in T.serial(T.int64(10000000000)):
            A[i] = A[i] * T.float32(0.5) + T.float32(1)
""",
    "while": """
    while A[0] > T.float32(-1):
        A[0] = A[0] * T.float32(0.5)
""",
    "sizes of the call": """
    for i, j in T.grid(n, n):
        for k in range(n):
            A[0] = A[0] * T.float32(0.5) + T.float32(1)
""",
}


def endless(body: str, target: str = "native") -> tw.Kernel:
    text = "@T.prim_func\ndef f(n: T.int32, A: T.Buffer((4096,), 'float32')):" + body
    kernel = tw.compile(from_source(text), target=target)
    assert isinstance(kernel, tw.Kernel)
    return kernel


@pytest.mark.parametrize("target", ["native", "interpreter"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_call_ends_within_a_second(name: str, target: str) -> None:
    kernel = endless(PROGRAMS[name], target)
    a = np.ones(4096, "float32")
    before = signal.getsignal(signal.SIGINT)
    sent = 0.0

    def interrupt() -> None:
        nonlocal sent
        sent = time.monotonic()
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.2, interrupt)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        kernel(1000000, a)
    assert time.monotonic() - sent < 1.0
    assert signal.getsignal(signal.SIGINT) is before
    timer.join()


def test_a_signal_that_came_first_counts() -> None:
    """Before the kernel asks for the first time, the signal is Python's alone."""
    kernel = endless(PROGRAMS["one loop"])
    thread = threading.Thread(target=lambda: os.kill(os.getpid(), signal.SIGINT))
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        thread.start()
        kernel(1, np.ones(4096, "float32"))
    assert time.monotonic() - start < 1.0
    thread.join()


def test_kernels_work_after_an_interrupt() -> None:
    kernel = endless(PROGRAMS["parallel"])
    timer = threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        kernel(1, np.ones(4096, "float32"))
    timer.join()
    a = np.ones(64, "float32")
    text = "@T.prim_func\ndef f(A: T.Buffer((64,), 'float32')):\n"
    text += "    for i in T.parallel(64):\n        A[i] = A[i] + T.float32(1)\n"
    tw.compile(from_source(text))(a)
    np.testing.assert_array_equal(a, np.full(64, 2, "float32"))


def test_the_second_one_ends_the_process(library_path: Path) -> None:
    script = (
        f"import tilewright as tw\nkernel = tw.load({str(library_path)!r})['deaf']\nprint('go', flush=True)\nkernel()\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "go\n"
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.3)
    process.send_signal(signal.SIGINT)
    assert process.wait(5) == -signal.SIGINT
    process.stdout.close()


def test_contexts_without_interrupts_are_not_asked() -> None:
    """Calls on other threads than Python's first go on: Ctrl-C is for the first one."""
    kernel = tw.compile(
        from_source(
            "@T.prim_func\ndef f(A: T.Buffer((1,), 'float32')):\n    for i in T.serial(200000000):\n"
            "        A[0] = A[0] * T.float32(0.5) + T.float32(1)\n"
        )
    )
    a = np.zeros(1, "float32")
    thread = threading.Thread(target=lambda: kernel(a))
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    thread.join()
    np.testing.assert_allclose(a, 2, rtol=1e-6)
