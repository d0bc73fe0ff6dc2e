"""The command `tilewright`, and ``python -m tilewright``."""

from __future__ import annotations

import os
import sys


def open_closed_streams() -> None:
    """Standard streams that were closed (``>&-``) lead nowhere; the next open file must not take their place."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, mode, closefd=False))


def main() -> None:
    """Runs the command line; Ctrl-C while it is still being loaded is answered, too."""
    open_closed_streams()
    try:
        from tilewright.cli import app

        app()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
