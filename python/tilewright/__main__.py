"""The command `tilewright`, and ``python -m tilewright``."""

from __future__ import annotations

import contextlib
import os
import sys

from tilewright.support import early_interrupts


def open_closed_streams() -> None:
    """Open /dev/null for standard streams that are closed (``>&-``), so that the next open file does not replace
    them."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, mode, closefd=False))


def run() -> int | str | None:
    """Run the command line and return its exit status; Ctrl-C is handled also while the command line is being
    loaded."""
    early_interrupts.begin()
    try:
        from tilewright.cli.commands import app

        app()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except SystemExit as done:
        return done.code
    return 0


def main() -> None:
    """Run the command line. If the output cannot be written, exit with an error and no traceback."""
    open_closed_streams()
    try:
        status = run()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()  # reports a full disk here
    except OSError as error:
        status = 1
        with contextlib.suppress(OSError):
            print(f"error: {error.strerror or error}", file=sys.stderr, flush=True)
        # Keep Python from writing the remaining output again at exit.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
    sys.exit(status)


if __name__ == "__main__":
    main()
