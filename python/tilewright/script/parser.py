"""The driver of the parser: scopes, spans, errors, and the order of statements.

The handlers of a dialect (dialect.py) define the meaning of statements and expressions; they get the parser and the
syntax node, evaluate fragments with `parser.eval` and call the IRBuilder.

A failure ends its statement only. The names that the statement would have bound become unknown quantities: statements
that use them are skipped without a message, all others are still checked.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tilewright.errors import ArgumentTypeError, Error, ScriptError
from tilewright.script.core import script as _script
from tilewright.script.dialect import Dialect
from tilewright.script.host_code import place_in_function, raised_in
from tilewright.script.rebinding import ended_hint
from tilewright.script.report import MAX_PROBLEMS, Problem, ScriptProblem, did_you_mean, span_of, to_error
from tilewright.script.source import BadSyntax, Position, Source
from tilewright.support import wrong_arguments
from tilewright.support.file_names import printable

_MISSING = object()
#: names that only printed programs have
_HINTS = {"metadata": "long values are omitted from the text: print it by script(show_meta=True)"}
_DEEP_LIMIT = 100_000
_DEEP_STACK = 512 << 20


class _Unknown:
    """The value of a name whose definition failed."""


UNKNOWN = _Unknown()


class Cascade(Exception):
    """Something failed because of a failure that is reported already."""


class TooManyProblems(Exception):
    """Enough is reported."""


_active = threading.local()


def active_parser() -> Parser | None:
    """Return the parser that is active on this thread; macros expand in it."""
    stack = getattr(_active, "stack", None)
    return stack[-1] if stack else None


class Parser:
    """Parser of one script, with its names and problems."""

    def __init__(
        self, source: Source, dialect: Dialect, names: Mapping[str, Any], outer: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        self.source = source
        self.dialect = dialect
        self.table = dialect.table
        self.names: dict[str, Any] = dict(names)
        self.outer = [*outer, vars(builtins)]
        self.problems: list[Problem] = []
        self.unknown_scopes = 0  # how many scopes around could not be opened: what belongs in them is at its place
        self.at: ast.AST | None = None  # the node at work: where a failure of Python code is reported
        self.trail: tuple[tuple[Source, Position], ...] = ()
        self.statement_call: ast.AST | None = None  # the call that is a statement of its own
        self.statement: ast.stmt | None = None  # the innermost one at work
        self.name = ""  # of the function, for messages
        self._log: list[tuple[str, Any]] = []
        self._scope_start = 0  # where in the log the names of the innermost scope start
        self._reported_names: set[str] = set()
        self.ended: dict[str, tuple[Any, str]] = {}  # names of inner scopes: what they were, and of what kind of scope
        self.rebound: dict[str, Any] = {}  # names that were visible when the function at work bound them, to what
        self.chosen: dict[ast.AST, set[bool]] = {}  # branches that were taken while parsing
        self.repeated: set[ast.AST] = set()  # loops over Python collections
        self.expanded: dict[ast.AST, list[ast.FunctionDef]] = {}  # calls of macros that see the names around
        self.check_well_formed = True  # whether the whole program is verified; any decorator can disable it

    # ---- running

    def run(self, work: Callable[[], Any], check_well_formed: bool = True) -> Any:
        """Call `work` with this parser active; raise one ScriptError for all problems."""
        self.check_well_formed = check_well_formed
        try:
            return self._run(work)
        except RecursionError:
            return self._run_deep(work)

    def _run(self, work: Callable[[], Any]) -> Any:
        stack = _active.__dict__.setdefault("stack", [])
        stack.append(self)
        result = None
        try:
            with _script.IRBuilder() as builder:
                _script.enter_source(printable(self.source.file), 0)
                try:
                    result = work()
                    if not self.problems:
                        result = builder.get() if result is None else result
                        self._verify(result)
                except TooManyProblems:
                    pass
                except RecursionError:
                    raise
                except Exception as error:
                    self.report(error, self.at)
        finally:
            stack.pop()
            if stack:
                stack[-1].resume_spans()
            else:
                _script.leave_source()
        if self.problems:
            raise to_error(self.problems, self.name) from None
        return result

    def _verify(self, program: Any) -> None:
        """Check the whole program. Construction has already checked each node by itself."""
        found = _script.find_ill_formed(program) if self.check_well_formed else None
        if found is not None:
            code, message, hint, span = found
            self.problems.append(Problem(code, message, hint, self.source, self.place(None), span=span))

    def _run_deep(self, work: Callable[[], Any]) -> Any:
        """Restart from the beginning with a deep stack."""
        outcome: list[Any] = [None, None]

        def deep() -> None:
            self.__dict__.update(fresh)
            try:
                outcome[0] = self._run(work)
            except RecursionError:
                outcome[1] = to_error(
                    [
                        Problem(
                            "script/too-deep",
                            "the script is nested too deep, or a Python function in it never stops calling itself",
                            "",
                            self.source,
                            self.place(self.at),
                        )
                    ],
                    self.name,
                )
            except BaseException as error:
                outcome[1] = error

        fresh: dict[str, Any] = {"problems": [], "trail": (), "_reported_names": set()}
        while self._log:
            self._undo()
        old_limit, old_size = sys.getrecursionlimit(), threading.stack_size(_DEEP_STACK)
        sys.setrecursionlimit(max(old_limit, _DEEP_LIMIT))
        try:
            thread = threading.Thread(target=deep)
            thread.start()
        finally:
            threading.stack_size(old_size)
        try:
            thread.join()
        finally:
            sys.setrecursionlimit(old_limit)
        if outcome[1] is not None:
            raise outcome[1] from None
        return outcome[0]

    # ---- names

    def define(self, name: str, value: Any) -> None:
        """Bind a name until the enclosing scope ends."""
        old = self.names.get(name, _MISSING)
        if old is not _MISSING or any(name in mapping for mapping in self.outer):
            self.rebound[name] = value
        self._log.append((name, old))
        self.names[name] = value

    def own_names_known_outside(self) -> dict[str, Any]:
        """Return the names, with their values, that are bound in the innermost scope and also known outside of it."""
        first: dict[str, Any] = {}
        for name, old in self._log[self._scope_start :]:
            first.setdefault(name, old)
        return {
            name: self.names[name]
            for name, old in first.items()
            if old is not _MISSING or any(name in mapping for mapping in self.outer)
        }

    def is_own(self, name: str) -> bool:
        """Return whether the name is bound in the innermost scope itself."""
        return any(known == name for known, _ in self._log[self._scope_start :])

    def lookup(self, name: str) -> Any:
        """Return the value of a name; raise an error if it is unknown."""
        value = self.names.get(name, _MISSING)
        if value is _MISSING:
            for mapping in self.outer:
                if name in mapping:
                    return mapping[name]
            if name in self._reported_names:
                raise Cascade
            self._reported_names.add(name)
            hint = ended_hint(name, *self.ended[name]) if name in self.ended else _HINTS.get(name, "")
            hint = hint or did_you_mean(name, self.visible())
            raise ScriptProblem("script/unknown-name", f"'{name}' is not defined", hint)
        if value is UNKNOWN:
            raise Cascade
        return value

    def find(self, name: str) -> Any:
        """Return the value of a name; None if it is unknown."""
        value = self.names.get(name, _MISSING)
        if value is not _MISSING:
            return None if value is UNKNOWN else value
        for mapping in self.outer:
            if name in mapping:
                return mapping[name]
        return None

    def visible(self) -> list[str]:
        """Return all names that are visible here, those of the script first."""
        seen = dict.fromkeys(self.names)
        for mapping in self.outer:
            seen.update(dict.fromkeys(mapping))
        return list(seen)

    def environment(self) -> dict[str, Any]:
        """Return all names and values in one dictionary, for code that Python runs itself."""
        merged: dict[str, Any] = {}
        for mapping in reversed(self.outer):
            merged.update(mapping)
        merged.update({name: value for name, value in self.names.items() if value is not UNKNOWN})
        return merged

    def _undo(self, kind: str = "") -> None:
        name, old = self._log.pop()
        if old is _MISSING:
            self.ended[name] = self.names.pop(name), kind
        else:
            self.names[name] = old

    @contextmanager
    def scope(self, kind: str = "") -> Iterator[None]:
        """Open a scope: names bound inside end with it. `kind` describes the scope in messages."""
        before, mark = self._scope_start, len(self._log)
        self._scope_start = mark
        try:
            yield
        finally:
            while len(self._log) > mark:
                self._undo(kind)
            self._scope_start = before

    @contextmanager
    def own_names(self) -> Iterator[None]:
        """Separate the names bound inside from those outside, as in a comprehension."""
        before = self.names, self._log, self._scope_start, self.rebound, self.ended
        self.names, self._log, self._scope_start, self.rebound, self.ended = dict(self.names), [], 0, {}, {}
        try:
            yield
        finally:
            self.names, self._log, self._scope_start, self.rebound, self.ended = before

    @contextmanager
    def use_dialect(self, dialect: Dialect) -> Iterator[None]:
        """Parse the statements inside in another dialect."""
        before = self.dialect
        self.dialect, self.table = dialect, dialect.table
        try:
            yield
        finally:
            self.dialect, self.table = before, before.table

    @contextmanager
    def moved_to(
        self,
        source: Source,
        names: dict[str, Any],
        outer: Sequence[Mapping[str, Any]],
        trail: tuple[tuple[Source, Position], ...],
    ) -> Iterator[None]:
        """Parse another text, with other names, inside the ``with`` statement."""
        before = self.source, self.names, self.outer, self._log, self._scope_start, self.trail, self.at
        rebound, ended = self.rebound, self.ended
        self.source, self.names, self.outer, self.trail = source, names, list(outer), trail
        self._log, self._scope_start, self.rebound, self.ended = [], 0, {}, {}
        self.resume_spans()
        try:
            yield
        finally:
            self.source, self.names, self.outer, self._log, self._scope_start, self.trail, self.at = before
            self.rebound, self.ended = rebound, ended
            self.resume_spans()

    @contextmanager
    def expansion(self, source: Source, names: dict[str, Any], outer: Sequence[Mapping[str, Any]]) -> Iterator[None]:
        """Parse the text of a macro in the place of the current node."""
        if len(self.trail) >= 100:
            raise ScriptProblem("script/macro-depth", "macros expand each other without end")
        with self.moved_to(source, names, outer, ((self.source, self.place(self.at)), *self.trail)):
            yield

    # ---- places and spans

    def place(self, node: ast.AST | None) -> Position:
        """Return the position of a node in the user's file."""
        if node is None:
            line = self.source.first_line
            return line, 1, line, 2
        return self.source.place(node)

    def mark(self, node: Any) -> None:
        """Make this node the current one: it becomes the span of new nodes, and failures are reported there."""
        self.at = node
        source = self.source
        if source.ascii:
            shift = source.shift
            _script.set_span(node.lineno + shift, node.col_offset + 1, node.end_lineno + shift, node.end_col_offset + 1)
        else:
            _script.set_span(*source.place(node))

    def resume_spans(self) -> None:
        """Set spans from the current source again."""
        _script.enter_source(printable(self.source.file), span_of(*self.trail[0], self.trail[1:]) if self.trail else 0)

    # ---- problems

    def report(self, error: BaseException, node: ast.AST | None) -> None:
        """Record a problem at the node."""
        if isinstance(error, Cascade) or (self.unknown_scopes and getattr(error, "code", "") == "builder/place"):
            return
        if isinstance(error, BadSyntax):
            problem = Problem("script/syntax", str(error), "", error.source, error.place)
        else:
            problem = self._to_problem(error, node)
        if any((p.code, p.place, p.message) == (problem.code, problem.place, problem.message) for p in self.problems):
            return  # a loop of Python, or a macro, came by again
        self.problems.append(problem)
        if len(self.problems) >= MAX_PROBLEMS:
            raise TooManyProblems

    def _to_problem(self, error: BaseException, node: ast.AST | None) -> Problem:
        node = getattr(error, "script_node", None) or node
        source, place, trail = self.source, self.place(node), self.trail
        if isinstance(error, ScriptProblem) and error.node is not None:
            return Problem(error.code, str(error), error.hint, source, self.place(error.node), trail)
        found = place_in_function(error, source)
        if found is not None:  # inside of a Python function that the script calls
            source, place, trail = *found, ((source, place), *trail)
        if isinstance(error, ArgumentTypeError) and error.code in _CALLS:
            return Problem(*_call_problem(error, node), source, place, trail)
        if isinstance(error, ScriptProblem | Error) and error.message:
            hint = _namesake(node) if error.code == "ir/truth" else ""
            return Problem(error.code, error.message, hint or error.hint, source, place, trail)
        code, message, hint = explain(error, node, is_placed=found is not None)
        if not hint and isinstance(error, TypeError) and "keyword argument" in message:
            hint = self._parameters_hint(message, node)
        return Problem(code, message, hint, source, place, trail)

    def _parameters_hint(self, message: str, node: ast.AST | None) -> str:
        """Return a hint that lists the parameters of the called function, for a keyword that it does not have."""
        try:
            names = list(inspect.signature(self.eval(node.func)).parameters)  # type: ignore[union-attr]
        except Exception:
            return ""
        return did_you_mean(message.split("'")[1], names) or "it takes " + ", ".join(names)

    @contextmanager
    def reporting(self, node: ast.AST | None = None, *unknown: ast.AST | None) -> Iterator[None]:
        """Report a failure inside, and bind the names in `unknown` to an unknown value."""
        try:
            yield
        except (TooManyProblems, RecursionError):
            raise
        except Exception as error:
            if node is not None and not isinstance(error, ScriptProblem | Cascade) and not _is_inside(self.at, node):
                self.at = node
            self.report(error, self.at or node)
            for target in unknown:
                if target is not None:
                    self.forget(target)

    def forget(self, target: ast.AST) -> None:
        """Mark the names that the target would have bound as unknown from here on."""
        for node in ast.walk(target):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                self.define(node.id, UNKNOWN)

    # ---- statements and expressions

    def whole_body(self, statements: Sequence[ast.stmt]) -> None:
        """Parse the statements of a function. A final `return` without a value is ignored."""
        last = statements[-1]
        ends = isinstance(last, ast.Return) and last.value is None
        self.body(statements[:-1] if ends else statements)

    def body(self, statements: Iterable[ast.stmt]) -> None:
        """Parse statements one after the other, and continue after a failure."""
        table = self.table
        for statement in statements:
            self.at = self.statement = statement
            try:
                table[statement.__class__](self, statement)
            except (TooManyProblems, RecursionError):
                raise
            except Exception as error:
                self.report(error, self.at)
                self._forget_statement(statement)

    def _forget_statement(self, statement: ast.stmt) -> None:
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                self.forget(target)
        elif isinstance(statement, ast.AugAssign | ast.AnnAssign):
            self.forget(statement.target)
        elif isinstance(statement, ast.FunctionDef | ast.ClassDef):
            self.define(statement.name, UNKNOWN)

    def eval(self, node: ast.AST) -> Any:
        """Return the value of an expression."""
        return self.table[node.__class__](self, node)

    @contextmanager
    def frames(self, opened: list[Any], node: ast.AST) -> Iterator[None]:
        """Close the frames in reverse order; after a problem inside, discard them."""
        before = len(self.problems)
        try:
            yield
        except BaseException as error:
            for frame in reversed(opened):
                frame.__exit__(type(error), error, None)
            raise
        failed = Cascade() if len(self.problems) > before else None
        while opened:
            frame = opened.pop()
            if failed is not None:
                frame.__exit__(type(failed), failed, None)
                continue
            self.mark(node)
            try:
                frame.__exit__(None, None, None)
            except BaseException as error:
                for other in reversed(opened):
                    other.__exit__(type(error), error, None)
                raise


def _is_inside(inner: ast.AST | None, outer: ast.AST) -> bool:
    start = getattr(outer, "lineno", None)
    line = getattr(inner, "lineno", None)
    return start is not None and line is not None and start <= line <= (getattr(outer, "end_lineno", None) or start)


def explain(error: BaseException, node: ast.AST | None, is_placed: bool = False) -> tuple[str, str, str]:
    """Return code, message and hint for an exception of Python code; with `is_placed`, its position is reported
    elsewhere."""
    text = str(error)
    if isinstance(error, AttributeError) and error.obj is not None and error.name:
        known = [name for name in dir(error.obj) if not name.startswith("_")]
        what = _describe(error.obj, None if is_placed else node)
        hint = getattr(error, "hint", "") or _namesake(node) or _in_submodule(error) or did_you_mean(error.name, known)
        return "script/unknown-attribute", f"{what} has no '{error.name}'", hint
    where = "" if is_placed else raised_in(error)
    if isinstance(error, TypeError) and not where:
        return "script/type", text, _namesake(node) or _hint_on_kind(text)
    name = type(error).__name__
    return "script/python-error", f"{name}: {text}{where}" if text else f"{name}{where}", ""


def _hint_on_kind(text: str) -> str:
    """Return a hint where a buffer, a region or a variable of the program was used as a Python value."""
    if "for @" in text and "'Buffer'" in text:
        return (
            "a product of matrices is a block in three loops: C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj], after "
            "T.init() with C[vi, vj] = 0"
        )
    if "'BufferRegion'" in text:
        return "a region is not a value: loop over each dimension that is sliced, and compute with elements"
    if "item assignment" in text or "'Frame' object" in text:
        return "a function inside of a script is Python's own: put @T.macro above it to use statements of the program"
    if "'Buffer'" in text:
        return "index it: A[i]"
    if "cannot be interpreted as an integer" in text:
        return "its value is known when the program runs: Python's own loops and lists take numbers known before"
    return ""


#: What a failed call of a function of the core is in a script.
_CALLS = {
    wrong_arguments.TYPES: "script/arguments",
    wrong_arguments.KEYWORD: "script/arguments",
    wrong_arguments.DTYPE: "script/dtype",
}


def _call_problem(error: ArgumentTypeError, node: ast.AST | None) -> tuple[str, str, str]:
    """Return code, message and hint for a failed call of a function of the core, with the function named as in the
    script."""
    message = error.message
    if error.called and isinstance(node, ast.Call) and message.startswith(error.called):
        message = ast.unparse(node.func) + message.removeprefix(error.called)
    return _CALLS[error.code], message, error.hint


#: Functions of Python that cannot look into expressions, and what does.
_NAMESAKES = {
    **{name: f"T.{name}" for name in ("abs", "max", "min", "pow", "round")},
    **{"int": 'T.Cast("int32", ...)', "float": 'T.Cast("float32", ...)', "bool": "a comparison"},
    "len": "A.shape",
    "any": "'or' between the conditions",
    "all": "'and' between the conditions",
}


#: Functions of math and NumPy that have another name here.
_OTHER_NAMES = {
    **dict.fromkeys(("maximum", "fmax"), "T.max"),
    **dict.fromkeys(("minimum", "fmin"), "T.min"),
    **dict.fromkeys(("absolute", "fabs"), "T.abs"),
    **{f"arc{name}": f"T.a{name}" for name in ("sin", "cos", "tan", "tan2", "sinh", "cosh", "tanh")},
    **{"power": "T.pow", "rint": "T.nearbyint", "where": "T.if_then_else", "float_power": "T.pow"},
}


def _namesake(node: ast.AST | None) -> str:
    if not isinstance(node, ast.Call):
        return ""
    if isinstance(node.func, ast.Name) and node.func.id in _NAMESAKES:
        return f"'{node.func.id}' is Python's own function: use {_NAMESAKES[node.func.id]}"
    if not isinstance(node.func, ast.Name | ast.Attribute):
        return ""
    from tilewright.script.tir.intrinsics import INTRINSICS

    name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
    instead = _OTHER_NAMES.get(name) or (f"T.{name}" if name in INTRINSICS else "")
    called = ast.unparse(node.func)
    return f"{called} takes numbers: use {instead}, which takes expressions" if instead not in ("", called) else ""


def _in_submodule(error: AttributeError) -> str:
    """Return a hint if exactly one submodule has the missing name: `T` is `tir` of `tilewright.script`."""
    if not inspect.ismodule(error.obj):
        return ""
    name = error.name or ""
    below = [module for module in vars(error.obj).values() if inspect.ismodule(module) and hasattr(module, name)]
    inside = [module for module in below if module.__name__.startswith(error.obj.__name__ + ".")]
    if len(inside) != 1:
        return ""
    return f"it is in {inside[0].__name__}: from {error.obj.__name__} import {inside[0].__name__.rpartition('.')[2]}"


def _describe(value: Any, node: ast.AST | None) -> str:
    if isinstance(node, ast.Attribute):
        try:
            return f"'{ast.unparse(node.value)}'"
        except (RecursionError, ValueError):
            pass
    return f"module '{value.__name__}'" if inspect.ismodule(value) else f"a value of type {type(value).__name__}"


__all__ = ["UNKNOWN", "Cascade", "Parser", "ScriptError", "active_parser", "explain"]
