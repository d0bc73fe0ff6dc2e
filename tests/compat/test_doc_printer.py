"""tvm.script.printer: documents as text; Python's own parser says what the text means."""

from __future__ import annotations

import ast
import random
from typing import Any

import pytest

from tilewright.compat.tvm.runtime.object_path import ObjectPath
from tilewright.compat.tvm.script.printer import doc as d
from tilewright.compat.tvm.script.printer import to_python_script

_BINARY = {
    "Add": ast.Add,
    "Sub": ast.Sub,
    "Mult": ast.Mult,
    "Div": ast.Div,
    "FloorDiv": ast.FloorDiv,
    "Mod": ast.Mod,
    "Pow": ast.Pow,
    "LShift": ast.LShift,
    "RShift": ast.RShift,
    "BitAnd": ast.BitAnd,
    "BitOr": ast.BitOr,
    "BitXor": ast.BitXor,
}
_COMPARED = {"Lt": ast.Lt, "LtE": ast.LtE, "Eq": ast.Eq, "NotEq": ast.NotEq, "Gt": ast.Gt, "GtE": ast.GtE}
_UNARY = {"USub": ast.USub, "Invert": ast.Invert, "Not": ast.Not}


class Made:
    """Documents at random, each with the tree that Python should read from its text."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def name(self) -> tuple[d.IdDoc, Any]:
        name = self.random.choice("abcxyz")
        return d.IdDoc(name), ast.Name(name, ast.Load())

    def many(self, depth: int, least: int = 0) -> tuple[list[Any], list[Any]]:
        pairs = [self.expr(depth) for _ in range(self.random.randint(least, 3))]
        return [p[0] for p in pairs], [p[1] for p in pairs]

    def expr(self, depth: int) -> tuple[d.ExprDoc, Any]:
        if depth == 0:
            value = self.random.choice([None, True, 7, 0.5, 'a"b\n\\', "name"])
            return self.name() if value == "name" else (d.LiteralDoc(value), ast.Constant(value))
        kind = self.random.choice(["op"] * 6 + ["attr", "index", "call", "lambda", "list", "tuple", "dict"])
        return getattr(self, f"_{kind}")(depth - 1)

    def _op(self, depth: int) -> tuple[d.ExprDoc, Any]:
        name = self.random.choice([*_BINARY, *_COMPARED, *_UNARY, "And", "Or", "IfThenElse"])
        count = 3 if name == "IfThenElse" else 1 if name in _UNARY else 2
        parts = [self.expr(depth) for _ in range(count)]
        document = d.OperationDoc(d.OperationKind[name], [p[0] for p in parts])
        trees = [p[1] for p in parts]
        if name in _BINARY:
            return document, ast.BinOp(trees[0], _BINARY[name](), trees[1])
        if name in _UNARY:
            return document, ast.UnaryOp(_UNARY[name](), trees[0])
        if name == "IfThenElse":
            # as TVM, no parentheses around a conditional value; Python reads it from the right
            return self._op(depth) if isinstance(trees[1], ast.IfExp) else (document, ast.IfExp(*trees))
        if name in _COMPARED:
            # nor around a comparison on the left, which is read as a chain
            if isinstance(trees[0], ast.Compare):
                return self._op(depth)
            return document, ast.Compare(trees[0], [_COMPARED[name]()], [trees[1]])
        operator = ast.And() if name == "And" else ast.Or()
        # a and b and c is one operation of three
        left = trees[0]
        same = isinstance(left, ast.BoolOp) and type(left.op) is type(operator)
        return document, ast.BoolOp(operator, [*left.values, trees[1]] if same else trees)

    def _attr(self, depth: int) -> tuple[d.ExprDoc, Any]:
        value, tree = self.name() if depth == 0 else self._index(depth - 1)
        return value.attr("field"), ast.Attribute(tree, "field", ast.Load())

    def _index(self, depth: int) -> tuple[d.ExprDoc, Any]:
        value, tree = self.name()
        indices, trees = self.many(depth)
        if indices and self.random.random() < 0.3:
            ends = [self.expr(0) if self.random.random() < 0.5 else (None, None) for _ in range(3)]
            indices[0] = d.SliceDoc(*(e[0] for e in ends))
            trees[0] = ast.Slice(*(e[1] for e in ends))
        index = trees[0] if len(trees) == 1 else ast.Tuple(trees, ast.Load())
        return d.IndexDoc(value, indices), ast.Subscript(tree, index, ast.Load())

    def _call(self, depth: int) -> tuple[d.ExprDoc, Any]:
        value, tree = self.expr(depth) if self.random.random() < 0.5 else self.name()
        (args, trees), (named, named_trees) = self.many(depth), self.many(depth)
        keys = [f"k{n}" for n in range(len(named))]
        keywords = [ast.keyword(k, t) for k, t in zip(keys, named_trees, strict=True)]
        return value.call(*args, **dict(zip(keys, named, strict=True))), ast.Call(tree, trees, keywords)

    def _lambda(self, depth: int) -> tuple[d.ExprDoc, Any]:
        names = self.random.sample("abc", self.random.randint(1, 3))
        body, tree = self.expr(depth)
        return d.LambdaDoc([d.IdDoc(n) for n in names], body), ast.Lambda(_arguments(names), tree)

    def _list(self, depth: int) -> tuple[d.ExprDoc, Any]:
        elements, trees = self.many(depth)
        return d.ListDoc(elements), ast.List(trees, ast.Load())

    def _tuple(self, depth: int) -> tuple[d.ExprDoc, Any]:
        elements, trees = self.many(depth)
        return d.TupleDoc(elements), ast.Tuple(trees, ast.Load())

    def _dict(self, depth: int) -> tuple[d.ExprDoc, Any]:
        pairs = [(self.expr(0), self.expr(depth)) for _ in range(self.random.randint(0, 3))]
        content = {key: value for (key, _), (value, _) in pairs}
        return d.DictDoc(content), ast.Dict([k for (_, k), _ in pairs], [v for _, (_, v) in pairs])

    def body(self, depth: int) -> tuple[list[Any], list[Any]]:
        pairs = [self.stmt(depth) for _ in range(self.random.randint(0, 3))]
        return [p[0] for p in pairs], [p[1] for p in pairs] or [ast.Pass()]

    def stmt(self, depth: int) -> tuple[d.StmtDoc, Any]:
        kinds = ["assign", "expr", "assert", "return"] + (
            ["if", "while", "for", "with", "def", "class"] if depth else []
        )
        document, tree = getattr(self, f"_stmt_{self.random.choice(kinds)}")(depth)
        commented = not isinstance(document, (d.FunctionDoc, d.ClassDoc))  # there it is a string of the body
        document.comment = "said" if commented and self.random.random() < 0.3 else None
        return document, tree

    def _stmt_assign(self, depth: int) -> tuple[d.StmtDoc, Any]:
        (name, _), (value, tree) = self.name(), self.expr(2)
        target = ast.Name(name.name, ast.Store())
        if self.random.random() < 0.5:
            return d.AssignDoc(name, value), ast.Assign([target], tree)
        kind, kind_tree = self.name()
        return d.AssignDoc(name, value, kind), ast.AnnAssign(target, kind_tree, tree, 1)

    def _stmt_expr(self, depth: int) -> tuple[d.StmtDoc, Any]:
        value, tree = self._call(1)
        return d.ExprStmtDoc(value), ast.Expr(tree)

    def _stmt_assert(self, depth: int) -> tuple[d.StmtDoc, Any]:
        (test, tree), (message, message_tree) = self.expr(2), self.expr(1)
        return d.AssertDoc(test, message), ast.Assert(tree, message_tree)

    def _stmt_return(self, depth: int) -> tuple[d.StmtDoc, Any]:
        value, tree = self.expr(2)
        return d.ReturnDoc(value), ast.Return(tree)

    def _stmt_if(self, depth: int) -> tuple[d.StmtDoc, Any]:
        (test, tree), (then, then_trees), (other, other_trees) = (
            self.expr(2),
            self.body(depth - 1),
            self.body(depth - 1),
        )
        if not then and not other:
            then, then_trees = [d.ExprStmtDoc(d.IdDoc("a"))], [ast.Expr(ast.Name("a", ast.Load()))]
        return d.IfDoc(test, then, other), ast.If(tree, then_trees, other_trees if other else [])

    def _stmt_while(self, depth: int) -> tuple[d.StmtDoc, Any]:
        (test, tree), (body, trees) = self.expr(2), self.body(depth - 1)
        return d.WhileDoc(test, body), ast.While(tree, trees, [])

    def _stmt_for(self, depth: int) -> tuple[d.StmtDoc, Any]:
        (values, tree), (body, trees) = self.expr(2), self.body(depth - 1)
        names = self.random.sample("ijk", self.random.randint(1, 3))
        target = ast.Tuple([ast.Name(n, ast.Store()) for n in names], ast.Store())
        return d.ForDoc(d.TupleDoc([d.IdDoc(n) for n in names]), values, body), ast.For(target, tree, trees, [])

    def _stmt_with(self, depth: int) -> tuple[d.StmtDoc, Any]:
        (value, tree), (body, trees) = self._call(1), self.body(depth - 1)
        name = self.random.choice([None, "v"])
        item = ast.withitem(tree, ast.Name(name, ast.Store()) if name else None)
        return d.ScopeDoc(d.IdDoc(name) if name else None, value, body), ast.With([item], trees)

    def _stmt_def(self, depth: int) -> tuple[d.StmtDoc, Any]:
        (body, trees), (decorator, decorator_tree), (kind, kind_tree) = self.body(depth - 1), self.name(), self.name()
        args = [d.AssignDoc(d.IdDoc("p"), None, kind), d.AssignDoc(d.IdDoc("q"), None, kind)]
        document = d.FunctionDoc(d.IdDoc("f"), args, [decorator], kind, body)
        arguments = _arguments(["p", "q"])
        for argument in arguments.args:
            argument.annotation = kind_tree
        return document, ast.FunctionDef("f", arguments, trees, [decorator_tree], kind_tree)

    def _stmt_class(self, depth: int) -> tuple[d.StmtDoc, Any]:
        (body, trees), (decorator, decorator_tree) = self.body(depth - 1), self.name()
        return d.ClassDoc(d.IdDoc("C"), [decorator], body), ast.ClassDef("C", [], [], trees, [decorator_tree])


def _arguments(names: list[str]) -> ast.arguments:
    return ast.arguments([], [ast.arg(n) for n in names], None, [], [], None, [])


@pytest.mark.parametrize("seed", range(150))
@pytest.mark.parametrize("indent", [2, 4])
def test_python_reads_what_is_meant(seed: int, indent: int) -> None:
    made = Made(seed)
    pairs = [made.stmt(3) for _ in range(3)]
    text = to_python_script(d.StmtBlockDoc([p[0] for p in pairs]), indent_spaces=indent)
    read = ast.parse(text)
    assert ast.dump(read) == ast.dump(ast.Module([p[1] for p in pairs], [])), text


def test_numbers_that_python_has_no_literal_for() -> None:
    assert to_python_script(d.LiteralDoc(float("inf"))) == '"inf"'
    assert to_python_script(d.LiteralDoc(0.1)) == "0.10000000000000001"


ROOT = ObjectPath.root()


def _lines(count: int, **marked: Any) -> d.StmtBlockDoc:
    stmts: list[d.StmtDoc] = []
    for number in range(count):
        stmt = d.AssignDoc(d.IdDoc("x"), d.IdDoc(f"v{number}"))
        if f"line{number}" in marked:
            stmt.rhs.source_paths = [marked[f"line{number}"]]
        stmts.append(stmt)
    return d.StmtBlockDoc(stmts)


def test_the_nearest_place_is_underlined() -> None:
    document = _lines(3, line0=ROOT, line1=ROOT.attr("a"), line2=ROOT.attr("b"))
    text = to_python_script(document, path_to_underline=[ROOT.attr("a").array_index(2)])
    assert text == "x = v0\nx = v1\n    ^^\nx = v2"
    both = to_python_script(document, path_to_underline=[ROOT.attr("a"), ROOT.attr("b")])
    assert both == "x = v0\nx = v1\n    ^^\nx = v2\n    ^^"
    assert to_python_script(document, path_to_underline=ROOT.attr("c")) == "x = v0\n    ^^\nx = v1\nx = v2"


def test_what_is_far_from_the_underlined_is_left_out() -> None:
    document = _lines(12, line4=ROOT.attr("a"), line8=ROOT.attr("b"))
    text = to_python_script(
        document, print_line_numbers=True, num_context_lines=1, path_to_underline=[ROOT.attr("a"), ROOT.attr("b")]
    )
    # one line between two excerpts is shown
    assert text.splitlines() == [
        "(... 3 lines skipped ...)",
        " 4 x = v3",
        " 5 x = v4",
        "       ^^",
        " 6 x = v5",
        " 7 x = v6",
        " 8 x = v7",
        " 9 x = v8",
        "       ^^",
        "10 x = v9",
        "(... 2 lines skipped ...)",
    ]


def test_a_statement_over_lines_is_underlined_line_by_line() -> None:
    loop = d.ForDoc(d.IdDoc("i"), d.IdDoc("n"), [d.ExprStmtDoc(d.IdDoc("a")), d.ExprStmtDoc(d.IdDoc("b"))])
    loop.source_paths = [ROOT]
    assert to_python_script(loop, path_to_underline=[ROOT]).splitlines()[:2] == ["for i in n:", "^^^^^^^^^^^"]


def test_what_cannot_be_printed() -> None:
    statement = d.ExprStmtDoc(d.IdDoc("a"))
    statement.comment = "two\nlines"
    with pytest.raises(ValueError, match="cannot have newline"):
        to_python_script(statement)
    argument = d.AssignDoc(d.IdDoc("a"), None, d.IdDoc("int"))
    argument.comment = "here"
    with pytest.raises(ValueError, match="Function arg"):
        to_python_script(d.FunctionDoc(d.IdDoc("f"), [argument], [], None, []))
    with pytest.raises(ValueError, match="3 operands"):
        to_python_script(d.OperationDoc(d.OperationKind.IfThenElse, [d.IdDoc("a")]))
    with pytest.raises(RuntimeError, match="cannot be used as iterable"):
        list(d.IdDoc("a"))
    with pytest.raises(TypeError, match="LiteralDoc"):
        d.LiteralDoc([1])  # type: ignore[arg-type]


def test_statements_without_a_part() -> None:
    x, pair = d.IdDoc("x"), d.TupleDoc([d.IdDoc("x"), d.IdDoc("y")])
    with pytest.raises(ValueError, match="At least one of rhs and annotation"):
        d.AssignDoc(x, None)
    with pytest.raises(ValueError, match="only be nonnull if lhs is an identifier"):
        d.AssignDoc(pair, x, annotation=x)
    with pytest.raises(ValueError, match="then branch or else branch needs to be non-empty"):
        d.IfDoc(x, [], [])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1.0"),
        (-2.0, "-2.0"),
        (1e20, "100000000000000000000.0"),
        (0.5, "0.5"),
        (float("-inf"), '"-inf"'),
        ("a\tb\x01", '"a\\tb\\x01"'),
        ("\x7f'\"", '"\\x7F\'\\""'),
        (True, "True"),
        (None, "None"),
    ],
)
def test_literals(value: Any, text: str) -> None:
    assert to_python_script(d.LiteralDoc(value)) == text


def test_several_values_stand_without_parentheses() -> None:
    names = [d.IdDoc("a"), d.IdDoc("b")]
    assert to_python_script(d.AssignDoc(d.TupleDoc(names), d.TupleDoc(names))) == "a, b = a, b"
    assert to_python_script(d.AssignDoc(d.IdDoc("x"), d.TupleDoc(names[:1]))) == "x = (a,)"


def test_blank_lines_and_doc_strings() -> None:
    body = [d.ExprStmtDoc(d.IdDoc("a"))]
    function = d.FunctionDoc(d.IdDoc("f"), [], [], None, body)
    text = to_python_script(d.StmtBlockDoc([d.ClassDoc(d.IdDoc("C"), [], [function, function]), *body]))
    assert text == "class C:\n    def f():\n        a\n\n    def f():\n        a\n\na"
    assert to_python_script(d.StmtBlockDoc([d.ClassDoc(d.IdDoc("C"), [], body), *body])) == "class C:\n    a\na"
    assert to_python_script(d.DocStringDoc("one\n\ntwo\n")) == '"""\none\n\ntwo\n"""'
    assert to_python_script(d.CommentDoc("one\n")) == "# one"


def test_neither_comments_nor_indentation_are_underlined() -> None:
    inner = d.AssignDoc(d.IdDoc("x"), d.LiteralDoc(1))
    inner.comment = "here"
    loop = d.ForDoc(d.IdDoc("i"), d.IdDoc("n"), [inner])
    loop.comment = "a loop"
    loop.source_paths = [ROOT]
    assert to_python_script(loop, path_to_underline=[ROOT]).splitlines() == [
        "# a loop",
        "for i in n:",
        "^^^^^^^^^^^",
        "    x = 1  # here",
        "    ^^^^^",
    ]


def test_what_has_no_letters_gets_one_mark() -> None:
    empty, name = d.IdDoc("\x01"), d.IdDoc("abc")
    empty.source_paths = [ROOT.attr("a")]
    text = to_python_script(d.CallDoc(d.IdDoc("f"), empty, name), path_to_underline=[ROOT.attr("a")])
    assert text == "f(\x01, abc)\n  ^"
