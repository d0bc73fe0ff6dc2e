"""tvm.script.printer.doc: Python programs as trees, to be printed by doc_printer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum, unique
from typing import Any, NoReturn, Self, dataclass_transform


@dataclass_transform(eq_default=False)
def _fields(cls: type[Any]) -> Any:
    """Decorate a class of documents: the constructor takes the fields; documents are compared by identity."""
    return dataclass(eq=False, repr=False)(cls)


class Doc:
    """A part of a program; `source_paths` are the places of the object that it stands for."""

    source_paths: Sequence[Any]

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Return a document that stands for no object yet."""
        made = super().__new__(cls)
        made.source_paths = []
        return made

    def __post_init__(self) -> None:
        """Keep sequences as lists of its own."""
        for name, value in vars(self).items():
            if isinstance(value, Iterable) and not isinstance(value, str | Doc):
                setattr(self, name, list(value))


class ExprDoc(Doc):
    """An expression."""

    def attr(self, name: str) -> AttrAccessDoc:
        """Return the document self.name."""
        return AttrAccessDoc(self, name)

    def call(self, *args: ExprDoc, **kwargs: ExprDoc) -> CallDoc:
        """Return the document self(*args, **kwargs)."""
        return CallDoc(self, *args, **kwargs)

    def __getitem__(self, indices: ExprDoc | tuple[ExprDoc, ...]) -> IndexDoc:
        return IndexDoc(self, list(indices) if isinstance(indices, tuple) else [indices])

    def __iter__(self) -> NoReturn:
        # without it, Python would call __getitem__ with 0, 1, 2, ... for ever
        raise RuntimeError(f"{self.__class__} cannot be used as iterable.")


class StmtDoc(Doc):
    """A statement, with a comment."""

    comment: str | None = None

    def __init__(self, comment: str | None = None) -> None:
        self.comment = comment


@_fields
class StmtBlockDoc(Doc):
    """Statements in sequence."""

    stmts: Sequence[StmtDoc]


class LiteralDoc(ExprDoc):
    """None, a string, or a number."""

    def __init__(self, value: str | float | bool | int | None, path: Any = None) -> None:
        if value is not None and not isinstance(value, (str, float, bool, int)):
            raise TypeError(f"Unsupported type {type(value)} for LiteralDoc")
        self.value = value
        if path is not None:
            self.source_paths = [path]


@_fields
class IdDoc(ExprDoc):
    """A name."""

    name: str


@_fields
class AttrAccessDoc(ExprDoc):
    """value.name"""

    value: ExprDoc
    name: str


@_fields
class IndexDoc(ExprDoc):
    """value[indices]"""

    value: ExprDoc
    indices: Sequence[ExprDoc]


class CallDoc(ExprDoc):
    """callee(args, key=value)"""

    def __init__(self, callee: ExprDoc, *args: ExprDoc, **kwargs: ExprDoc) -> None:
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


@_fields
class OperationDoc(ExprDoc):
    """An operator and its operands; of IfThenElse: condition, value, other value."""

    kind: OperationKind
    operands: Sequence[ExprDoc]


@_fields
class LambdaDoc(ExprDoc):
    """lambda args: body"""

    args: Sequence[IdDoc]
    body: ExprDoc


@_fields
class TupleDoc(ExprDoc):
    """(elements)"""

    elements: Sequence[ExprDoc]


@_fields
class ListDoc(ExprDoc):
    """[elements]"""

    elements: Sequence[ExprDoc]


class DictDoc(ExprDoc):
    """{key: value}"""

    def __init__(self, content: dict[ExprDoc, ExprDoc]) -> None:
        self.keys, self.values = list(content), list(content.values())


@_fields
class SliceDoc(ExprDoc):
    """start:stop:step, in an index."""

    start: ExprDoc | None = None
    stop: ExprDoc | None = None
    step: ExprDoc | None = None


@_fields
class AssignDoc(StmtDoc):
    """lhs: annotation = rhs"""

    lhs: ExprDoc
    rhs: ExprDoc | None
    annotation: ExprDoc | None = None

    def __post_init__(self) -> None:
        if self.rhs is None and self.annotation is None:
            raise ValueError("At least one of rhs and annotation needs to be non-null for AssignDoc.")
        if self.annotation is not None and not isinstance(self.lhs, IdDoc):
            raise ValueError("annotation can only be nonnull if lhs is an identifier.")
        super().__post_init__()


@_fields
class IfDoc(StmtDoc):
    """if predicate: then_branch, else: else_branch"""

    predicate: ExprDoc
    then_branch: Sequence[StmtDoc]
    else_branch: Sequence[StmtDoc]

    def __post_init__(self) -> None:
        if not self.then_branch and not self.else_branch:
            raise ValueError("At least one of the then branch or else branch needs to be non-empty.")
        super().__post_init__()


@_fields
class WhileDoc(StmtDoc):
    """while predicate: body"""

    predicate: ExprDoc
    body: Sequence[StmtDoc]


@_fields
class ForDoc(StmtDoc):
    """for lhs in rhs: body"""

    lhs: ExprDoc
    rhs: ExprDoc
    body: Sequence[StmtDoc]


@_fields
class ScopeDoc(StmtDoc):
    """with rhs as lhs: body"""

    lhs: ExprDoc | None
    rhs: ExprDoc
    body: Sequence[StmtDoc]


@_fields
class ExprStmtDoc(StmtDoc):
    """An expression on a line of its own."""

    expr: ExprDoc


@_fields
class AssertDoc(StmtDoc):
    """assert test, msg"""

    test: ExprDoc
    msg: ExprDoc | None = None


@_fields
class ReturnDoc(StmtDoc):
    """return value"""

    value: ExprDoc


@_fields
class FunctionDoc(StmtDoc):
    """def name(args) -> return_type: body"""

    name: IdDoc
    args: Sequence[AssignDoc]
    decorators: Sequence[ExprDoc]
    return_type: ExprDoc | None
    body: Sequence[StmtDoc]


@_fields
class ClassDoc(StmtDoc):
    """class name: body"""

    name: IdDoc
    decorators: Sequence[ExprDoc]
    body: Sequence[StmtDoc]


class CommentDoc(StmtDoc):
    """Lines after #."""

    def __init__(self, comment: str) -> None:
        super().__init__(comment)


class DocStringDoc(StmtDoc):
    """Text in three quotes."""

    def __init__(self, docs: str) -> None:
        super().__init__(docs)
