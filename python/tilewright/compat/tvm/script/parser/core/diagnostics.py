"""tvm.script.parser.core.diagnostics: the text of a script."""

from __future__ import annotations

import ast
import inspect
import linecache
from types import FunctionType
from typing import Any

__all__ = ["Source"]


class Source:
    """The text of a function or a class, or a text.

    Attributes:
        source_name: the file.
        start_line: the line in the file that the text begins with.
        start_column: how far its first line is indented; the text is not.
        source: the text.
        full_source: the text of the file.
    """

    def __init__(self, program: str | FunctionType | type) -> None:
        self.source_name, self.start_line, self.start_column = "<str>", 1, 0
        if isinstance(program, str):
            self.source = self.full_source = program
            return
        self.source_name = inspect.getsourcefile(program) or self.source_name
        lines, self.start_line = inspect.getsourcelines(program)
        self.start_column = len(lines[0]) - len(lines[0].lstrip())
        # The text of what is indented has no line breaks at its end, as in TVM.
        parts = (line[self.start_column :].rstrip() for line in lines)
        self.source = "\n".join(parts) if self.start_column else "".join(lines)
        self.full_source = "".join(linecache.getlines(self.source_name))

    def as_ast(self) -> Any:
        """Return the syntax tree of the text."""
        return ast.parse(self.source)
