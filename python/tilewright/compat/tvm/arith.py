"""tvm.arith."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tilewright import _core
from tilewright import arith as native
from tilewright._core import IterMapLevel, IterMark, IterSplitExpr, IterSumExpr
from tilewright.arith import normalize_iter_map_to_expr
from tilewright.compat.tvm.alias import as_expr
from tilewright.errors import ArgumentError
from tilewright.support.nodes import nodes_of

__all__ = [
    "Analyzer",
    "CompareResult",
    "ConstIntBound",
    "Extension",
    "IntSet",
    "IntervalSet",
    "IterMapExpr",
    "IterMapLevel",
    "IterMark",
    "IterSplitExpr",
    "IterSumExpr",
    "ModularSet",
    "ProofStrength",
    "deduce_bound",
    "detect_clip_bound",
    "detect_common_subexpr",
    "detect_iter_map",
    "detect_linear_equation",
    "estimate_region_lower_bound",
    "estimate_region_strict_bound",
    "estimate_region_upper_bound",
    "inverse_affine_iter_map",
    "iter_map_simplify",
    "neg_inf",
    "normalize_iter_map_to_expr",
    "normalize_to_iter_sum",
    "pos_inf",
    "subspace_divide",
    "union_lower_bound",
]

_NEG_INF = _core.Var("neg_inf", "handle")
_POS_INF = _core.Var("pos_inf", "handle")


def neg_inf() -> Any:
    """Return the lower end of a set that is unbounded below."""
    return _NEG_INF


def pos_inf() -> Any:
    """Return the upper end of a set that is unbounded above."""
    return _POS_INF


class ProofStrength(enum.IntEnum):
    """How hard to try. Tilewright's proofs know one way, which uses symbolic bounds."""

    DEFAULT = 0
    SYMBOLIC_BOUND = 1


class CompareResult(enum.IntEnum):
    """Possible results of comparing two values, as bits: "equal", "less" and "greater"."""

    INCONSISTENT = 0
    EQ = 1
    LT = 2
    LE = 3
    GT = 4
    GE = 5
    NE = 6
    UNKNOWN = 7


class Extension(enum.Flag):
    """Optional extensions of TVM's simplifier; Tilewright's simplifier always does what it can."""

    NoExtensions = 0
    TransitivelyProveInequalities = 1
    ConvertBooleanToAndOfOrs = 2
    ApplyConstraintsToBooleanBranches = 4
    ComparisonOfProductAndSum = 8


@dataclass(eq=False)
class ConstIntBound:
    """The integers from min_value to max_value; an end that is not known is POS_INF or NEG_INF."""

    POS_INF = (1 << 63) - 1
    NEG_INF = -POS_INF

    min_value: int
    max_value: int

    def __repr__(self) -> str:
        return f"ConstIntBound({self.min_value}, {self.max_value})"


@dataclass(eq=False)
class ModularSet:
    """The integers base + k * coeff."""

    coeff: int
    base: int

    def __repr__(self) -> str:
        return f"ModularSet({self.coeff}, {self.base})"


def _end_of(value: Any) -> int:
    if value == float("inf"):
        return ConstIntBound.POS_INF
    return ConstIntBound.NEG_INF if value == float("-inf") else int(value)


class IntSet:
    """A set of integers."""

    def is_nothing(self) -> bool:
        """Return whether the set is empty."""
        raise NotImplementedError

    def is_everything(self) -> bool:
        """Return whether the set is unbounded at both ends."""
        raise NotImplementedError

    @staticmethod
    def vector(vec: Any) -> IntervalSet:
        """Return the interval that covers the lanes of a vector expression."""
        if isinstance(vec, _core.Ramp):
            last = native.Analyzer().simplify(vec.base + vec.stride * (vec.lanes - 1))
            return IntervalSet(vec.base, last)
        if isinstance(vec, _core.Broadcast):
            return IntervalSet(vec.value, vec.value)
        return IntervalSet(vec, vec)

    @staticmethod
    def single_point(point: Any) -> IntervalSet:
        """Return the set of one expression."""
        return IntervalSet(point, point)


class IntervalSet(IntSet):
    """The integers from min_value to max_value, expressions or neg_inf() and pos_inf()."""

    def __init__(self, min_value: Any, max_value: Any) -> None:
        self.min_value, self.max_value = as_expr(min_value), as_expr(max_value)

    def is_nothing(self) -> bool:
        """Return whether the set is empty."""
        return self.min_value is _POS_INF and self.max_value is _NEG_INF

    def is_everything(self) -> bool:
        """Return whether the set is unbounded at both ends."""
        return self.min_value is _NEG_INF and self.max_value is _POS_INF

    def __repr__(self) -> str:
        return f"IntervalSet[{self.min_value}, {self.max_value}]"


def _from_native(found: Any) -> IntervalSet:
    if found.is_nothing():
        return IntervalSet(_POS_INF, _NEG_INF)
    low, high = found.min_value, found.max_value
    return IntervalSet(_NEG_INF if low is None else low, _POS_INF if high is None else high)


def _to_native(domain: Any) -> Any:
    if not isinstance(domain, IntervalSet):
        return domain
    low, high = domain.min_value, domain.max_value
    return native.IntervalSet(None if low is _NEG_INF else low, None if high is _POS_INF else high)


def _domains(domains: Mapping[Any, Any] | None) -> dict[Any, Any]:
    return {var: _to_native(domain) for var, domain in (domains or {}).items()}


def _is_open(bound: ConstIntBound) -> bool:
    return bound.min_value == ConstIntBound.NEG_INF or bound.max_value == ConstIntBound.POS_INF


def _promoted(expr: Any, variables: dict[Any, Any]) -> Any:
    """Return int32 arithmetic as int64 arithmetic, with an int64 variable for each variable. Other expressions are
    unchanged."""
    if expr.dtype != "int32":
        return expr
    match expr:
        case _core.Var():
            return variables.setdefault(expr, _core.Var(expr.name, "int64"))
        case _core.IntImm():
            return _core.const(expr.value, "int64")
        case _core.Select(condition, x, y):
            return _core.Select(condition, _promoted(x, variables), _promoted(y, variables))
        case (
            _core.Add(a, b)
            | _core.Sub(a, b)
            | _core.Mul(a, b)
            | _core.Div(a, b)
            | _core.Mod(a, b)
            | _core.FloorDiv(a, b)
            | _core.FloorMod(a, b)
            | _core.Min(a, b)
            | _core.Max(a, b)
        ):
            return type(expr)(_promoted(a, variables), _promoted(b, variables))
    return _core.Cast("int64", expr)


def _same_fact(one: Any, other: Any) -> bool:
    if isinstance(one, _core.Node) and isinstance(other, _core.Node):
        return _core.structural_equal(one, other)
    return str(one) == str(other)


class Analyzer:
    """Facts about variables, and what follows from them."""

    def __init__(self) -> None:
        self._native = native.Analyzer()
        self._facts: list[tuple[str, Any, Any]] = []
        self._scopes: list[Any] = []
        self._bounds: list[Any] = []
        self.enabled_extensions = Extension.NoExtensions

    def _learn(self, kind: str, subject: Any, fact: Any) -> None:
        if kind == "bind":
            self._native.bind(subject, fact)
        elif kind == "bound":
            if fact.min_value > ConstIntBound.NEG_INF:
                self._native.assume(subject >= _core.const(fact.min_value, subject.dtype))
            if fact.max_value < ConstIntBound.POS_INF:
                self._native.assume(subject <= _core.const(fact.max_value, subject.dtype))
        elif fact.coeff == 0:
            self._native.assume(subject == _core.const(fact.base, subject.dtype))
        else:
            self._native.assume(_core.floormod(subject, fact.coeff) == _core.const(fact.base, subject.dtype))

    def _start_again(self) -> None:
        """Rebuild the analyzer after a fact has replaced an earlier one."""
        self._native = native.Analyzer()
        for fact in self._facts:
            self._learn(*fact)
        for scope in self._scopes:
            self._native.assume(scope)

    def const_int_bound(self, expr: Any) -> ConstIntBound:
        """Return an interval that holds every value of the expression."""
        found = self._native.const_int_bound(as_expr(expr))
        if any(kind == "bound" and _is_open(fact) for kind, _, fact in self._facts):
            found = self._without_overflow(as_expr(expr))
        return ConstIntBound(_end_of(found.min_value), _end_of(found.max_value))

    def _without_overflow(self, expr: Any) -> Any:
        """Return the interval of an expression. A variable that was bound to an unbounded range may exceed the range of
        its type."""
        wide: dict[Any, Any] = {}
        analyzer = native.Analyzer()
        made = _promoted(expr, wide)
        for var, stand_in in wide.items():
            stated = [fact for kind, subject, fact in self._facts if kind == "bound" and subject.same_as(var)]
            ends = stated[-1] if stated else self._of_type(var)
            if ends.min_value > ConstIntBound.NEG_INF:
                analyzer.assume(stand_in >= _core.const(ends.min_value, "int64"))
            if ends.max_value < ConstIntBound.POS_INF:
                analyzer.assume(stand_in <= _core.const(ends.max_value, "int64"))
        return analyzer.const_int_bound(made)

    def _of_type(self, var: Any) -> ConstIntBound:
        """Return the bounds of a variable without declared ones: those of its data type."""
        found = self._native.const_int_bound(var)
        return ConstIntBound(_end_of(found.min_value), _end_of(found.max_value))

    def const_int_bound_is_bound(self, var: Any) -> bool:
        """Return whether a range of the variable has been stated."""
        return any(known.same_as(var) for known in self._bounds)

    def modular_set(self, expr: Any) -> ModularSet:
        """Return a residue class that holds every value of the expression."""
        found = self._native.modular_set(as_expr(expr))
        return ModularSet(found.coeff, found.base)

    def simplify(self, expr: Any, steps: int = 2) -> Any:
        """Return an equal expression in a simpler form; Tilewright's form is reached in one step."""
        return self._native.simplify(as_expr(expr))

    def rewrite_simplify(self, expr: Any) -> Any:
        """Return an equal expression in Tilewright's one simple form."""
        return self.simplify(expr)

    def canonical_simplify(self, expr: Any) -> Any:
        """Return an equal expression in Tilewright's one simple form."""
        return self.simplify(expr)

    def int_set(self, expr: Any, dom_map: Mapping[Any, Any] | None = None) -> IntervalSet:
        """Return the set of values of the expression while the variables of dom_map run over their sets."""
        return _from_native(self._native.int_set(as_expr(expr), _domains(dom_map)))

    def can_prove(self, expr: Any, strength: ProofStrength = ProofStrength.DEFAULT) -> bool:
        """Return whether the condition is proved."""
        return self._native.can_prove(as_expr(expr))

    def can_prove_equal(self, lhs: Any, rhs: Any) -> bool:
        """Return whether the two values are proved equal."""
        return self._native.can_prove_equal(as_expr(lhs), as_expr(rhs))

    def try_compare(self, lhs: Any, rhs: Any, propagate_inequalities: bool = True) -> CompareResult:
        """Return how two values compare, as far as that is proved; proofs use all conditions that hold."""
        left, right = as_expr(lhs), as_expr(rhs)
        possible = CompareResult.UNKNOWN.value
        conditions = {
            CompareResult.EQ: _core.NE(left, right),
            CompareResult.LT: _core.GE(left, right),
            CompareResult.GT: _core.LE(left, right),
        }
        for bit, never in conditions.items():
            if self.can_prove(never):
                possible &= ~bit.value
        return CompareResult(possible)

    def _check_stated(self, kind: str, var: Any, fact: Any) -> None:
        """Refuse another fact of a kind about a variable.

        Raises:
            tilewright.ArgumentError: what was stated before differs.
        """
        for known, subject, stated in self._facts:
            if known == kind and subject.same_as(var) and not _same_fact(stated, fact):
                raise ArgumentError.of(
                    "arith/stated",
                    f"'{var.name}' was stated to be {stated}, and is now stated to be {fact}",
                    "pass allow_override=True to bind(), or override=True to update()",
                )

    def bind(self, var: Any, expr: Any, allow_override: bool = False) -> None:
        """Bind the variable to a Range, or to an expression that it stands for.

        Raises:
            tilewright.ArgumentError: it is bound to something else, and `allow_override` is not set.
        """
        value = expr if isinstance(expr, _core.Range) else as_expr(expr)
        if not allow_override:
            self._check_stated("bind", var, value)
        self._bounds.append(var)
        self._facts.append(("bind", var, value))
        self._learn("bind", var, value)

    @contextmanager
    def constraint_scope(self, constraint: Any) -> Iterator[None]:
        """Assume the condition inside a ``with`` statement."""
        scope = self._native.constraint_scope(as_expr(constraint))
        self._scopes.append(as_expr(constraint))
        before = self._native
        scope.__enter__()
        try:
            yield
        finally:
            self._scopes.pop()
            scope.__exit__(None, None, None)
            if self._native is not before:
                self._start_again()

    def update(self, var: Any, info: Any, override: bool = False) -> None:
        """State an interval or a residue class of a variable; with `override`, replace the earlier one.

        Raises:
            tilewright.ArgumentError: another one was stated before, and `override` is not set.
        """
        if not isinstance(info, ConstIntBound | ModularSet):
            raise TypeError(f"a variable is given a ConstIntBound or a ModularSet, not a {type(info).__name__}")
        kind = "bound" if isinstance(info, ConstIntBound) else "class"
        if not override:
            self._check_stated(kind, var, info)
        self._bounds.append(var)
        known = [fact for fact in self._facts if not (override and fact[0] == kind and fact[1].same_as(var))]
        replaced = len(known) != len(self._facts)
        self._facts = [*known, (kind, var, info)]
        if replaced:
            self._start_again()
        else:
            self._learn(kind, var, info)


# ---- regions


def union_lower_bound(sets: Sequence[IntervalSet]) -> IntervalSet:
    """Return an interval that is proved to be contained in the union of the sets."""
    analyzer, found = Analyzer(), None
    for each in sets:
        if each.is_nothing():
            continue
        if found is None:
            found = each
        elif _reaches(analyzer, each, found) and _reaches(analyzer, found, each):
            found = IntervalSet(_least(found.min_value, each.min_value), _largest(found.max_value, each.max_value))
    return IntervalSet(_POS_INF, _NEG_INF) if found is None else found


def _reaches(analyzer: Analyzer, lower: IntervalSet, upper: IntervalSet) -> bool:
    """Return whether one interval begins at most one number behind the end of the other one."""
    begin, end = lower.min_value, upper.max_value
    return begin is _NEG_INF or end is _POS_INF or analyzer.can_prove(begin <= end + 1)


def _least(a: Any, b: Any) -> Any:
    return _NEG_INF if a is _NEG_INF or b is _NEG_INF else native.Analyzer().simplify(_core.Min(a, b))


def _largest(a: Any, b: Any) -> Any:
    return _POS_INF if a is _POS_INF or b is _POS_INF else native.Analyzer().simplify(_core.Max(a, b))


def _boxes(found: Any) -> list[IntervalSet] | None:
    return None if found is None else [_from_native(part) for part in found]


def _condition(predicate: Any) -> Any:
    return None if predicate is None or predicate is True else as_expr(predicate)


def estimate_region_lower_bound(region: Any, var_dom: Mapping[Any, Any], predicate: Any = True) -> Any:
    """Return the region that is certainly covered while the variables run over their ranges; None if it is unknown."""
    return _boxes(native.region_lower_bound(list(region), dict(var_dom), _condition(predicate)))


def estimate_region_strict_bound(region: Any, var_dom: Mapping[Any, Any], predicate: Any = True) -> Any:
    """Return the exact region that the accesses cover; None if that is not a box, or unknown."""
    return estimate_region_lower_bound(region, var_dom, predicate)


def estimate_region_upper_bound(region: Any, var_dom: Mapping[Any, Any], predicate: Any = True) -> Any:
    """Return a box that contains the covered region."""
    return _boxes(native.region_upper_bound(list(region), dict(var_dom), _condition(predicate)))


# ---- equations and bounds


def _uses(expr: Any, variables: Sequence[Any]) -> bool:
    return any(node.same_as(var) for node in nodes_of(expr, _core.Var) for var in variables)


def _linear(expr: Any, var: Any) -> tuple[Any, Any] | None:
    """Return (c, rest) with expr = c * var + rest, where neither mentions the variable; None if there is no such
    form."""
    zero = _core.const(0, expr.dtype)
    if not _uses(expr, [var]):
        return zero, expr
    match expr:
        case _core.Var():
            return _core.const(1, expr.dtype), zero
        case _core.Add(a, b) | _core.Sub(a, b):
            x, y = _linear(a, var), _linear(b, var)
            if x is None or y is None:
                return None
            if isinstance(expr, _core.Add):
                return x[0] + y[0], x[1] + y[1]
            return x[0] - y[0], x[1] - y[1]
        case _core.Mul(a, b):
            x, y = _linear(a, var), _linear(b, var)
            if x is None or y is None or (_uses(a, [var]) and _uses(b, [var])):
                return None
            return (x[0] * b, x[1] * b) if _uses(a, [var]) else (y[0] * a, y[1] * a)
    return None


def detect_linear_equation(expr: Any, var_list: Sequence[Any]) -> list[Any]:
    """Return the coefficients of the variables and the constant term; empty if the expression is not linear in them."""
    analyzer, rest, result = native.Analyzer(), as_expr(expr), []
    for index, var in enumerate(var_list):
        parts = _linear(rest, var)
        if parts is None or _uses(parts[0], list(var_list)[index + 1 :]):
            return []
        result.append(analyzer.simplify(parts[0]))
        rest = parts[1]
    return [*result, analyzer.simplify(rest)]


def conjuncts(expr: Any) -> list[Any]:
    """Return the operands of a conjunction."""
    if isinstance(expr, _core.And):
        return [*conjuncts(expr.a), *conjuncts(expr.b)]
    return [expr]


_LESS = {_core.LT: (0, 1, 1), _core.LE: (0, 1, 0), _core.GT: (1, 0, 1), _core.GE: (1, 0, 0)}


def _at_least_zero(comparison: Any) -> list[Any] | None:
    """Return expressions that are all nonnegative if and only if the comparison holds; None for other conditions."""
    if isinstance(comparison, _core.EQ):
        return [comparison.a - comparison.b, comparison.b - comparison.a]
    row = _LESS.get(type(comparison))
    if row is None:
        return None
    sides = (comparison.a, comparison.b)
    return [sides[row[1]] - sides[row[0]] - row[2]]


def detect_clip_bound(expr: Any, var_list: Sequence[Any]) -> list[Any]:
    """Return [min, max] of each variable, from a conjunction of comparisons; None for an end without a bound.

    Empty where a part of it is no bound of exactly one variable.
    """
    analyzer = native.Analyzer()
    bounds: list[list[Any]] = [[None, None] for _ in var_list]
    for part in conjuncts(as_expr(expr)):
        slacks = _at_least_zero(part)
        if slacks is None:
            return []
        for slack in slacks:
            parts = detect_linear_equation(slack, var_list)
            used = [i for i, c in enumerate(parts[:-1]) if not analyzer.can_prove_equal(c, _core.const(0, c.dtype))]
            if len(used) != 1:
                return []
            c, at = parts[used[0]], bounds[used[0]]
            if analyzer.can_prove_equal(c, _core.const(1, c.dtype)):
                low = analyzer.simplify(-parts[-1])
                at[0] = low if at[0] is None else analyzer.simplify(_core.Max(at[0], low))
            elif analyzer.can_prove_equal(c, _core.const(-1, c.dtype)):
                at[1] = parts[-1] if at[1] is None else analyzer.simplify(_core.Min(at[1], parts[-1]))
            else:
                return []
    return [end for ends in bounds for end in ends]


def deduce_bound(var: Any, cond: Any, hint_map: Mapping[Any, Any], relax_map: Mapping[Any, Any]) -> IntervalSet:
    """Return the values of the variable for which the comparison holds for all values of the variables of relax_map.

    Nothing, where that is not known.
    """
    nothing = IntervalSet(_POS_INF, _NEG_INF)
    analyzer = native.Analyzer()
    for known, domain in hint_map.items():
        low, high = domain.min_value, domain.max_value
        if not known.same_as(var) and low is not _NEG_INF and high is not _POS_INF:
            analyzer.bind(known, _core.Range(low, high - low + 1))
    slacks = _at_least_zero(as_expr(cond))
    if slacks is None:
        return nothing
    low, high = _NEG_INF, _POS_INF
    relaxed = _domains(relax_map)
    for slack in slacks:
        found = _isolate(var, analyzer.simplify(slack), _core.const(0, slack.dtype), True, analyzer)
        if found is None:
            return nothing
        limit, upper = found
        reach = analyzer.int_set(limit, relaxed)
        end: Any = reach.min_value if upper else reach.max_value
        if end is None:
            return nothing
        end = analyzer.simplify(end)
        if upper:
            high = end
        else:
            low = end
    if isinstance(as_expr(cond), _core.EQ) and not analyzer.can_prove_equal(low, high):
        return nothing
    return IntervalSet(low, high)


def _isolate(var: Any, expr: Any, limit: Any, above: bool, analyzer: Any) -> tuple[Any, bool] | None:
    """Solve expr >= limit (<= limit unless `above`) for the variable: return its bound, and whether that is the upper
    one."""
    parts = _linear(expr, var)
    if parts is not None:
        c, rest = analyzer.simplify(parts[0]), analyzer.simplify(limit - parts[1])
        positive = analyzer.can_prove(c > 0)
        if not positive and not analyzer.can_prove(c < 0):
            return None
        if not positive:
            c, rest, above = analyzer.simplify(-c), analyzer.simplify(-rest), not above
        end = _core.ceildiv(rest, c) if above else _core.floordiv(rest, c)
        return analyzer.simplify(end), not above
    match expr:
        case _core.Add(a, b):
            inner, other = (a, b) if _uses(a, [var]) else (b, a)
            return None if _uses(other, [var]) else _isolate(var, inner, limit - other, above, analyzer)
        case _core.Sub(a, b) if not _uses(b, [var]):
            return _isolate(var, a, limit + b, above, analyzer)
        case _core.Sub(a, b) if not _uses(a, [var]):
            return _isolate(var, b, a - limit, not above, analyzer)
        case _core.Mul(a, b) if not _uses(b, [var]) and analyzer.can_prove(b > 0):
            end = _core.ceildiv(limit, b) if above else _core.floordiv(limit, b)
            return _isolate(var, a, end, above, analyzer)
        case _core.FloorDiv(a, b) if not _uses(b, [var]) and analyzer.can_prove(b > 0):
            return _isolate(var, a, limit * b if above else limit * b + b - 1, above, analyzer)
    return None


# ---- common subexpressions


def _parts(expr: Any, root: Any) -> list[Any]:
    """Return the largest computations inside of an expression: values without effects that are no vectors of others."""
    found: list[Any] = []

    def look(node: Any) -> bool:
        if not isinstance(node, _core.Expr) or node.same_as(root) or isinstance(node, _core.Ramp | _core.Broadcast):
            return True
        leaf = isinstance(node, _core.Var | _core.IntImm | _core.FloatImm | _core.StringImm)
        if leaf or nodes_of(node, _core.BufferLoad) or _core.has_effect(node):
            return True
        found.append(node)
        return False

    _core.pre_order_visit(expr, look)
    return found


def _size(expr: Any) -> int:
    nodes: list[Any] = []
    _core.post_order_visit(expr, lambda node: nodes.append(node) if isinstance(node, _core.Expr) else None)
    return len(nodes)


def detect_common_subexpr(expr: Any, threshold: int) -> dict[Any, int]:
    """Return the subexpressions that occur at least `threshold` times, with their number; subexpressions that occur
    only inside another one of these do not count."""
    if threshold < 0:
        raise ValueError(f"a threshold of {threshold} occurrences")
    analyzer = native.Analyzer()
    counts: dict[str, int] = {}
    first: dict[str, Any] = {}

    def add(parts: list[Any], count: int) -> None:
        for part in parts:
            key = _core.structural_hash(analyzer.simplify(part))
            counts[key] = counts.get(key, 0) + count
            first.setdefault(key, part)

    add(_parts(expr, None), 1)
    left = set(counts)
    while left:
        key = max(left, key=lambda each: _size(first[each]))
        left.remove(key)
        if counts[key] < threshold:
            before = set(counts)
            add(_parts(first[key], first[key]), counts[key])
            left |= set(counts) - before
    return {first[key]: count for key, count in counts.items() if count >= threshold}


# ---- iteration maps


IterMapExpr = IterSplitExpr | IterSumExpr


def _level(name: str | None) -> Any:
    """Return the level with a name, in any case; None means no check."""
    levels = {
        "bijective": IterMapLevel.Bijective,
        "surjective": IterMapLevel.Surjective,
        "nocheck": IterMapLevel.NoCheck,
    }
    if (name or "nocheck").lower() not in levels:
        raise ValueError(f"Unknown check level {name}")
    return levels[(name or "nocheck").lower()]


def _checked(level: Any) -> Any:
    return _level(level) if level is None or isinstance(level, str) else level


def detect_iter_map(
    indices: Any,
    input_iters: Mapping[Any, Any],
    predicate: Any = True,
    check_level: Any = IterMapLevel.Surjective,
    simplify_trivial_iterators: bool = True,
) -> Any:
    """Read indices as splits and fusions of the input iterators."""
    return native.detect_iter_map(
        [as_expr(index) for index in indices],
        dict(input_iters),
        _condition(predicate),
        _checked(check_level),
        simplify_trivial_iterators=simplify_trivial_iterators,
    )


def normalize_to_iter_sum(index: Any, input_iters: Mapping[Any, Any]) -> Any:
    """Return the index as a sum of splits of the input iterators and a base."""
    found = native.detect_iter_map([as_expr(index)], dict(input_iters), None, "nocheck")
    if found.errors:
        raise ValueError("; ".join(found.errors))
    return found.indices[0]


def iter_map_simplify(
    indices: Any,
    input_iters: Mapping[Any, Any],
    predicate: Any = True,
    check_level: Any = IterMapLevel.Surjective,
    simplify_trivial_iterators: bool = True,
) -> list[Any]:
    """Simplify indices through their map, where there is one."""
    return native.iter_map_simplify(
        [as_expr(index) for index in indices], dict(input_iters), _condition(predicate), _checked(check_level)
    )


def inverse_affine_iter_map(iter_map: Any, outputs: Any) -> dict[Any, Any]:
    """Express the input variables of a bijective map by the values of its indices."""
    return native.inverse_affine_iter_map(list(iter_map), [as_expr(output) for output in outputs])


@dataclass(eq=False)
class DividedIter:
    """One side of a divided index: an expression that runs over [0, extent)."""

    source: Any
    extent: Any


def subspace_divide(
    bindings: Any,
    input_iters: Mapping[Any, Any],
    sub_iters: Any,
    predicate: Any = True,
    check_level: Any = IterMapLevel.Surjective,
    simplify_trivial_iterators: bool = True,
) -> list[list[DividedIter]]:
    """Return [outer, inner] of each index, and last the two predicates, as extents; empty if they do not divide."""
    found = native.subspace_divide(
        [as_expr(index) for index in bindings],
        dict(input_iters),
        list(sub_iters),
        _condition(predicate),
        _checked(check_level),
    )
    if found is None:
        return []
    result = [[DividedIter(d.outer, d.outer_extent), DividedIter(d.inner, d.inner_extent)] for d in found.indices]
    none = _core.const(0)
    return [*result, [DividedIter(none, found.outer_predicate), DividedIter(none, found.inner_predicate)]]
