"""tvm.script.parser.core.doc_core: syntax trees, which are those of Python's ast."""

from __future__ import annotations

import ast as _ast
from ast import *  # noqa: F403

from tilewright.compat.tvm.alias import missing

_missing = missing("tvm.script.parser.core.doc")

__all__ = [name for name in vars(_ast) if not name.startswith("_")]


def __getattr__(name: str) -> object:
    return _missing(name)
