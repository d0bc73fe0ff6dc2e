"""What holds for all tests."""

import os
import signal

from tilewright.errors import Error

# A shell ignores Ctrl-C for what it starts in the background, and every process below inherits that; the tests that
# interrupt a search need it back.
signal.signal(signal.SIGINT, signal.default_int_handler)

#: codes of errors that came to be in this run, by this process
_raised: set[str] = set()


def _record_codes() -> None:
    """From now on codes of errors are remembered; nothing else changes."""

    def get(self):
        return self.__dict__.get("code", "")

    def remember(self, code):
        _raised.add(code)
        self.__dict__["code"] = code

    Error.code = property(get, remember)


_record_codes()


def pytest_sessionfinish(session):
    """For `tools/check_codes.py --raised`: what was raised, one file for each process of the run."""
    folder = session.config.rootpath / "build" / "raised-codes"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{os.getpid()}.txt").write_text("".join(f"{code}\n" for code in sorted(_raised) if code))
