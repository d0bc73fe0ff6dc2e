"""tvm.script.printer: documents that are printed as Python."""

from __future__ import annotations

from tilewright.compat.tvm.script.printer import doc, doc_printer
from tilewright.compat.tvm.script.printer.doc_printer import to_python_script

__all__ = ["doc", "doc_printer", "to_python_script"]
