"""Dialects of scripts: which function handles which node of the syntax tree.

A dialect has a name (its token) and handlers for kinds of statements and expressions; what it does not handle, its base
does. The base of all is `python`, which evaluates expressions. Functions and ``with`` blocks may switch to another
dialect: a decorator or a frame declares it by its attribute ``script_dialect``.

>>> @register("tir", "While")
... def visit_while(parser, node): ...

A new dialect on top of another is made by ``dialect("mine", base="tir")``, before its first handler.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tilewright.script.report import ScriptProblem

if TYPE_CHECKING:
    from tilewright.script.parser import Parser

Handler = Callable[["Parser", Any], Any]


class Table(dict[type, Handler]):
    """Handlers by the class of the node; what is missing is refused."""

    def __init__(self, dialect: str) -> None:
        super().__init__()
        self.dialect = dialect

    def __missing__(self, kind: type) -> Handler:
        return _unsupported


class Dialect:
    """A named set of handlers on top of those of a base."""

    def __init__(self, name: str, base: Dialect | None = None) -> None:
        self.name = name
        self.base = base
        self.own: dict[type, Handler] = {}
        #: What the names of this dialect's namespaces mean in scripts given as text.
        self.names: dict[str, Callable[[], Any]] = {}
        self._table: Table | None = None
        self._derived: list[Dialect] = []
        if base:
            base._derived.append(self)

    @property
    def table(self) -> Table:
        """Return all handlers, including those of the base dialects."""
        if self._table is None:
            table = Table(self.name)
            if self.base:
                table.update(self.base.table)
            table.update(self.own)
            self._table = table
        return self._table

    def add(self, kind: type, handler: Handler) -> None:
        """Register or replace a handler."""
        self.own[kind] = handler
        self._changed()

    def _changed(self) -> None:
        self._table = None
        for dialect in self._derived:
            dialect._changed()


_DIALECTS: dict[str, Dialect] = {"python": Dialect("python")}


def dialect(name: str, base: str = "python") -> Dialect:
    """Return the dialect with this name. Create it on top of `base` on first use."""
    if name not in _DIALECTS:
        _DIALECTS[name] = Dialect(name, dialect(base))
    return _DIALECTS[name]


def register(name: str, *kinds: str) -> Callable[[Handler], Handler]:
    """Return a decorator that registers a function as handler of these kinds of syntax nodes (``"For"``, ``"Assign"``,
    ...) in the dialect."""

    def decorate(handler: Handler) -> Handler:
        for kind in kinds:
            dialect(name).add(getattr(ast, kind), handler)
        return handler

    return decorate


_ADVICE = {
    "Break": "write the condition into a while loop",
    "Continue": "put the rest of the body under an if",
    "Try": "a program has no exceptions; use assert",
    "Global": "assign to a buffer",
    "Nonlocal": "assign to a buffer",
    "AsyncFor": "use for",
    "AsyncWith": "use with",
    "Yield": "store to a buffer",
    "YieldFrom": "store to a buffer",
    "NamedExpr": "assign in a statement of its own",
    "Delete": "names end with the block that they are defined in",
    "Match": "use if and elif",
    "Raise": "use assert",
    "ClassDef": "define classes outside of the script",
    "Import": "import outside of the function",
    "ImportFrom": "import outside of the function",
}


def _unsupported(parser: Parser, node: ast.AST) -> Any:
    kind = type(node).__name__
    words = "".join(" " + c.lower() if c.isupper() else c for c in kind).strip()
    raise ScriptProblem(
        "script/unsupported",
        f"'{words}' is not part of the dialect '{parser.dialect.name}'",
        _ADVICE.get(kind, ""),
        node,
    )
