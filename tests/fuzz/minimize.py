"""Makes a case smaller for as long as the same thing is wrong with it.

Knows nothing about how programs were drawn: it edits the text as Python's syntax tree (leaves out statements, puts
bodies in place of loops and conditions, operands in place of expressions, smaller numbers in place of larger ones) and
the list of steps. Whatever does not parse or is not well defined is no case, and thereby not the same failure.
"""

from __future__ import annotations

import ast
import copy
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from fuzz.judge import Case
from fuzz.steps import Step

#: Gives the kind of the finding of a case, or None.
Verdict = Callable[[Case], str | None]
#: Gives smaller cases, those that leave out most first.
Way = Callable[[Case], Iterator[Case]]


def minimize(case: Case, kind: str, verdict: Verdict, seconds: float = 60.0) -> Case:
    """The smallest case that was found in that time and whose finding has the same kind."""
    return reduce(case, kind, verdict, [with_fewer_steps, with_smaller_text, with_smaller_choices], seconds)


def reduce(case: Case, kind: str, verdict: Verdict, ways: list[Way], seconds: float = 60.0) -> Case:
    """The case made smaller in these ways, in turn, until none succeeds or the time is over."""
    end = time.monotonic() + seconds
    is_better = True
    while is_better:
        is_better = False
        for way in ways:
            # After a success the next candidates are those behind its place: what failed before it is tried in the
            # next round.
            position, candidates = 0, list(way(case))
            while position < len(candidates) and time.monotonic() < end:
                if verdict(candidates[position]) == kind:
                    case, is_better = candidates[position], True
                    candidates = list(way(case))
                else:
                    position += 1
        is_better = is_better and time.monotonic() < end
    return case


def with_fewer_steps(case: Case) -> Iterator[Case]:
    """The case without halves, quarters, ..., single steps."""
    width = len(case.steps)
    while width > 0:
        for start in range(0, len(case.steps), width):
            yield replace(case, steps=case.steps[:start] + case.steps[start + width :])
        width //= 2


def with_smaller_choices(case: Case) -> Iterator[Case]:
    """Plain arguments, fewer sizes, smaller numbers in the steps."""
    if case.special:
        yield replace(case, special=False)
    for i in range(len(case.sizes) if len(case.sizes) > 1 else 0):
        yield replace(case, sizes=case.sizes[:i] + case.sizes[i + 1 :])
    for i, step in enumerate(case.steps):
        for j, choice in enumerate(step.choices):
            if type(choice) is int and choice > 0:
                smaller = Step(step.name, [*step.choices[:j], choice - 1, *step.choices[j + 1 :]])
                yield replace(case, steps=[*case.steps[:i], smaller, *case.steps[i + 1 :]])


def with_smaller_text(case: Case) -> Iterator[Case]:
    """The program without statements, with operands for expressions, with smaller numbers."""
    tree = ast.parse(case.text)
    for edit in [*statement_edits(tree), *parameter_edits(tree), *number_edits(tree), *expression_edits(tree)]:
        edited = applied(tree, edit)
        if edited is not None:
            text = ast.unparse(edited) + "\n"
            if text != case.text:
                yield replace(case, text=text)


#: A place (the path of fields and positions from the root) and what to do with the node there: None leaves it out.
Path = tuple[tuple[str, int | None], ...]
Edit = dict[Path, Callable[[Any], Any]]


def applied(tree: ast.Module, edit: Edit) -> ast.Module | None:
    result = copy.deepcopy(tree)
    for path, change in edit.items():
        parent: Any = result
        for name, position in path[:-1]:
            parent = getattr(parent, name) if position is None else getattr(parent, name)[position]
        name, position = path[-1]
        if position is None:
            setattr(parent, name, change(getattr(parent, name)))
            continue
        entries = getattr(parent, name)
        new = change(entries[position])
        entries[position : position + 1] = new if isinstance(new, list) else [new]
        if name == "body" and not entries:
            return None
    return result


def places(node: ast.AST, path: Path = ()) -> Iterator[tuple[Path, ast.AST]]:
    """All nodes with their paths, larger ones first."""
    for name, value in ast.iter_fields(node):
        children = value if isinstance(value, list) else [value]
        for position, child in enumerate(children):
            if isinstance(child, ast.AST):
                here = (*path, (name, position if isinstance(value, list) else None))
                yield here, child
                yield from places(child, here)


def statement_edits(tree: ast.Module) -> list[Edit]:
    found: list[tuple[int, Edit]] = []
    for path, node in places(tree):
        if not isinstance(node, ast.stmt) or isinstance(node, ast.FunctionDef):
            continue
        weight = sum(1 for _ in ast.walk(node))
        found.append((weight, {path: lambda _: []}))
        if isinstance(node, ast.For | ast.If | ast.While | ast.With):
            found.append((2, {path: lambda n: n.body}))
    return [edit for _, edit in sorted(found, key=lambda item: -item[0])]


def parameter_edits(tree: ast.Module) -> list[Edit]:
    """Each parameter left out, with the statement that gives it a buffer."""
    edits: list[Edit] = []
    for path, node in places(tree):
        if isinstance(node, ast.arg):
            edit: Edit = {path: lambda _: []}
            for other, stmt in places(tree):
                if isinstance(stmt, ast.Assign) and isinstance(stmt.value, ast.Call):
                    args = stmt.value.args
                    if args and isinstance(args[0], ast.Name) and args[0].id == node.arg:
                        edit[other] = lambda _: []
            edits.append(edit)
    return edits


def number_edits(tree: ast.Module) -> list[Edit]:
    """Each number smaller, everywhere at once (an extent stands in several places), then place by place."""
    by_value: dict[int, list[Path]] = {}
    for path, node in places(tree):
        if isinstance(node, ast.Constant) and type(node.value) is int and node.value > 1:
            by_value.setdefault(node.value, []).append(path)
    edits: list[Edit] = []
    for value, paths in sorted(by_value.items(), reverse=True):
        for smaller in sorted({value // 2, value - 1}):
            edits.append({path: lambda _, to=smaller: ast.Constant(to) for path in paths})
    for value, paths in sorted(by_value.items(), reverse=True):
        for path in paths if len(paths) > 1 else []:
            edits += [{path: lambda _, to=to: ast.Constant(to)} for to in sorted({value // 2, value - 1})]
    return edits


def expression_edits(tree: ast.Module) -> list[Edit]:
    """Operands for operations, numbers for what is read."""
    found: list[tuple[int, Edit]] = []
    for path, node in places(tree):
        if not isinstance(node, ast.expr):
            continue
        weight = sum(1 for _ in ast.walk(node))
        for part in operands(node):
            found.append((weight, {path: lambda _, part=part: copy.deepcopy(part)}))
        is_read = isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load)
        if is_read or isinstance(node, ast.BinOp | ast.IfExp):
            found += [(weight, {path: lambda _, to=to: ast.Constant(to)}) for to in (0, 1)]
    return [edit for _, edit in sorted(found, key=lambda item: -item[0])]


def operands(node: ast.expr) -> list[ast.expr]:
    match node:
        case ast.BinOp():
            return [node.left, node.right]
        case ast.BoolOp():
            return list(node.values)
        case ast.Compare():
            return [node.left, *node.comparators]
        case ast.UnaryOp():
            return [node.operand]
        case ast.Call():
            return [arg for arg in node.args if not isinstance(arg, ast.Constant)]
        case ast.Tuple() if len(node.elts) > 1:
            return [ast.Tuple(node.elts[:i] + node.elts[i + 1 :], node.ctx) for i in range(len(node.elts))]
        case _:
            return []
