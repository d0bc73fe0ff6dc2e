"""What holds for all tests."""

import atexit
import contextlib
import gc
import inspect
import os
import signal
import sys
from pathlib import Path

import pytest

#: For `tools/check_codes.py --raised`: a file for each process, with the codes of errors that came to be in it.
RAISED = Path(os.environ.setdefault("TILEWRIGHT_RAISED_CODES", str(Path(__file__).parents[1] / "build/raised-codes")))
RAISED.mkdir(parents=True, exist_ok=True)
with contextlib.suppress(OSError):
    RAISED.chmod(0o777)  # some tests become another user

# Tests start hundreds of interpreters. Where the environment forbids to write bytecode, each of them would compile the
# whole package again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A heuristic that fails is no reason for a program not to run, but a failure of a test.
os.environ.setdefault("TILEWRIGHT_RAISE_HEURISTIC_FAILURES", "1")

# The limits of the machine take a second or two to measure: the processes of a run of the suite share them.
if "TILEWRIGHT_ROOFS" not in os.environ:
    os.environ["TILEWRIGHT_ROOFS"] = str(RAISED.parent / f"roofs-{os.getpid()}.json")
    atexit.register(Path(os.environ["TILEWRIGHT_ROOFS"]).unlink, missing_ok=True)

# Where other work disturbs measurements, as the other process of these tests does, searches would wait for undisturbed
# ones. No test needs times that are accurate.
os.environ.setdefault("TILEWRIGHT_MEASURE_SLICES", "2")

from tests import allowed_programs, optimization  # noqa: E402  (before any test looks for a program)

from tilewright.errors import Error  # noqa: E402  (the library reads the variable once)

allowed_programs.restrict()

# A shell ignores Ctrl-C for what it starts in the background, and every process below inherits that; the tests that
# interrupt a search need it back.
signal.signal(signal.SIGINT, signal.default_int_handler)


def _record_codes() -> None:
    """From now on codes of errors that Python makes are noted too; nothing else changes."""
    noted: set[tuple[int, str]] = set()

    def get(self):
        return self.__dict__.get("code", "")

    def note(self, code):
        self.__dict__["code"] = code
        if code and (os.getpid(), code) not in noted:  # a process that was forked has a file of its own
            with contextlib.suppress(OSError), (RAISED / f"{os.getpid()}.txt").open("a") as file:
                file.write(f"{code}\n")
                noted.add((os.getpid(), code))

    Error.code = property(get, note)


_record_codes()


# What is collected lives until the end. The garbage collector would visit some 400,000 objects in a quarter of a second
# each, while tests are collected and while they run.
gc.disable()


def pytest_collection_finish():
    gc.freeze()
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    with optimization.of_test(item):
        return (yield)


@pytest.fixture(scope="module")
def with_torch(request):
    """The name `torch` in a module of tests. Each process that collects the tests would take seconds to import it."""
    request.module.torch = pytest.importorskip("torch")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Codes that a test names which this machine cannot run are not missed."""
    report = yield
    if report.skipped and hasattr(item, "function"):
        with (RAISED / f"skipped-{os.getpid()}.txt").open("a") as file:
            file.write(inspect.getsource(item.function))
    return report
