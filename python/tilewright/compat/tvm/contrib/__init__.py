"""tvm.contrib: directories for a while. Other names can be mentioned, since files import them beside what they use."""

from __future__ import annotations

from tilewright.compat.tvm.alias import absent
from tilewright.compat.tvm.contrib import temporary_directories as utils

__getattr__ = absent("tvm.contrib")

__all__ = ["utils"]
