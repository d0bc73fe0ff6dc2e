"""Names that are bound again in an inner scope: refused if Python and the program would read different values.

This is reaching definitions, computed for two scoping rules. In a program, a binding ends with the loop, branch or
block around it. In Python it continues: ``s = s + A[i]`` in a loop adds up. If the name is not read before it is bound
again, both rules agree, and the binding is accepted.

For each name that is visible when it is bound, one walk over the function computes the bindings that reach each read,
by the rules of Python and by those of programs. A read that Python reaches with a binding that the program has ended is
a mistake. Two rounds over the body of a loop find all bindings of earlier iterations. A loop that is reached with the
same bindings again is not walked again.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tilewright import _core
from tilewright.script.report import ScriptProblem

if TYPE_CHECKING:
    from tilewright.script.parser import Parser

_Bindings = frozenset[ast.AST]

_OUTER_BINDING = ast.Pass()  # the binding of the name before the function


def _hint(name: str, value: Any) -> str:
    return f"a value that changes lives in memory: {_memory(name, value)}, then {name}[0] = ..."


def _memory(name: str, value: Any) -> str:
    dtype = str(value.dtype) if isinstance(value, _core.Expr) else "int32" if isinstance(value, int) else "float32"
    return f'{name} = T.alloc_buffer((1,), "{dtype}", scope="local")'


def ended_hint(name: str, value: Any, kind: str) -> str:
    """Return what to write instead of a name that ended with an inner scope; "" if it is unknown."""
    if kind == "" or not isinstance(value, _core.Expr | _core.Buffer | int | float):
        return ""
    ends = f"it ended with the {kind} that binds it"
    if isinstance(value, _core.Buffer):
        return f"{ends}: make the buffer in front of that"
    one_of_two = f"write {name} = T.if_then_else(condition, one, other), or " if kind == "branch" else ""
    return f"{ends}: {one_of_two}keep it in memory: {_memory(name, value)} in front of that, then {name}[0] = ..."


def check_rebinding(parser: Parser, body: Sequence[ast.stmt]) -> None:
    """Report the bindings in `body`, which has been parsed, that end before they are read."""
    for name, value in parser.rebound.items():
        flow = _Flow(parser, name)
        flow.walk(body)
        for binding, (kind, reader) in sorted(flow.violations.items(), key=lambda item: parser.place(item[0])):
            line = parser.place(reader)[0]
            parser.report(
                ScriptProblem(
                    "script/rebound",
                    f"'{name}' is bound again inside of a {kind}: the new value ends there, and line {line} would read "
                    "the old one",
                    _hint(name, value),
                    binding,
                ),
                binding,
            )
    parser.rebound.clear()
    parser.ended.clear()


class _Flow:
    """Follows one name through the statements of a function."""

    def __init__(self, parser: Parser, name: str) -> None:
        self.parser = parser
        self.name = name
        self.reaching_in_python: _Bindings = frozenset([_OUTER_BINDING])
        self.reaching_in_program: _Bindings = self.reaching_in_python
        self.kinds: dict[ast.AST, str] = {}  # binding -> the scope that it ends with
        self.violations: dict[ast.AST, tuple[str, ast.AST]] = {}  # binding -> that scope, and who would read it
        self.kind = "function"
        self.call: ast.AST | None = None  # of the macro whose text is walked over
        self.after: dict[tuple[ast.AST, _Bindings, _Bindings], tuple[_Bindings, _Bindings]] = {}  # loops walked before

    def walk(self, statements: Sequence[ast.stmt]) -> None:
        """Process statements one after the other."""
        for statement in statements:
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.For):
            self._loop(node, node.target, node.iter, node in self.parser.repeated)
        elif isinstance(node, ast.While):
            self._loop(node, None, node.test, False)
        elif isinstance(node, ast.If):
            self._branch(node)
        elif isinstance(node, ast.With):
            for item in node.items:
                self._read(item.context_expr)
            self._scope("block", node.body, [item.optional_vars for item in node.items])
        elif isinstance(node, ast.FunctionDef):
            self._read(node)
            if node.name == self.name:
                self._bind(node)
        else:
            self._read(node)
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            for target in targets:
                self._bind_target(target)
            for macro in self.parser.expanded.get(node, ()):
                if self.name not in _parameters(macro.args):
                    before, self.call = self.call, self.call or node
                    self._scope("macro", macro.body, [])
                    self.call = before

    def _loop(self, node: ast.For | ast.While, target: ast.AST | None, header: ast.expr, is_repeated: bool) -> None:
        if isinstance(node, ast.For):
            self._read(header)
        start = node, self.reaching_in_python, self.reaching_in_program
        if start in self.after:
            self.reaching_in_python, self.reaching_in_program = self.after[start]
            return
        for _ in range(2):
            before, scoped = self.reaching_in_python, self.reaching_in_program
            if isinstance(node, ast.While):
                self._read(header)
            if is_repeated:
                self._bind_target(target)
                self.walk(node.body)
                self.reaching_in_program |= scoped
            else:
                self._scope("loop", node.body, [target])
            self.reaching_in_python |= before
        if isinstance(node, ast.While):
            self._read(header)
        self.after[start] = self.reaching_in_python, self.reaching_in_program

    def _branch(self, node: ast.If) -> None:
        self._read(node.test)
        chosen = self.parser.chosen.get(node)
        before, scoped = self.reaching_in_python, self.reaching_in_program
        ends: list[tuple[_Bindings, _Bindings]] = []
        for taken, body in ((True, node.body), (False, node.orelse)):
            self.reaching_in_python, self.reaching_in_program = before, scoped
            if chosen is None:
                self._scope("branch", body, [])
            elif taken in chosen:
                self.walk(body)
            else:
                continue
            ends.append((self.reaching_in_python, self.reaching_in_program))
        self.reaching_in_python = frozenset().union(*(python for python, _ in ends))
        self.reaching_in_program = frozenset().union(*(program for _, program in ends))

    def _scope(self, kind: str, body: Sequence[ast.stmt], targets: Sequence[ast.AST | None]) -> None:
        scoped, outer = self.reaching_in_program, self.kind
        self.kind = kind
        for target in targets:
            self._bind_target(target)
        self.walk(body)
        self.reaching_in_program, self.kind = scoped, outer

    def _bind_target(self, target: ast.AST | None) -> None:
        for node in ast.walk(target) if target is not None else ():
            if isinstance(node, ast.Name) and node.id == self.name and isinstance(node.ctx, ast.Store):
                self._bind(node)

    def _bind(self, node: ast.AST) -> None:
        binding = self.call or node
        self.kinds[binding] = self.kind
        self.reaching_in_python = self.reaching_in_program = frozenset([binding])

    def _read(self, node: ast.AST) -> None:
        """Process all reads of the name in the node, without the bodies of statements."""
        stack: list[ast.AST] = [node]
        while stack:
            item = stack.pop()
            if isinstance(item, ast.Lambda | ast.FunctionDef) and self.name in _parameters(item.args):
                continue
            if isinstance(item, ast.Name) and item.id == self.name and self._is_read(item, node):
                for binding in self.reaching_in_python - self.reaching_in_program:
                    self.violations.setdefault(binding, (self.kinds[binding], self.call or item))
            stack.extend(ast.iter_child_nodes(item))

    @staticmethod
    def _is_read(name: ast.Name, statement: ast.AST) -> bool:
        augmented = isinstance(statement, ast.AugAssign) and statement.target is name
        return isinstance(name.ctx, ast.Load) or augmented


def _parameters(args: ast.arguments) -> set[str]:
    every = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
    return {arg.arg for arg in every if arg is not None}
