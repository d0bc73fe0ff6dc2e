"""tvm.script.printer.doc_printer: trees of a Python program as text."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Sequence
from typing import Any

from tilewright.compat.tvm.script.printer import doc as docs
from tilewright.compat.tvm.script.printer.doc import Doc, ExprDoc, StmtDoc
from tilewright.compat.tvm.script.printer.doc import OperationKind as Kind

#: Operators from those that bind least, https://docs.python.org/3/reference/expressions.html#operator-precedence
_LEVELS: list[dict[Kind, str]] = [
    {Kind.IfThenElse: ""},
    {Kind.Or: "or"},
    {Kind.And: "and"},
    {Kind.Not: "not "},
    {Kind.Lt: "<", Kind.LtE: "<=", Kind.Eq: "==", Kind.NotEq: "!=", Kind.Gt: ">", Kind.GtE: ">="},
    {Kind.BitOr: "|"},
    {Kind.BitXor: "^"},
    {Kind.BitAnd: "&"},
    {Kind.LShift: "<<", Kind.RShift: ">>"},
    {Kind.Add: "+", Kind.Sub: "-"},
    {Kind.Mult: "*", Kind.Div: "/", Kind.FloorDiv: "//", Kind.Mod: "%"},
    {Kind.USub: "-", Kind.Invert: "~"},
    {Kind.Pow: "**"},
]
_BINDING = {kind: level for level, kinds in enumerate(_LEVELS, start=1) for kind in kinds}
_TOKEN = {kind: token for kinds in _LEVELS for kind, token in kinds.items()}
_LAMBDA, _UNARY, _ATOM = 0, _BINDING[Kind.USub], len(_LEVELS) + 1

_ESCAPES = {ord("\n"): "\\n", ord("\t"): "\\t", ord("\r"): "\\r", ord('"'): '\\"', ord("\\"): "\\\\"}
#: Bytes that are printed as they are.
_PRINTABLE = range(ord(" "), ord("~") + 1)

#: a gap of fewer lines between two excerpts is shown, not replaced by a note that lines are skipped
_LEAST_GAP = 2


def _binding(expr: ExprDoc) -> int:
    if isinstance(expr, docs.OperationDoc):
        return _BINDING[Kind(expr.kind)]
    return _LAMBDA if isinstance(expr, docs.LambdaDoc) else _ATOM


Span = tuple[int, int]


class _Printer:
    def __init__(self, indent_spaces: int, paths: Sequence[Any]) -> None:
        self.text = ""
        self.indent = ""
        self.step = " " * indent_spaces
        self.paths = paths
        #: where lines begin: only those that line() has begun
        self.starts = [0]
        #: what no line of ^ marks: ends of lines, what lines are indented by, and comments
        self.unmarked: list[Span] = []
        #: for each path the longest prefix of it that was printed, and where
        self.found: list[tuple[int, list[Span]]] = [(0, []) for _ in paths]

    def print(self, doc: Doc) -> None:
        start = len(self.text)
        write = _WRITERS.get(type(doc))
        if write is None:
            raise TypeError(f"Do not know how to print {type(doc).__name__}")
        write(self, doc)
        for place in doc.source_paths:
            self._mark(start, place)

    def _mark(self, start: int, place: Any) -> None:
        length = len(place)
        for number, path in enumerate(self.paths):
            longest, spans = self.found[number]
            if length < longest or not place.is_prefix_of(path):
                continue
            span = (start, len(self.text))
            self.found[number] = (length, [*spans, span] if length == longest else [span])

    def line(self, text: str = "") -> None:
        start = len(self.text)
        self.text += f"\n{self.indent}"
        self.starts.append(start + 1)
        self.unmarked.append((start, len(self.text)))
        self.text += text

    def add_unmarked(self, text: str) -> None:
        """Add text that no line of ^ marks."""
        self.unmarked.append((len(self.text), len(self.text) + len(text)))
        self.text += text

    def write(self, *parts: str | Doc | Sequence[Doc]) -> None:
        """Write the parts one after another: text, a document, or a sequence of documents separated by commas."""
        for part in parts:
            if isinstance(part, str):
                self.text += part
            elif isinstance(part, Doc):
                self.print(part)
            else:
                for number, each in enumerate(part):
                    self.write(", " if number else "", each)

    def within(self, expr: ExprDoc, least: int) -> None:
        """Print an expression, in parentheses if its precedence is lower than `least`."""
        needs = _binding(expr) < least
        self.text += "(" if needs else ""
        self.print(expr)
        self.text += ")" if needs else ""

    def block(self, body: Sequence[StmtDoc]) -> None:
        outer, self.indent = self.indent, self.indent + self.step
        for stmt in body:
            self.line()
            self.print(stmt)
        if not body:
            self.line("pass")
        self.indent = outer

    def comment_behind(self, stmt: StmtDoc) -> None:
        if stmt.comment is None:
            return
        if "\n" in stmt.comment:
            raise ValueError(f"the comment string of {type(stmt).__name__} cannot have newline.")
        self.add_unmarked(f"  # {stmt.comment}")

    def comment_before(self, stmt: StmtDoc) -> None:
        if stmt.comment is not None:
            self.comment_lines(stmt.comment)
            self.line()

    def comment_lines(self, comment: str) -> None:
        start = len(self.text)
        for number, text in enumerate(_lines(comment)):
            if number:
                self.line()
            self.text += f"# {text}"
        self.unmarked.append((start, len(self.text)))

    def doc_string(self, comment: str) -> None:
        start = len(self.text)
        self.text += '"""'
        for text in _lines(comment):
            if text:
                self.line(text)
            else:
                self.text += "\n"
        self.line('"""')
        self.unmarked.append((start, len(self.text)))

    def comment_inside(self, stmt: StmtDoc) -> None:
        if stmt.comment is None:
            return
        outer, self.indent = self.indent, self.indent + self.step
        self.line()
        self.doc_string(stmt.comment)
        self.indent = outer

    def decorators(self, decorators: Sequence[ExprDoc]) -> None:
        for decorator in decorators:
            self.write("@", decorator)
            self.line()


def _lines(text: str) -> list[str]:
    """Split a text into lines; a newline at its end does not start another one."""
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


def _literal(out: _Printer, doc: docs.LiteralDoc) -> None:
    value = doc.value
    if isinstance(value, str):
        escaped = (
            _ESCAPES.get(byte) or (chr(byte) if byte in _PRINTABLE else f"\\x{byte:02X}") for byte in value.encode()
        )
        out.text += f'"{"".join(escaped)}"'
    elif isinstance(value, float) and not math.isfinite(value):
        out.text += f'"{value}"'
    elif isinstance(value, float):
        out.text += f"{value:.1f}" if value.is_integer() else f"{value:.17g}"
    else:
        out.text += str(value)


def _id(out: _Printer, doc: docs.IdDoc) -> None:
    out.text += doc.name


def _attr(out: _Printer, doc: docs.AttrAccessDoc) -> None:
    out.within(doc.value, _ATOM)
    out.text += f".{doc.name}"


def _index(out: _Printer, doc: docs.IndexDoc) -> None:
    out.within(doc.value, _ATOM)
    out.write("[", doc.indices, "]" if doc.indices else "()]")


def _call(out: _Printer, doc: docs.CallDoc) -> None:
    out.within(doc.callee, _ATOM)
    out.write("(", doc.args)
    for number, (key, value) in enumerate(zip(doc.kwargs_keys, doc.kwargs_values, strict=True), len(doc.args)):
        out.write(f"{', ' if number else ''}{key}=", value)
    out.text += ")"


def _operation(out: _Printer, doc: docs.OperationDoc) -> None:
    kind = Kind(doc.kind)
    if kind not in _BINDING:
        raise ValueError(f"Invalid operation: {int(kind)}")
    here = _BINDING[kind]
    operands = 1 if kind < Kind._UnaryEnd else 2 if kind < Kind._BinaryEnd else 3
    if len(doc.operands) != operands:
        raise ValueError(f"{kind.name} requires {operands} operands, but got {len(doc.operands)}")
    if operands == 1:
        out.text += _TOKEN[kind]
        out.within(doc.operands[0], here)
    elif operands == 2:
        left, right = doc.operands
        # a power binds less than a unary operator on its right, and its right side first
        power = kind == Kind.Pow
        out.within(left, here + 1 if power else here)
        out.text += f" {_TOKEN[kind]} "
        out.within(right, _UNARY if power else here + 1)
    else:
        condition, value, other = doc.operands
        out.within(value, here)
        out.text += " if "
        out.within(condition, here + 1)
        out.text += " else "
        out.within(other, here + 1)


def _lambda(out: _Printer, doc: docs.LambdaDoc) -> None:
    out.write("lambda ", doc.args, ": ", doc.body)


def _list(out: _Printer, doc: docs.ListDoc) -> None:
    out.write("[", doc.elements, "]")


def _tuple(out: _Printer, doc: docs.TupleDoc) -> None:
    out.write("(", doc.elements, ",)" if len(doc.elements) == 1 else ")")


def _dict(out: _Printer, doc: docs.DictDoc) -> None:
    out.text += "{"
    for number, (key, value) in enumerate(zip(doc.keys, doc.values, strict=True)):
        out.write(", " if number else "", key, ": ", value)
    out.text += "}"


def _slice(out: _Printer, doc: docs.SliceDoc) -> None:
    if doc.start is not None:
        out.print(doc.start)
    out.text += ":"
    if doc.stop is not None:
        out.print(doc.stop)
    if doc.step is not None:
        out.write(":", doc.step)


def _stmts(out: _Printer, doc: docs.StmtBlockDoc) -> None:
    for stmt in doc.stmts:
        out.print(stmt)
        if stmt is not doc.stmts[-1]:
            out.line()


def _assign(out: _Printer, doc: docs.AssignDoc) -> None:
    out.write(doc.lhs.elements if isinstance(doc.lhs, docs.TupleDoc) else doc.lhs)
    if doc.annotation is not None:
        out.write(": ", doc.annotation)
    if doc.rhs is not None:
        rhs = doc.rhs
        out.write(" = ", rhs.elements if isinstance(rhs, docs.TupleDoc) and len(rhs.elements) > 1 else rhs)
    out.comment_behind(doc)


def _if(out: _Printer, doc: docs.IfDoc) -> None:
    out.comment_before(doc)
    out.write("if ", doc.predicate, ":")
    out.block(doc.then_branch)
    if doc.else_branch:
        out.line("else:")
        out.block(doc.else_branch)


def _while(out: _Printer, doc: docs.WhileDoc) -> None:
    out.comment_before(doc)
    out.write("while ", doc.predicate, ":")
    out.block(doc.body)


def _for(out: _Printer, doc: docs.ForDoc) -> None:
    out.comment_before(doc)
    out.text += "for "
    if isinstance(doc.lhs, docs.TupleDoc):
        out.write(doc.lhs.elements, "," if len(doc.lhs.elements) == 1 else "")
    else:
        out.print(doc.lhs)
    out.write(" in ", doc.rhs, ":")
    out.block(doc.body)


def _scope(out: _Printer, doc: docs.ScopeDoc) -> None:
    out.comment_before(doc)
    out.write("with ", doc.rhs)
    if doc.lhs is not None:
        out.write(" as ", doc.lhs)
    out.text += ":"
    out.block(doc.body)


def _expr_stmt(out: _Printer, doc: docs.ExprStmtDoc) -> None:
    out.print(doc.expr)
    out.comment_behind(doc)


def _assert(out: _Printer, doc: docs.AssertDoc) -> None:
    out.write("assert ", doc.test)
    if doc.msg is not None:
        out.write(", ", doc.msg)
    out.comment_behind(doc)


def _return(out: _Printer, doc: docs.ReturnDoc) -> None:
    out.write("return ", doc.value)
    out.comment_behind(doc)


def _function(out: _Printer, doc: docs.FunctionDoc) -> None:
    if any(arg.comment is not None for arg in doc.args):
        raise ValueError("Function arg cannot have comment attached to them.")
    out.decorators(doc.decorators)
    out.write("def ", doc.name, "(", doc.args, ")")
    if doc.return_type is not None:
        out.write(" -> ", doc.return_type)
    out.text += ":"
    out.comment_inside(doc)
    out.block(doc.body)
    out.add_unmarked("\n")


def _class(out: _Printer, doc: docs.ClassDoc) -> None:
    out.decorators(doc.decorators)
    out.write("class ", doc.name, ":")
    out.comment_inside(doc)
    out.block(doc.body)


def _comment(out: _Printer, doc: docs.CommentDoc) -> None:
    if doc.comment is not None:
        out.comment_lines(doc.comment)


def _doc_string(out: _Printer, doc: docs.DocStringDoc) -> None:
    if doc.comment:
        out.doc_string(doc.comment)


_WRITERS: dict[type, Callable[[_Printer, Any], None]] = {
    docs.LiteralDoc: _literal,
    docs.IdDoc: _id,
    docs.AttrAccessDoc: _attr,
    docs.IndexDoc: _index,
    docs.CallDoc: _call,
    docs.OperationDoc: _operation,
    docs.LambdaDoc: _lambda,
    docs.ListDoc: _list,
    docs.TupleDoc: _tuple,
    docs.DictDoc: _dict,
    docs.SliceDoc: _slice,
    docs.StmtBlockDoc: _stmts,
    docs.AssignDoc: _assign,
    docs.IfDoc: _if,
    docs.WhileDoc: _while,
    docs.ForDoc: _for,
    docs.ScopeDoc: _scope,
    docs.ExprStmtDoc: _expr_stmt,
    docs.AssertDoc: _assert,
    docs.ReturnDoc: _return,
    docs.FunctionDoc: _function,
    docs.ClassDoc: _class,
    docs.CommentDoc: _comment,
    docs.DocStringDoc: _doc_string,
}


def to_python_script(
    doc: Doc,
    indent_spaces: int = 4,
    print_line_numbers: bool = False,
    num_context_lines: int | None = None,
    path_to_underline: Sequence[Any] | None = None,
) -> str:
    """Return the text of a document.

    Args:
        path_to_underline: what stands for these places, or else for what is nearest around them, gets a line of ^.
        num_context_lines: how many lines around such a line are shown; by default all of the text.
    """
    paths = [] if path_to_underline is None else [path_to_underline]
    if isinstance(path_to_underline, (list, tuple)):
        paths = list(path_to_underline)
    out = _Printer(indent_spaces, paths)
    out.print(doc)
    text = out.text.rstrip(" ")
    text += "" if not text or text.endswith("\n") else "\n"
    starts = out.starts[:-1] if out.starts[-1] >= len(text) else out.starts
    lines = [text[start:end] for start, end in zip(starts, [*starts[1:], len(text)], strict=True)]
    context = len(lines) if num_context_lines is None or num_context_lines < 0 else num_context_lines
    spans = _without(_merged([span for _, spans in out.found for span in spans]), _merged(out.unmarked))
    return _excerpts(lines, starts, spans, context, print_line_numbers).rstrip()


def _merged(spans: list[Span]) -> list[Span]:
    """Return the spans sorted, without empty ones, and merged where they touch."""
    merged: list[Span] = []
    for start, end in sorted(spans):
        if start == end:
            continue
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _without(spans: list[Span], holes: list[Span]) -> list[Span]:
    """Return the parts of merged spans outside of merged holes."""
    left: list[Span] = []
    for start, end in spans:
        for first, last in holes:
            if first < end and last > start:
                if start < first:
                    left.append((start, first))
                start = last
        if start < end:
            left.append((start, end))
    return left


def _excerpts(lines: list[str], starts: list[int], spans: list[Span], context: int, numbers: bool) -> str:
    """Return the underlined lines with the context around them."""
    shown = _shown(len(lines), starts, spans, context)
    width = len(str(len(lines))) + 1 if numbers else 0
    out = ""
    skipped = 0
    for number, line in enumerate(lines):
        if not shown[number]:
            skipped += 1
            continue
        out += f"(... {skipped} lines skipped ...)\n" if skipped else ""
        skipped = 0
        out += f"{number + 1} ".rjust(width) + line if numbers else line
        begin, end = starts[number], starts[number] + len(line)
        row = _underline(
            line, [(max(a, begin) - begin, min(b, end) - begin) for a, b in spans if a < end and b > begin]
        )
        out += " " * width + row + "\n" if row else ""
    return out + (f"(... {skipped} lines skipped ...)\n" if skipped else "")


def _shown(count: int, starts: list[int], spans: list[Span], context: int) -> list[bool]:
    """Return for each line whether it is shown: all are where nothing is underlined."""
    if not spans:
        return [True] * count
    shown = [False] * count
    for start, end in spans:
        first = bisect.bisect_right(starts, start) - 1
        last = min(bisect.bisect_right(starts, end - 1) - 1, count - 1)
        for number in range(max(first - context, 0), min(last + context + 1, count)):
            shown[number] = True
    _show_single_lines(shown)
    return shown


def _width(text: str) -> int:
    return sum(ord(letter) in _PRINTABLE for letter in text)


def _underline(line: str, spans: list[Span]) -> str:
    """Return the line of ^ below a line. An empty span gets a single ^, by which the text after it is shortened."""
    row, at, ahead = "", 0, 0
    for start, end in spans:
        spaces, carets = _width(line[at:start]), _width(line[start:end])
        if spaces and ahead:
            spaces, ahead = spaces - 1, 0
        if not carets and not ahead:
            carets, ahead = 1, 1
        elif carets and ahead:
            carets, ahead = carets - 1, 0
        row += " " * spaces + "^" * carets
        at = end
    return row


def _show_single_lines(shown: list[bool]) -> None:
    """Show short runs of hidden lines between shown ones."""
    start = None
    for number, here in enumerate([*shown, True]):
        if not here:
            start = number if start is None else start
        elif start is not None:
            if number - start < _LEAST_GAP:
                shown[start:number] = [True] * (number - start)
            start = None
