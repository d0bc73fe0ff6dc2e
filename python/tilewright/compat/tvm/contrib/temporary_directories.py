"""tvm.contrib.utils: directories that go when nobody needs them any more."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from pathlib import Path

from tilewright.compat.tvm.alias import missing

__getattr__ = missing("tvm.contrib.utils")

__all__ = ["TempDirectory", "tempdir"]


class TempDirectory:
    """A directory that is removed with the object."""

    def __init__(self, custom_path: str | None = None) -> None:
        if custom_path is None:
            self.temp_dir = tempfile.mkdtemp()
        else:
            Path(custom_path).mkdir(parents=True, exist_ok=True)
            self.temp_dir = custom_path
        self._removal = weakref.finalize(self, shutil.rmtree, self.temp_dir, ignore_errors=True)

    @property
    def path(self) -> Path:
        """Return the path of the directory."""
        return Path(self.temp_dir)

    def remove(self) -> None:
        """Remove the directory."""
        self._removal()

    def relpath(self, name: str) -> str:
        """Return the path of a file in the directory."""
        return str(Path(self.temp_dir) / name)

    def listdir(self) -> list[str]:
        """Return the names of the directory's entries."""
        return os.listdir(self.temp_dir)

    def __truediv__(self, other: str | Path) -> Path:
        return self.path / other


def tempdir(custom_path: str | None = None, keep_for_debug: bool | None = None) -> TempDirectory:
    """Return a new directory, or the one with that path."""
    made = TempDirectory(custom_path)
    if keep_for_debug:
        made._removal.detach()
    return made
