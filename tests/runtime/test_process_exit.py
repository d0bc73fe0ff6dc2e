"""The process ends while threads compile, tune, call kernels, or are called back: with its own status, silently."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

HEAD = """
import os, sys, threading, time
import numpy as np
import tilewright as tw
from tilewright.script import tir as T

@T.prim_func
def product(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 64), "float32"), C: T.Buffer((64, 64), "float32")):
    for i, j, k in T.grid(64, 64, 64):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = 0.0
            C[vi, vj] += A[vi, vk] * B[vk, vj]

@T.prim_func
def endless(A: T.Buffer((4096, 4096), "float32"), B: T.Buffer((4096, 4096), "float32")):
    for t, i, j in T.grid(100000, 4096, 4096):
        with T.block("B"):
            vt, vi, vj = T.axis.remap("SSS", [t, i, j])
            B[vi, vj] = A[vi, vj] + T.float32(1)

def again(work):
    def run():
        while True:
            work()
    return run
"""
WORK = {
    "compile": """
work = lambda: tw.compile(product)
""",
    "tune": """
work = lambda: tw.tune(product, trials=100000)
""",
    "call": """
kernel = tw.compile(endless, schedule="as written")
a, b = np.zeros((4096, 4096), "float32"), np.zeros((4096, 4096), "float32")
work = lambda: kernel(a, b)
""",
    "interpret": """
kernel = tw.compile(endless, target="interpreter")
a, b = np.zeros((4096, 4096), "float32"), np.zeros((4096, 4096), "float32")
work = lambda: kernel(a, b)
""",
    "callback": """
def space(sch):
    sch.get_block("C")
    sum(range(20000))
work = lambda: tw.tune(product, space=space, trials=100000)
""",
    "parse": """
text = "@T.prim_func\\ndef f(A: T.Buffer((3000,), 'int32')):\\n" + "".join(f"    A[{i}] = {i}\\n" for i in range(3000))
work = lambda: tw.script.from_source(text)
""",
    "print": """
text = "@T.prim_func\\ndef f(A: T.Buffer((3000,), 'int32')):\\n" + "".join(f"    A[{i}] = {i}\\n" for i in range(3000))
program = tw.script.from_source(text)
work = lambda: program.script()
""",
}
#: Work that ends soon, and is begun again and again.
SHORT = ("compile", "parse", "print")
END = """
thread = threading.Thread(target=again(work), daemon=True)
thread.start()
time.sleep(float(sys.argv[1]))
print("ends", flush=True)
sys.exit(7)
"""
DELAYS_OF_EACH = 3


def run(kind: str, delay: float, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    script = tmp_path / "program.py"  # functions need a file that shows their text
    script.write_text(HEAD + WORK[kind] + END)
    return subprocess.run(
        [sys.executable, script, str(delay)], capture_output=True, text=True, timeout=120, cwd=tmp_path, check=False
    )


@pytest.mark.parametrize("number", range(DELAYS_OF_EACH))
@pytest.mark.parametrize("kind", WORK)
def test_a_daemon_thread_at_work(kind: str, number: int, tmp_path: Path) -> None:
    delay = random.Random(f"{kind} {number}").uniform(0, 2)
    done = run(kind, delay, tmp_path)
    # A search may say that it measures the limits of the machine.
    errors = [line for line in done.stderr.splitlines() if not line.startswith("tilewright: ")]
    assert (done.returncode, errors) == (7, []), f"after {delay:.3f} s"
    assert "ends\n" in done.stdout


JOIN = """
thread = threading.Thread(target=work)
thread.start()
print("joins", flush=True)
thread.join()
"""


@pytest.mark.parametrize("kind", ["compile", "tune", "call", "parse", "print"])
def test_ctrl_c_while_the_main_thread_joins_another(kind: str, tmp_path: Path) -> None:
    """The other thread, no daemon, ends as well: its search would go on for hours."""
    script = tmp_path / "program.py"
    script.write_text(HEAD + WORK[kind] + ("work = again(work)\n" if kind in SHORT else "") + JOIN)
    process = subprocess.Popen([sys.executable, script], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout
    while b"joins" not in process.stdout.readline():
        assert process.poll() is None
    time.sleep(random.Random(kind).uniform(0, 1))
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    # 1: Python forgets why the main thread ended when another one runs a string, as named tuples do.
    assert process.returncode in (-signal.SIGINT, 130, 1)
    assert errors.decode().rstrip().endswith("KeyboardInterrupt")
    assert b"terminate" not in errors and b"Fatal" not in errors


def test_a_child_of_a_fork_ends_by_itself(tmp_path: Path) -> None:
    """What other threads of the parent did when it forked is not waited for in the child."""
    script = tmp_path / "program.py"
    child = """
threading.Thread(target=again(work), daemon=True).start()
time.sleep(0.3)
pid = os.fork()
if pid == 0:
    sys.exit(3)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
    script.write_text(HEAD + WORK["tune"] + child)
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "3")
