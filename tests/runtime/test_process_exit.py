"""The process ends while threads compile, tune, call kernels, or are called back: with its own status, silently."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.samples import samples

HEAD = """
import linecache, os, sys, threading, time
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
BEGIN = """
thread = threading.Thread(target=again(work), daemon=True)
thread.start()
"""
END = """
time.sleep(float(sys.argv[1]))
print("ends", flush=True)
sys.exit(7)
"""
DELAYS_OF_EACH = 3
#: The process ends at a random moment of so many seconds. All parts of a search have begun after a second; other work
#: begins again every few milliseconds, or is one call.
MOMENTS = {"tune": 1.2, "callback": 1.2}
MOMENTS_OF_OTHERS = 0.4


def text_of(path: Path) -> str:
    """Return what a file of /proc says, or nothing where the process is gone."""
    with contextlib.suppress(OSError):
        return path.read_text().replace("\0", " ").strip()
    return ""


def why_it_does_not_end(process: subprocess.Popen[str]) -> str:
    """Return what each thread waits for and the stacks in Python, or who else holds the pipes; ends the process."""
    said = [f"the process has not ended: {process.args}" if process.poll() is None else "its pipes are held open by:"]
    for task in sorted(Path(f"/proc/{process.pid}/task").glob("*")):
        said.append(f"{task.name} {text_of(task / 'comm')}: {text_of(task / 'wchan')} {text_of(task / 'syscall')}")
    pipes = {os.readlink(f"/proc/self/fd/{pipe.fileno()}") for pipe in (process.stdout, process.stderr) if pipe}
    for fd in Path("/proc").glob("[0-9]*/fd/*"):
        with contextlib.suppress(OSError):
            if os.readlink(fd) in pipes and int(fd.parts[2]) not in (os.getpid(), process.pid):
                said.append(f"{fd}: {text_of(fd.parent.parent / 'cmdline')}")
    process.send_signal(signal.SIGABRT)  # faulthandler prints the stacks
    time.sleep(1)
    process.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):
        said.extend(process.communicate(timeout=10))
    return "\n".join(said)


def end_of(process: subprocess.Popen[str]) -> subprocess.CompletedProcess[str]:
    """Wait for a process; where it does not end, the failure says what it does instead."""
    try:
        output, errors = process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        pytest.fail(why_it_does_not_end(process))
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


def start(text: str, folder: Path, *arguments: str) -> subprocess.Popen[str]:
    script = folder / "program.py"  # functions need a file that shows their text
    script.write_text(text)
    return subprocess.Popen(
        [sys.executable, "-X", "faulthandler", script, *arguments],
        **{"cwd": folder, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True},
    )


def check_end(kinds: list[str], delay: float, folder: Path) -> None:
    """Check that a process whose daemon threads are at such work ends in silence."""
    done = end_of(start(HEAD + "".join(WORK[kind] + BEGIN for kind in kinds) + END, folder, str(delay)))
    # A search may say that it measures the limits of the machine.
    errors = [line for line in done.stderr.splitlines() if not line.startswith("tilewright: ")]
    assert (done.returncode, errors) == (7, []), f"{kinds} after {delay:.3f} s"
    assert "ends\n" in done.stdout


@pytest.mark.parametrize("number", range(DELAYS_OF_EACH))
@pytest.mark.parametrize("kind", WORK)
def test_a_daemon_thread_at_work(kind: str, number: int, tmp_path: Path) -> None:
    check_end([kind], random.Random(f"{kind} {number}").uniform(0, MOMENTS.get(kind, MOMENTS_OF_OTHERS)), tmp_path)


@pytest.mark.parametrize("number", range(samples(DELAYS_OF_EACH)))
def test_four_daemon_threads_at_work(number: int, tmp_path: Path) -> None:
    rng = random.Random(f"four {number}")
    kinds = ["parse"] * 4 if number == 0 else rng.choices(list(WORK), k=4)
    check_end(kinds, rng.uniform(0, MOMENTS["tune"]), tmp_path)


JOIN = """
def line_of_main():
    frame = sys._current_frames()[threading.main_thread().ident]
    return linecache.getline(frame.f_code.co_filename, frame.f_lineno)
def begin():
    while not any(call in line_of_main() for call in ("lock.acquire(", "_handle.join(")):
        time.sleep(0.001)
    print("joins", flush=True)
    work()
thread = threading.Thread(target=begin)
thread.start()
thread.join()
"""


def state_of(process: subprocess.Popen[str]) -> str:
    """Return the state of the main thread: S where it sleeps."""
    return text_of(Path(f"/proc/{process.pid}/task/{process.pid}/stat")).rpartition(") ")[2][:1]


@pytest.mark.parametrize("kind", ["compile", "tune", "call", "parse", "print"])
def test_ctrl_c_while_the_main_thread_joins_another(kind: str, tmp_path: Path) -> None:
    """The other thread, no daemon, ends as well: its search would go on for hours."""
    process = start(HEAD + WORK[kind] + ("work = again(work)\n" if kind in SHORT else "") + JOIN, tmp_path)
    assert process.stdout
    while "joins" not in process.stdout.readline():
        assert process.poll() is None
    # Python looks for signals, and then sleeps: one that comes between the two would not wake the main thread.
    while state_of(process) != "S":
        time.sleep(0.01)
    time.sleep(random.Random(kind).uniform(0, 1))
    process.send_signal(signal.SIGINT)
    done = end_of(process)
    # 1: Python forgets why the main thread ended when another one runs a string, as named tuples do.
    assert done.returncode in (-signal.SIGINT, 130, 1)
    assert done.stderr.rstrip().endswith("KeyboardInterrupt")
    assert "terminate" not in done.stderr and "Fatal" not in done.stderr


def test_a_thread_that_goes_on_after_the_main_thread(tmp_path: Path) -> None:
    """Its first call imports what calls need: no module of these may ask to be told when Python ends."""
    rest = """
def rest():
    threading.main_thread().join()
    tw.compile(product)
    result = tw.tune(product, trials=2)
    print(type(result.kernel).__name__, flush=True)
threading.Thread(target=rest).start()
"""
    done = end_of(start(HEAD + rest, tmp_path))
    errors = [line for line in done.stderr.splitlines() if not line.startswith("tilewright: ")]
    assert (done.returncode, errors, done.stdout.splitlines()[-1:]) == (0, [], ["Kernel"])


def test_a_child_of_a_fork_ends_by_itself(tmp_path: Path) -> None:
    """What other threads of the parent did when it forked is not waited for in the child."""
    child = """
threading.Thread(target=again(work), daemon=True).start()
time.sleep(0.3)
pid = os.fork()
if pid == 0:
    sys.exit(3)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
    done = end_of(start(HEAD + WORK["tune"] + child, tmp_path))
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "3")
