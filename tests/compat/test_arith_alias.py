"""tvm.arith: each answer against evaluation, or against what its definition says.."""

import itertools

import pytest
import tvm
from tvm import arith, tir


def var(name):
    return tir.Var(name, "int32")


def value_at(expr, env):
    """The number that an expression is where the variables are."""
    analyzer = arith.Analyzer()
    for name, value in env.items():
        analyzer.bind(name, tir.const(value, "int32"))
    found = analyzer.simplify(expr)
    assert isinstance(found, tir.IntImm), found
    return found.value


def test_facts_are_told_and_replaced():
    x, analyzer = var("x"), arith.Analyzer()
    assert not analyzer.const_int_bound_is_bound(x)
    analyzer.update(x, arith.ConstIntBound(-10, 4))
    assert (analyzer.const_int_bound(x + 1).min_value, analyzer.const_int_bound(x + 1).max_value) == (-9, 5)
    analyzer.update(x, arith.ConstIntBound(10, 40), override=True)
    assert (analyzer.const_int_bound(x).min_value, analyzer.const_int_bound(x).max_value) == (10, 40)
    analyzer.update(x, arith.ModularSet(4, 3))
    found = analyzer.modular_set(x * 2 + 1)
    assert (found.coeff, found.base) == (8, 7)
    assert analyzer.const_int_bound_is_bound(x)
    with pytest.raises(TypeError, match="ConstIntBound or a ModularSet"):
        analyzer.update(x, 3)


def test_open_ends_are_numbers():
    n = tir.Var("n", "int64")
    bound = arith.Analyzer().const_int_bound(n)
    assert (bound.min_value, bound.max_value) == (arith.ConstIntBound.NEG_INF, arith.ConstIntBound.POS_INF)


def test_scopes_of_constraints():
    x, analyzer = var("x"), arith.Analyzer()
    with analyzer.constraint_scope(x > 5):
        analyzer.update(x, arith.ConstIntBound(0, 100))
        analyzer.update(x, arith.ConstIntBound(0, 50), override=True)
        assert analyzer.can_prove(x >= 6)
        assert analyzer.const_int_bound(x).max_value == 50
    assert not analyzer.can_prove(x >= 6)
    assert analyzer.can_prove(x >= 0, arith.ProofStrength.SYMBOLIC_BOUND)


def test_one_simple_form():
    x, y, analyzer = var("x"), var("y"), arith.Analyzer()
    analyzer.bind(y, tvm.ir.Range(0, 4))
    for simplify in (analyzer.simplify, analyzer.rewrite_simplify, analyzer.canonical_simplify):
        assert tvm.ir.structural_equal(simplify((x * 4 + y) // 4), x)
    assert analyzer.can_prove_equal(tir.floormod(x * 4 + y, 4), y)


def test_interval_sets():
    x, n = var("x"), var("n")
    analyzer = arith.Analyzer()
    found = analyzer.int_set(x * 2 + n, {x: arith.IntervalSet(0, 7)})
    assert analyzer.can_prove_equal(found.min_value, n)
    assert analyzer.can_prove_equal(found.max_value, n + 14)
    half = analyzer.int_set(x + 1, {x: arith.IntervalSet(0, arith.pos_inf())})
    assert half.max_value is arith.pos_inf()
    assert not half.is_everything()
    assert analyzer.int_set(x, {x: arith.IntervalSet(arith.neg_inf(), arith.pos_inf())}).is_everything()
    assert arith.IntervalSet(arith.pos_inf(), arith.neg_inf()).is_nothing()
    lanes = arith.IntSet.vector(tir.Ramp(n, 2, 4))
    assert analyzer.can_prove_equal(lanes.max_value, n + 6)
    assert arith.IntSet.single_point(n).max_value.same_as(n)


def test_regions():
    i, j = var("i"), var("j")
    region = [tvm.ir.Range.from_min_extent(i * 4, 4), tvm.ir.Range.from_min_extent(j, 1)]
    domains = {i: tvm.ir.Range(0, 3), j: tvm.ir.Range(2, 5)}
    for estimate in (
        arith.estimate_region_lower_bound,
        arith.estimate_region_strict_bound,
        arith.estimate_region_upper_bound,
    ):
        rows, columns = estimate(region, domains, predicate=True)
        assert (rows.min_value.value, rows.max_value.value) == (0, 11)
        assert (columns.min_value.value, columns.max_value.value) == (2, 4)
    gaps = [tvm.ir.Range.from_min_extent(i * 4, 3)]
    assert arith.estimate_region_lower_bound(gaps, domains, True) is None
    assert arith.estimate_region_upper_bound(gaps, domains, True)[0].max_value.value == 10


def test_linear_equations():
    x, y, n = var("x"), var("y"), var("n")
    analyzer = arith.Analyzer()
    found = arith.detect_linear_equation((x * 3 - y) * n + 7, [x, y])
    assert len(found) == 3
    for got, expected in zip(found, (n * 3, n * -1, 7), strict=True):
        assert analyzer.can_prove_equal(got, expected)
    assert arith.detect_linear_equation(x * y, [x, y]) == []
    assert arith.detect_linear_equation(x * x, [x]) == []
    assert analyzer.can_prove_equal(arith.detect_linear_equation(n + 1, [])[0], n + 1)


def test_clip_bounds():
    x, y, n = var("x"), var("y"), var("n")
    analyzer = arith.Analyzer()
    low, high = arith.detect_clip_bound(tir.all(x * 1 < n, x >= 3, x > 0), [x])
    assert analyzer.can_prove_equal(low, 3)
    assert analyzer.can_prove_equal(high, n - 1)
    assert arith.detect_clip_bound(x < 4, [x, y])[2:] == [None, None]
    assert arith.detect_clip_bound(x * 2 < n, [x]) == []
    assert arith.detect_clip_bound(x + y < n, [x, y]) == []
    assert arith.detect_clip_bound(tir.any(x < 1, x > 4), [x]) == []


X, A = var("x"), var("a")
BOUNDS = [
    X * 4 + A < 30,
    X * -3 + A <= 10,
    tir.floordiv(X + A, 4) > 2,
    A - X * 2 >= -7,
    (X - A) * 5 < 33,
    X * 2 == 6,
    tir.floordiv(X, 3) * 2 <= A,
]


@pytest.mark.parametrize("index", range(len(BOUNDS)))
def test_bounds_hold_whatever_the_others_are(index):
    condition = BOUNDS[index]
    relaxed = {A: arith.IntervalSet(-2, 3)}
    found = arith.deduce_bound(X, condition, relaxed, relaxed)
    assert not found.is_nothing()
    low = -100 if found.min_value is arith.neg_inf() else value_at(found.min_value, {})
    high = 100 if found.max_value is arith.pos_inf() else value_at(found.max_value, {})
    for x in range(-40, 41):
        always = all(value_at(condition, {X: x, A: a}) for a in range(-2, 4))
        assert always == (low <= x <= high), x


def test_bounds_that_cannot_be_deduced():
    n = var("n")
    assert arith.deduce_bound(X, X * n < 4, {}, {}).is_nothing()  # the sign of n
    assert arith.deduce_bound(X, X * X < 4, {}, {}).is_nothing()
    assert arith.deduce_bound(X, tir.any(X < 4, X > 7), {}, {}).is_nothing()
    assert arith.deduce_bound(X, X * 2 == 5, {}, {}).is_nothing()
    assert arith.deduce_bound(X, X < A, {}, {A: arith.IntervalSet(arith.neg_inf(), 3)}).is_nothing()


def test_iteration_maps():
    i, j = var("i"), var("j")
    domains = {i: tvm.ir.Range(0, 4), j: tvm.ir.Range(0, 8)}
    found = arith.detect_iter_map([i * 8 + j], domains, True, "bijective")
    assert not found.errors
    digits = found.indices[0].args
    assert [digit.scale.value for digit in digits] == [8, 1]
    assert [digit.source.extent.value for digit in digits] == [4, 8]
    total = arith.normalize_to_iter_sum(i * 8 + j * 2 + 5, domains)
    assert total.base.value == 5
    assert sorted(split.scale.value for split in total.args) == [2, 8]
    with pytest.raises(ValueError, match="sum of splits"):
        arith.normalize_to_iter_sum(i * j, domains)
    inverse = arith.inverse_affine_iter_map(found.indices, [var("v")])
    assert set(inverse) == {i, j}
    once = {i: tvm.ir.Range(0, 1)}
    assert not arith.detect_iter_map([i], once).indices[0].args
    kept = arith.detect_iter_map([i], once, simplify_trivial_iterators=False)
    assert len(kept.indices[0].args) == 1
    assert tvm.ir.structural_equal(arith.iter_map_simplify([tir.floordiv(i * 8 + j, 8)], domains)[0], i)


def test_nodes_of_iteration_maps():
    i = var("i")
    mark = arith.IterMark(i, 12)
    split = arith.IterSplitExpr(mark, 3, 4, 2)
    found = arith.normalize_iter_map_to_expr(arith.IterSumExpr([split], 7))
    for value in range(12):
        assert value_at(found, {i: value}) == value // 3 % 4 * 2 + 7
    assert mark.source.same_as(i)


def test_divided_subspaces():
    i, j = var("i"), var("j")
    domains = {i: tvm.ir.Range(0, 4), j: tvm.ir.Range(0, 8)}
    divided, predicates = arith.subspace_divide([i * 8 + j + 3], domains, [j], i * 8 + j < 30)
    outer, inner = divided
    assert (outer.extent.value, inner.extent.value) == (4, 8)
    for a, b in itertools.product(range(4), range(8)):
        env = {i: a, j: b}
        assert value_at(outer.source, env) * 8 + value_at(inner.source, env) == a * 8 + b + 3
        assert bool(value_at(predicates[1].extent, env)) == (a * 8 + b < 30)
    assert arith.subspace_divide([j * 4 + i], domains, [j]) == []


def test_ends_that_were_told_to_be_open_are_so():
    """A variable with an open end has no largest value of its type, nor has what is computed from it."""
    bound, x, y = arith.ConstIntBound, var("x"), var("y")
    inf = bound.POS_INF
    cases = [
        (x + y, (0, inf), (1, 10), (1, inf)),
        (x - y, (0, inf), (1, 10), (-10, inf)),
        (x * y, (bound.NEG_INF, 4), (-2, 10), (bound.NEG_INF, inf)),
        (tir.floormod(x, y), (bound.NEG_INF, inf), (4, 10), (0, 9)),
        (tir.max(x, y), (bound.NEG_INF, 11), (4, 10), (4, 11)),
        (tir.Select(y < 5, x, y), (3, inf), (4, 10), (3, inf)),
        (y + 1, (3, inf), (4, 10), (5, 11)),
    ]
    for expr, of_x, of_y, want in cases:
        analyzer = arith.Analyzer()
        analyzer.update(x, bound(*of_x))
        analyzer.update(y, bound(*of_y))
        found = analyzer.const_int_bound(expr)
        assert (found.min_value, found.max_value) == want, expr
    assert arith.Analyzer().const_int_bound(x).max_value == 2**31 - 1


def test_another_fact_about_a_variable_replaces_the_first_one_only_when_that_is_said():
    x = var("x")
    analyzer = arith.Analyzer()
    analyzer.bind(x, tvm.ir.Range(0, 4))
    analyzer.bind(x, tvm.ir.Range(0, 4))
    with pytest.raises(tvm.TVMError, match="'x' was stated to be") as raised:
        analyzer.bind(x, tvm.ir.Range(0, 100))
    assert raised.value.code == "arith/stated"
    assert analyzer.const_int_bound(x).max_value == 3
    analyzer.bind(x, tvm.ir.Range(0, 100), allow_override=True)
    assert analyzer.const_int_bound(x).max_value == 99
    analyzer = arith.Analyzer()
    analyzer.update(x, arith.ConstIntBound(0, 3))
    with pytest.raises(tvm.TVMError, match="ConstIntBound"):
        analyzer.update(x, arith.ConstIntBound(0, 10))
    analyzer.update(x, arith.ConstIntBound(0, 10), override=True)
    assert analyzer.const_int_bound(x).max_value == 10


def test_unions_hold_only_what_one_of_the_sets_holds():
    intervals = [(low, high) for low in range(4) for high in range(low, 4)]
    for sets in itertools.product(intervals, repeat=3):
        found = arith.union_lower_bound([arith.IntervalSet(*ends) for ends in sets])
        members = set(range(found.min_value, found.max_value + 1))
        assert members <= {n for low, high in sets for n in range(low, high + 1)}
        assert set(range(sets[0][0], sets[0][1] + 1)) <= members
    x = var("x")
    found = arith.union_lower_bound([arith.IntervalSet(arith.neg_inf(), 2), arith.IntervalSet(1, x)])
    assert str(found) == "IntervalSet[neg_inf, T.max(x, 2)]"
    assert arith.union_lower_bound([]).is_nothing()


def test_levels_of_maps_by_name():
    x = var("x")
    loops = {x: tvm.ir.Range(0, 16)}
    (split,) = arith.detect_iter_map([x // 4], loops, check_level=None).indices
    assert isinstance(split, arith.IterMapExpr)
    assert arith.detect_iter_map([x // 4], loops, check_level="Bijective").errors
    with pytest.raises(ValueError, match="Unknown check level half"):
        arith.detect_iter_map([x], loops, check_level="half")


def test_computations_that_occur_several_times():
    x, y, z = var("x"), var("y"), var("z")

    def found(expr, threshold):
        return {str(part): count for part, count in arith.detect_common_subexpr(expr, threshold).items()}

    assert found((x + y) * (x + y) + z, 2) == {"x + y": 2}
    thrice = (x + y) * z + (x + y) * z + (y + x)
    assert found(thrice, 2) == {"(x + y) * z": 2}
    assert found(thrice, 3) == {"y + x": 3}
    assert found(thrice, 1) == {str(thrice): 1} and found(x, 1) == {}
    buffer = tir.decl_buffer((4,), "int32")
    assert found(buffer[x] + buffer[x] + (x + 1) * (x + 1), 2) == {"x + 1": 2}
    with pytest.raises(ValueError, match="threshold of -1"):
        arith.detect_common_subexpr(x, -1)
