"""tvm.script.parser.core: the text of scripts and the values of expressions."""

from __future__ import annotations

from tilewright.compat.tvm.script.parser.core import captures as utils
from tilewright.compat.tvm.script.parser.core import diagnostics, doc, doc_core, evaluator

__all__ = ["diagnostics", "doc", "doc_core", "evaluator", "utils"]
