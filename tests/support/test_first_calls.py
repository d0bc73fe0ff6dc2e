"""The first calls come from several threads: what they load is loaded once, and is whole before anybody uses it."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.samples import samples

PROGRAM = '''
import random, sys, threading, time
import tilewright as tw

TEXT = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi] + 1.0
"""

def parse():
    return tw.script.from_source(TEXT)

def compile():
    tw.compile(parse())

def interpret():
    tw.compile(parse(), target="interpreter")

def schedule():
    tw.Schedule(parse()).verify()

def search():
    from tilewright.meta_schedule import TuneContext
    TuneContext(mod=parse(), target="llvm")

def search_by_name():
    from tilewright.meta_schedule import tune_tir

def tune():
    tw.tune

def expressions():
    tw.te.placeholder((4,))

rng = random.Random(sys.argv[1])
calls = rng.choices([parse, compile, interpret, schedule, search, search_by_name, tune, expressions], k=4)
delays = [rng.uniform(0, 0.03) for call in calls]
together = threading.Barrier(len(calls))
sys.setswitchinterval(1e-4)
failed = []

def run(call, delay):
    together.wait()
    time.sleep(delay)
    try:
        call()
    except BaseException as error:
        failed.append(f"{call.__name__}: {error!r}")

threads = [threading.Thread(target=run, args=each) for each in zip(calls, delays)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print([call.__name__ for call in calls], *failed)
sys.exit(bool(failed))
'''


@pytest.mark.parametrize("seed", range(samples(8)))
def test_first_calls_of_four_threads(seed: int) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(seed)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "package",
    ["cost_model", "kernel", "meta_schedule.database", "meta_schedule.runner", "search", "sparse", "task"],
)
def test_packages_load_no_module_of_theirs(package: str) -> None:
    """While one thread loads a package, another one may load a module of it, which needs the package: each would wait
    for the other if the package needed the module, and Python ends one of the two with an error."""
    program = f"import sys, tilewright.{package}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not [name for name in done.stdout.split() if name.startswith(f"tilewright.{package}.")]
