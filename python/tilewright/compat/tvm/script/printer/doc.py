"""tvm.script.printer.doc: Python programs as trees, to be printed by doc_printer."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum, unique
from typing import Any, NoReturn


class Doc:
    """A part of a program; `source_paths` are the places of the object that it stands for."""

    def __init__(self) -> None:
        self.source_paths: Sequence[Any] = []


class ExprDoc(Doc):
    """An expression."""

    def attr(self, name: str) -> AttrAccessDoc:
        """self.name"""
        return AttrAccessDoc(self, name)

    def call(self, *args: ExprDoc, **kwargs: ExprDoc) -> CallDoc:
        """self(*args, **kwargs)"""
        return CallDoc(self, *args, **kwargs)

    def __getitem__(self, indices: ExprDoc | tuple[ExprDoc, ...]) -> IndexDoc:
        return IndexDoc(self, list(indices) if isinstance(indices, tuple) else [indices])

    def __iter__(self) -> NoReturn:
        # without it, Python would call __getitem__ with 0, 1, 2, ... for ever
        raise RuntimeError(f"{self.__class__} cannot be used as iterable.")


class StmtDoc(Doc):
    """A statement, with a comment."""

    def __init__(self, comment: str | None = None) -> None:
        super().__init__()
        self.comment = comment


class StmtBlockDoc(Doc):
    """Statements after one another."""

    def __init__(self, stmts: Sequence[StmtDoc]) -> None:
        super().__init__()
        self.stmts = list(stmts)


class LiteralDoc(ExprDoc):
    """None, a string, or a number."""

    def __init__(self, value: str | float | bool | int | None, path: Any = None) -> None:
        super().__init__()
        if value is not None and not isinstance(value, (str, float, bool, int)):
            raise TypeError(f"Unsupported type {type(value)} for LiteralDoc")
        self.value = value
        if path is not None:
            self.source_paths = [path]


class IdDoc(ExprDoc):
    """A name."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name


class AttrAccessDoc(ExprDoc):
    """value.name"""

    def __init__(self, value: ExprDoc, name: str) -> None:
        super().__init__()
        self.value, self.name = value, name


class IndexDoc(ExprDoc):
    """value[indices]"""

    def __init__(self, value: ExprDoc, indices: Sequence[ExprDoc]) -> None:
        super().__init__()
        self.value, self.indices = value, list(indices)


class CallDoc(ExprDoc):
    """callee(args, key=value)"""

    def __init__(self, callee: ExprDoc, *args: ExprDoc, **kwargs: ExprDoc) -> None:
        super().__init__()
        self.callee, self.args = callee, list(args)
        self.kwargs_keys, self.kwargs_values = list(kwargs), list(kwargs.values())


@unique
class OperationKind(IntEnum):
    """Operators, by their names in Python's ast."""

    _UnaryStart = 0
    USub = 1
    Invert = 2
    Not = 3
    _UnaryEnd = 4

    _BinaryStart = 5
    Add = 6
    Sub = 7
    Mult = 8
    Div = 9
    FloorDiv = 10
    Mod = 11
    Pow = 12
    LShift = 13
    RShift = 14
    BitAnd = 15
    BitOr = 16
    BitXor = 17
    Lt = 18
    LtE = 19
    Eq = 20
    NotEq = 21
    Gt = 22
    GtE = 23
    And = 24
    Or = 25
    _BinaryEnd = 26

    _SpecialStart = 27
    IfThenElse = 28
    _SpecialEnd = 29


class OperationDoc(ExprDoc):
    """An operator and its operands; of IfThenElse: condition, value, other value."""

    def __init__(self, kind: OperationKind, operands: Sequence[ExprDoc]) -> None:
        super().__init__()
        self.kind, self.operands = kind, list(operands)


class LambdaDoc(ExprDoc):
    """lambda args: body"""

    def __init__(self, args: Sequence[IdDoc], body: ExprDoc) -> None:
        super().__init__()
        self.args, self.body = list(args), body


class TupleDoc(ExprDoc):
    """(elements)"""

    def __init__(self, elements: Sequence[ExprDoc]) -> None:
        super().__init__()
        self.elements = list(elements)


class ListDoc(ExprDoc):
    """[elements]"""

    def __init__(self, elements: Sequence[ExprDoc]) -> None:
        super().__init__()
        self.elements = list(elements)


class DictDoc(ExprDoc):
    """{key: value}"""

    def __init__(self, content: dict[ExprDoc, ExprDoc]) -> None:
        super().__init__()
        self.keys, self.values = list(content), list(content.values())


class SliceDoc(ExprDoc):
    """start:stop:step, in an index."""

    def __init__(self, start: ExprDoc | None = None, stop: ExprDoc | None = None, step: ExprDoc | None = None) -> None:
        super().__init__()
        self.start, self.stop, self.step = start, stop, step


class AssignDoc(StmtDoc):
    """lhs: annotation = rhs"""

    def __init__(self, lhs: ExprDoc, rhs: ExprDoc | None, annotation: ExprDoc | None = None) -> None:
        super().__init__()
        if rhs is None and annotation is None:
            raise ValueError("At least one of rhs and annotation needs to be non-null for AssignDoc.")
        if annotation is not None and not isinstance(lhs, IdDoc):
            raise ValueError("annotation can only be nonnull if lhs is an identifier.")
        self.lhs, self.rhs, self.annotation = lhs, rhs, annotation


class IfDoc(StmtDoc):
    """if predicate: then_branch, else: else_branch"""

    def __init__(self, predicate: ExprDoc, then_branch: Sequence[StmtDoc], else_branch: Sequence[StmtDoc]) -> None:
        super().__init__()
        if not then_branch and not else_branch:
            raise ValueError("At least one of the then branch or else branch needs to be non-empty.")
        self.predicate, self.then_branch, self.else_branch = predicate, list(then_branch), list(else_branch)


class WhileDoc(StmtDoc):
    """while predicate: body"""

    def __init__(self, predicate: ExprDoc, body: Sequence[StmtDoc]) -> None:
        super().__init__()
        self.predicate, self.body = predicate, list(body)


class ForDoc(StmtDoc):
    """for lhs in rhs: body"""

    def __init__(self, lhs: ExprDoc, rhs: ExprDoc, body: Sequence[StmtDoc]) -> None:
        super().__init__()
        self.lhs, self.rhs, self.body = lhs, rhs, list(body)


class ScopeDoc(StmtDoc):
    """with rhs as lhs: body"""

    def __init__(self, lhs: ExprDoc | None, rhs: ExprDoc, body: Sequence[StmtDoc]) -> None:
        super().__init__()
        self.lhs, self.rhs, self.body = lhs, rhs, list(body)


class ExprStmtDoc(StmtDoc):
    """An expression on a line of its own."""

    def __init__(self, expr: ExprDoc) -> None:
        super().__init__()
        self.expr = expr


class AssertDoc(StmtDoc):
    """assert test, msg"""

    def __init__(self, test: ExprDoc, msg: ExprDoc | None = None) -> None:
        super().__init__()
        self.test, self.msg = test, msg


class ReturnDoc(StmtDoc):
    """return value"""

    def __init__(self, value: ExprDoc) -> None:
        super().__init__()
        self.value = value


class FunctionDoc(StmtDoc):
    """def name(args) -> return_type: body"""

    def __init__(
        self,
        name: IdDoc,
        args: Sequence[AssignDoc],
        decorators: Sequence[ExprDoc],
        return_type: ExprDoc | None,
        body: Sequence[StmtDoc],
    ) -> None:
        super().__init__()
        self.name, self.args, self.decorators = name, list(args), list(decorators)
        self.return_type, self.body = return_type, list(body)


class ClassDoc(StmtDoc):
    """class name: body"""

    def __init__(self, name: IdDoc, decorators: Sequence[ExprDoc], body: Sequence[StmtDoc]) -> None:
        super().__init__()
        self.name, self.decorators, self.body = name, list(decorators), list(body)


class CommentDoc(StmtDoc):
    """Lines after #."""

    def __init__(self, comment: str) -> None:
        super().__init__(comment)


class DocStringDoc(StmtDoc):
    """Text in three quotes."""

    def __init__(self, docs: str) -> None:
        super().__init__(docs)
