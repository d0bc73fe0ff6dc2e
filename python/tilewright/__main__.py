"""The command `tilewright`, and ``python -m tilewright``."""

from __future__ import annotations

import sys


def main() -> None:
    """Runs the command line; Ctrl-C while it is still being loaded is answered, too."""
    try:
        from tilewright.cli import app

        app()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
