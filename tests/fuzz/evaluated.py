"""Random programs that say themselves, element by element and in Python, what they compute.

Small blocks over wrapped, mirrored, padded and gathered elements; axes that loops give in parts, turned, or on
conditions of data; stages that share loops; numbers that leave their type. What the interpreter finds is compared with
it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"]
#: The arrays of the program, and the values of loops and axes.
Point = dict[str, Any]


@dataclass
class Term:
    """A text, and its value at a point."""

    text: str
    value: Callable[[Point], Any]

    def __str__(self) -> str:
        return self.text


@dataclass
class Array:
    name: str
    shape: list[int]
    dtype: str
    is_param: bool


@dataclass
class Stage:
    """A block below loops: each a variable and an extent."""

    loops: list[tuple[str, Term]]
    lines: list[str]
    run: Callable[[Point], None]


@dataclass
class Loop:
    variable: str
    extent: Term
    body: list[Loop | Stage] = field(default_factory=list)


def wrapped(value: Any, dtype: str) -> Any:
    if dtype.startswith("float"):
        return np.dtype(dtype).type(value)
    bits = np.dtype(dtype).itemsize * 8
    inside = int(value) & ((1 << bits) - 1)
    return inside - (1 << bits) if dtype[0] == "i" and inside >> (bits - 1) else inside


def as_type(value: Any, source: str, dtype: str) -> Any:
    """Floats end at the limits of integers."""
    if source.startswith("float") and not dtype.startswith("float"):
        info = np.iinfo(dtype)
        return int(min(max(value, info.min), info.max))
    return wrapped(value, dtype)


class Evaluated:
    """Draws a program."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.arrays: list[Array] = []
        self.ready: list[Array] = []
        has_floats = self.chance(0.5)
        #: of arguments: extreme ones only where all wrap
        self.special = not has_floats
        self.dtypes = [*INTEGERS, *["int32"] * 4, *(["float32"] * 6 if has_floats else [])]
        for number in range(rng.randint(1, 3)):
            shape = [rng.choice([1, 2, 3, 4, 5, 7, 8, 12]) for _ in range(rng.randint(1, 3))]
            self.arrays.append(Array(f"A{number}", shape, rng.choice(self.dtypes), True))
        self.ready = list(self.arrays)
        self.body: list[Loop | Stage] = []
        for number in range(rng.randint(1, 4)):
            self.place(self.stage(number))
        self.arrays[-1].is_param = True
        self.parameters = [array for array in self.arrays if array.is_param]

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    # ---- the program

    def text(self) -> str:
        parameters = ", ".join(f"{a.name}: T.Buffer({tuple(a.shape)}, {a.dtype!r})" for a in self.parameters)
        lines = ["@T.prim_func", f"def main({parameters}):"]
        made = [array for array in self.arrays if not array.is_param]
        lines += [f"    {a.name} = T.alloc_buffer({tuple(a.shape)}, {a.dtype!r})" for a in made]
        return "\n".join([*lines, *self.lines(self.body, "    ")]) + "\n"

    def lines(self, body: Sequence[Loop | Stage], space: str) -> list[str]:
        result = []
        for node in body:
            if isinstance(node, Stage):
                result += [space + line for line in node.lines]
            else:
                result.append(f"{space}for {node.variable} in range({node.extent}):")
                result += self.lines(node.body, space + "    ")
        return result

    def expected(self, given: Sequence[np.ndarray]) -> list[np.ndarray]:
        """What the parameters hold afterwards."""
        point: Point = {a.name: np.zeros(a.shape, a.dtype) for a in self.arrays}
        point |= {a.name: array.copy() for a, array in zip(self.parameters, given, strict=True)}
        with np.errstate(all="ignore"):
            self.run(self.body, point)
        return [point[array.name] for array in self.parameters]

    def run(self, body: Sequence[Loop | Stage], point: Point) -> None:
        for node in body:
            if isinstance(node, Stage):
                node.run(point)
                continue
            for step in range(node.extent.value(point)):
                point[node.variable] = step
                self.run(node.body, point)

    def place(self, stage: Stage) -> None:
        """Behind what there is, or in loops of the stage before that are alike."""
        body, depth = self.body, 0
        while body and self.chance(0.3) and isinstance(last := body[-1], Loop) and depth < len(stage.loops):
            variable, extent = stage.loops[depth]
            if (last.variable, last.extent.text) != (variable, extent.text):
                break
            body, depth = last.body, depth + 1
        for variable, extent in stage.loops[depth:]:
            body.append(loop := Loop(variable, extent))
            body = loop.body
        body.append(stage)

    # ---- expressions

    def index(self, axes: dict[str, int], extent: int, depth: int = 1) -> Term:
        """An index inside of a dimension."""
        rng = self.rng
        fitting = [name for name, count in axes.items() if count <= extent]
        if fitting and self.chance(0.55):
            name = rng.choice(fitting)
            shift, by = rng.randint(0, extent - axes[name]), rng.randint(2, 3)
            return rng.choice(
                [
                    Term(name, lambda at: at[name]),
                    Term(f"{name} + {shift}", lambda at: at[name] + shift),
                    Term(f"{extent - 1} - {name}", lambda at: extent - 1 - at[name]),
                    Term(f"{name} // {by}", lambda at: at[name] // by),
                ]
            )
        if not axes or self.chance(0.1):
            number = rng.randrange(extent)
            return Term(str(number), lambda at: number)
        name, other = rng.choice([*axes]), rng.choice([*axes])
        by, plus = rng.randint(1, 4), rng.randint(-3, 7)
        forms = [
            Term(f"({name} * {by} + {plus}) % {extent}", lambda at: (at[name] * by + plus) % extent),
            Term(f"({name} * {by} + {other}) % {extent}", lambda at: (at[name] * by + at[other]) % extent),
            Term(
                f"T.max(T.min({name} * {by} + {plus}, {extent - 1}), 0)",
                lambda at: max(min(at[name] * by + plus, extent - 1), 0),
            ),
        ]
        tables = [array for array in self.ready if array.dtype in ("int32", "int8", "uint8")]
        if depth and tables and self.chance(0.3):
            table = self.element(axes, rng.choice(tables), depth - 1)
            found = Term(f"T.Cast('int32', {table}) % {extent}", lambda at: int(table.value(at)) % extent)
            return found
        return rng.choice(forms)

    def element(self, axes: dict[str, int], array: Array, depth: int = 1) -> Term:
        indices = [self.index(axes, extent, depth) for extent in array.shape]
        return Term(
            f"{array.name}[{', '.join(map(str, indices))}]",
            lambda at: at[array.name][tuple(index.value(at) for index in indices)],
        )

    def padded(self, axes: dict[str, int], array: Array) -> Term:
        """An element, or a number where there is none."""
        places, conditions = [], []
        for extent in array.shape:
            name, shift = self.rng.choice([*axes]), self.rng.randint(-2, 2)
            places.append((name, shift, extent))
            conditions.append(f"{-shift} <= {name} and {name} < {extent - shift}")
        where = ", ".join(f"{name} + {shift}" if shift >= 0 else f"{name} - {-shift}" for name, shift, _ in places)
        other = self.constant(array.dtype)

        def value(at: Point) -> Any:
            found = tuple(at[name] + shift for name, shift, _ in places)
            inside = all(0 <= x < extent for x, (_, _, extent) in zip(found, places, strict=True))
            return at[array.name][found] if inside else other.value(at)

        return Term(f"T.if_then_else({' and '.join(conditions)}, {array.name}[{where}], {other})", value)

    def cast(self, term: Term, source: str, dtype: str) -> Term:
        if source == dtype:
            return term
        return Term(f"T.Cast({dtype!r}, {term})", lambda at: as_type(term.value(at), source, dtype))

    def constant(self, dtype: str) -> Term:
        number = self.rng.randint(0 if dtype[0] == "u" else -9, 9)
        if dtype in INTEGERS and self.chance(0.15):
            number = self.rng.choice([np.iinfo(dtype).min, np.iinfo(dtype).max])
        return Term(f"T.{dtype}({number})", lambda at: wrapped(number, dtype))

    def condition(self, axes: dict[str, int]) -> Term:
        rng = self.rng
        compare = rng.choice(["<", "<=", "==", "!=", ">="])
        if axes and self.chance(0.5):
            name, by = rng.choice([*axes]), rng.randint(2, 3)
            bound, rest = rng.randint(0, axes[name]), rng.randrange(by)
            return rng.choice(
                [
                    Term(f"{name} {compare} {bound}", lambda at: compared(at[name], compare, bound)),
                    Term(f"{name} % {by} == {rest}", lambda at: at[name] % by == rest),
                ]
            )
        dtype = rng.choice(self.dtypes)
        a, b = self.value(axes, dtype, 2), self.value(axes, dtype, 0)
        return Term(f"{a} {compare} {b}", lambda at: compared(a.value(at), compare, b.value(at)))

    def value(self, axes: dict[str, int], dtype: str, depth: int) -> Term:
        """Of floats, sums and extremes of small integers, which are never rounded."""
        rng = self.rng
        if depth <= 0 or self.chance(0.25):
            if axes and self.chance(0.15):
                name = rng.choice([*axes])
                return self.cast(Term(name, lambda at: at[name]), "int32", dtype)
            if self.chance(0.15):
                return self.constant(dtype)
            array = rng.choice(self.ready)
            element = self.padded(axes, array) if axes and self.chance(0.2) else self.element(axes, array)
            # Integers that do not fit a float would be rounded.
            if dtype.startswith("float") and array.dtype in INTEGERS:
                return self.cast(self.cast(element, array.dtype, "int8"), "int8", dtype)
            return self.cast(element, array.dtype, dtype)
        a, b = self.value(axes, dtype, depth - 1), self.value(axes, dtype, depth - 1 if dtype in INTEGERS else 0)
        by = rng.randint(2, 7)
        forms = [
            Term(f"({a} + {b})", lambda at: wrapped(number(a, at) + number(b, at), dtype)),
            Term(f"({a} - {b})", lambda at: wrapped(number(a, at) - number(b, at), dtype)),
            Term(f"T.min({a}, {b})", lambda at: min(a.value(at), b.value(at))),
            Term(f"T.max({a}, {b})", lambda at: max(a.value(at), b.value(at))),
        ]
        if self.chance(0.25):
            asked = self.condition(axes)
            choose = rng.choice(["T.Select", "T.if_then_else"])
            return Term(f"{choose}({asked}, {a}, {b})", lambda at: (a if asked.value(at) else b).value(at))
        if dtype in INTEGERS:
            forms += [
                Term(f"({a} * {b})", lambda at: wrapped(number(a, at) * number(b, at), dtype)),
                Term(f"({a} // T.{dtype}({by}))", lambda at: number(a, at) // by),
                Term(f"({a} % T.{dtype}({by}))", lambda at: number(a, at) % by),
                Term(f"T.ceildiv({a}, T.{dtype}({by}))", lambda at: -(-number(a, at) // by)),
                Term(f"T.shift_left({a}, T.{dtype}({by}))", lambda at: wrapped(number(a, at) << by, dtype)),
                Term(f"T.shift_right({a}, T.{dtype}({by}))", lambda at: number(a, at) >> by),
            ]
        return rng.choice(forms)

    # ---- stages

    def stage(self, number_of: int) -> Stage:
        rng = self.rng
        dtype = rng.choice(self.dtypes)
        spatial = rng.randint(1, 3)
        extents = [rng.choice([1, 2, 3, 4, 5, 7, 8, 9] if spatial < 3 else [1, 2, 3, 4]) for _ in range(spatial)]
        reduced = [rng.choice([1, 2, 3, 5, 8]) for _ in range(rng.choice([0, 0, 0, 1, 1, 2]))]
        names = [f"v{n}" for n in range(spatial)] + [f"k{n}" for n in range(len(reduced))]
        all_extents = extents + reduced
        axes = dict(zip(names, all_extents, strict=True))
        to, shape, keeps = self.target(names[:spatial], extents)
        loops = [(f"i{n}", Term(str(extent), lambda at, extent=extent: extent)) for n, extent in enumerate(all_extents)]
        bound = {name: Term(f"i{n}", lambda at, n=n: at[f"i{n}"]) for n, name in enumerate(names)}
        where: list[Term] = []
        keeps |= self.bind(loops, bound, names, axes, where)
        name = f"B{number_of}"
        array = Array(name, shape, dtype, keeps or self.chance(0.3))
        place = f"{name}[{', '.join(map(str, to))}]"
        begin, store = self.stores(array, place, to, axes, bool(reduced))
        lines = [f"with T.block('S{number_of}'):"]
        for n, axis in enumerate(names):
            kind = "spatial" if n < spatial else "reduce"
            lines.append(f"    {axis} = T.axis.{kind}({axes[axis]}, {bound[axis]})")
        lines += [f"    T.where({' and '.join(f'({term})' for term in where)})"] if where else []
        lines += ["    with T.init():", f"        {begin}"] if begin else []
        lines += [f"    {line}" for line in store.text.split("\n")]

        def run(at: Point) -> None:
            if not all(term.value(at) for term in where):
                return
            at |= {axis: bound[axis].value(at) for axis in names}
            if begin and not any(at[axis] for axis in names[spatial:]):
                begin.value(at)
            store.value(at)

        self.arrays.append(array)
        self.ready.append(array)
        # All that is not stored comes from the caller.
        array.is_param |= "if " in store.text and "else" not in store.text and not begin
        return Stage(loops, lines, run)

    def target(self, names: list[str], extents: list[int]) -> tuple[list[Term], list[int], bool]:
        """Indices to store to, the shape, and whether elements are left as they were."""
        to, shape, keeps = [], [], False
        for n in self.rng.sample(range(len(names)), len(names)):
            name, extent = names[n], extents[n]
            form = self.rng.random()
            if form < 0.75:
                to.append(Term(name, lambda at, name=name: at[name]))
                shape.append(extent)
            elif form < 0.87:
                to.append(Term(f"{extent - 1} - {name}", lambda at, name=name, last=extent - 1: last - at[name]))
                shape.append(extent)
            elif form < 0.94:
                to.append(Term(f"{name} + 1", lambda at, name=name: at[name] + 1))
                shape.append(extent + 2)
            else:
                to.append(Term(f"{name} * 2", lambda at, name=name: at[name] * 2))
                shape.append(extent * 2)
            keeps |= form >= 0.87
        return to, shape, keeps

    def bind(
        self,
        loops: list[tuple[str, Term]],
        bound: dict[str, Term],
        names: list[str],
        axes: dict[str, int],
        where: list[Term],
    ) -> bool:
        """Changes loops, and what axes are bound to; whether that leaves out instances."""
        rng = self.rng
        keeps = False
        n = rng.randrange(len(names))
        name, extent, loop = names[n], axes[names[n]], f"i{n}"
        form = rng.random()
        if form < 0.15 and len(names) > 1:
            first, second = names[0], axes[names[1]]
            loops[:2] = [("f", Term(str(axes[first] * second), lambda at, count=axes[first] * second: count))]
            bound[first] = Term(f"f // {second}", lambda at: at["f"] // second)
            bound[names[1]] = Term(f"f % {second}", lambda at: at["f"] % second)
        elif form < 0.3:
            by = rng.choice([2, 3])
            outer = -(-extent // by)
            loops[n : n + 1] = [
                (f"{loop}a", Term(str(outer), lambda at: outer)),
                (f"{loop}b", Term(str(by), lambda at: by)),
            ]
            sum_of = Term(f"{loop}a * {by} + {loop}b", lambda at: at[f"{loop}a"] * by + at[f"{loop}b"])
            bound[name] = sum_of
            if outer * by != extent:
                where.append(Term(f"{sum_of} < {extent}", lambda at: sum_of.value(at) < extent))
        elif form < 0.4:
            bound[name] = Term(f"{extent - 1} - {loop}", lambda at: extent - 1 - at[loop])
            keeps = name[0] == "k"
        elif form < 0.5:
            bound[name] = self.index({loop: extent}, extent)
            keeps = True
        elif form < 0.6 and len(loops) > 1:
            inner = rng.randrange(1, len(loops))
            (outer_name, _), (inner_name, old) = loops[rng.randrange(inner)], loops[inner]
            plus = rng.choice([0, 1, 1, 2])
            loops[inner] = (
                inner_name,
                Term(f"T.min({outer_name} + {plus}, {old})", lambda at: min(at[outer_name] + plus, old.value(at))),
            )
            keeps = True
        if form >= 0.6 or form < 0.3:
            if self.chance(0.3):
                rng.shuffle(loops)
            if self.chance(0.15):
                counts = {variable: extent.value({}) for variable, extent in loops}
                where.append(self.condition(counts))
                keeps = True
        return keeps

    def stores(
        self, array: Array, place: str, to: list[Term], axes: dict[str, int], reduces: bool
    ) -> tuple[Term | None, Term]:
        """The init, and the body."""
        dtype = array.dtype

        def put(value: Callable[[Point], Any]) -> Callable[[Point], None]:
            def store(at: Point) -> None:
                at[array.name][tuple(term.value(at) for term in to)] = value(at)

            return store

        held = Term(place, lambda at: at[array.name][tuple(term.value(at) for term in to)])
        value = self.value(axes, dtype, 2)
        asked = self.condition(axes)
        if reduces:
            begin = self.constant(dtype)
            combine, text = self.rng.choice(
                [
                    (lambda at: wrapped(number(held, at) + number(value, at), dtype), f"{place} + {value}"),
                    (lambda at: max(held.value(at), value.value(at)), f"T.max({place}, {value})"),
                    (lambda at: min(held.value(at), value.value(at)), f"T.min({place}, {value})"),
                ]
            )
            update = put(combine)
            body = Term(f"{place} = {text}", update)
            if self.chance(0.2):
                body = Term(f"if {asked}:\n    {place} = {text}", lambda at: update(at) if asked.value(at) else None)
            return Term(f"{place} = {begin}", put(begin.value)), body
        set_it = put(value.value)
        form = self.rng.random()
        if form < 0.1:
            return None, Term(f"if {asked}:\n    {place} = {value}", lambda at: set_it(at) if asked.value(at) else None)
        if form < 0.2:
            other = self.value(axes, dtype, 1)
            set_other = put(other.value)
            text = f"if {asked}:\n    {place} = {value}\nelse:\n    {place} = {other}"
            return None, Term(text, lambda at: set_it(at) if asked.value(at) else set_other(at))
        if form < 0.3:
            other = self.value(axes, dtype, 1)
            larger = put(lambda at: max(held.value(at), other.value(at)))
            text = f"{place} = {value}\n{place} = T.max({place}, {other})"
            return None, Term(text, lambda at: (set_it(at), larger(at)))
        return None, Term(f"{place} = {value}", set_it)


def number(term: Term, at: Point) -> Any:
    """Of integers, one that does not wrap by itself."""
    value = term.value(at)
    return int(value) if isinstance(value, (int, np.integer)) else value


def compared(a: Any, compare: str, b: Any) -> bool:
    return bool({"<": a < b, "<=": a <= b, "==": a == b, "!=": a != b, ">=": a >= b}[compare])
