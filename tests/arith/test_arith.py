"""tilewright.arith: facts, simplification and iteration maps, on drawn expressions against evaluation."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilewright as tw
from tilewright import arith, ir
from tilewright.script import tir as T

EXTENTS = {"i": 16, "j": 4, "k": 7}
VARS = {name: ir.Var(name, "int32") for name in EXTENTS}


def analyzer_of_loops():
    analyzer = arith.Analyzer()
    for name, var in VARS.items():
        analyzer.bind(var, ir.Range(0, EXTENTS[name]))
    return analyzer


# A number is drawn as (expression of the IR, the same as a Python function of the values of i, j, k).
leaves = st.one_of(
    st.sampled_from(sorted(VARS)).map(lambda name: (VARS[name], lambda env, name=name: env[name])),
    st.integers(-9, 40).map(lambda value: (ir.IntImm("int32", value), lambda env, value=value: value)),
)
divisors = st.sampled_from([1, 2, 3, 4, 8, 12, 16])


def grow(children):
    def binary(pair, build, compute):
        (a, f), (b, g) = pair
        return build(a, b), lambda env: compute(f(env), g(env))

    def by_constant(pair, build, compute):
        (a, f), c = pair
        return build(a, c), lambda env: compute(f(env), c)

    pairs = st.tuples(children, children)
    constants = st.tuples(children, divisors)
    return st.one_of(
        pairs.map(lambda p: binary(p, lambda a, b: a + b, lambda a, b: a + b)),
        pairs.map(lambda p: binary(p, lambda a, b: a - b, lambda a, b: a - b)),
        pairs.map(lambda p: binary(p, ir.Min, min)),
        pairs.map(lambda p: binary(p, ir.Max, max)),
        constants.map(lambda p: by_constant(p, lambda a, c: a * c, lambda a, c: a * c)),
        constants.map(lambda p: by_constant(p, lambda a, c: a // c, lambda a, c: a // c)),
        constants.map(lambda p: by_constant(p, lambda a, c: a % c, lambda a, c: a % c)),
    )


numbers = st.recursive(leaves, grow, max_leaves=10)
points = st.fixed_dictionaries({name: st.integers(0, extent - 1) for name, extent in EXTENTS.items()})


def value_of(expr, env):
    """The constant that an expression becomes at a point."""
    analyzer = arith.Analyzer()
    for name, var in VARS.items():
        analyzer.bind(var, ir.IntImm("int32", env[name]))
    result = analyzer.simplify(expr)
    assert isinstance(result, ir.IntImm)
    return int(result)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(numbers, st.lists(points, min_size=1, max_size=8))
def test_simplify_keeps_values_and_facts_hold(number, envs):
    expr, compute = number
    analyzer = analyzer_of_loops()
    simple = analyzer.simplify(expr)
    bound, residues = analyzer.const_int_bound(expr), analyzer.modular_set(expr)
    assert analyzer.can_prove_equal(expr, simple)
    for env in envs:
        expected = compute(env)
        assert value_of(expr, env) == expected
        assert value_of(simple, env) == expected
        assert bound.min_value <= expected <= bound.max_value and expected in bound
        if residues.coeff == 0:
            assert expected == residues.base
        else:
            assert (expected - residues.base) % residues.coeff == 0


@settings(max_examples=200, deadline=None, derandomize=True)
@given(numbers, numbers, st.lists(points, min_size=1, max_size=12))
def test_what_is_proved_holds(left, right, envs):
    analyzer = analyzer_of_loops()
    proved = analyzer.can_prove(left[0] < right[0])
    refuted = analyzer.can_prove(left[0] >= right[0])
    assert not (proved and refuted)
    for env in envs:
        holds = left[1](env) < right[1](env)
        assert holds or not proved
        assert not holds or not refuted


@settings(max_examples=100, deadline=None, derandomize=True)
@given(numbers, points)
def test_sets_hold_every_value(number, env):
    expr, compute = number
    result = arith.Analyzer().int_set(expr, {var: ir.Range(0, EXTENTS[name]) for name, var in VARS.items()})
    for end, sign in ((result.min_value, 1), (result.max_value, -1)):
        if end is not None:
            assert sign * value_of(end, env) <= sign * compute(env)


def test_facts_of_an_expression():
    analyzer = analyzer_of_loops()
    i, j = VARS["i"], VARS["j"]
    assert repr(analyzer.const_int_bound(i * 4 + j)) == "ConstIntBound[0, 63]"
    assert repr(analyzer.modular_set(i * 4 + 1)) == "ModularSet(coeff=4, base=1)"
    assert analyzer.simplify((i * 4 + j) // 4).same_as(i)
    wide = ir.Var("wide", "int64")
    assert analyzer.const_int_bound(wide).max_value == math.inf
    assert analyzer.can_prove_less(i, 16) and analyzer.can_prove_greater_equal(j, 0)


def test_a_constraint_holds_inside_its_scope():
    n, analyzer = ir.Var("n", "int32"), arith.Analyzer()
    with analyzer.constraint_scope(n > 3):
        assert analyzer.can_prove(n >= 4)
        with analyzer.constraint_scope(n < 5):
            assert int(analyzer.simplify(n)) == 4
    assert not analyzer.can_prove(n >= 4)
    analyzer.assume(n % 8 == 0)
    assert int(analyzer.simplify(n % 4)) == 0


def test_an_exception_ends_a_scope():
    n, analyzer = ir.Var("n", "int32"), arith.Analyzer()
    with pytest.raises(ZeroDivisionError), analyzer.constraint_scope(n > 3):
        raise ZeroDivisionError
    assert not analyzer.can_prove(n > 3)


def test_iteration_maps():
    i, j = VARS["i"], VARS["j"]
    inputs = {i: ir.Range(0, 16), j: ir.Range(0, 4)}
    result = arith.detect_iter_map([(i * 4 + j) // 8, (i * 4 + j) % 8], inputs, check_level="bijective")
    assert not result.errors
    outer, inner = ir.Var("outer", "int32"), ir.Var("inner", "int32")
    inverse = arith.inverse_affine_iter_map(result.indices, [outer, inner])
    assert set(inverse) == {i, j}
    for a in range(8):
        for b in range(8):
            at = arith.Analyzer()
            at.bind(outer, ir.IntImm("int32", a))
            at.bind(inner, ir.IntImm("int32", b))
            assert int(at.simplify(inverse[i])) * 4 + int(at.simplify(inverse[j])) == a * 8 + b
    (split,) = arith.detect_iter_map([i // 4], inputs).indices[0].args
    assert split.source.var.same_as(i) and int(split.lower_factor) == 4 and int(split.extent) == 4
    assert arith.normalize_iter_map_to_expr(arith.detect_iter_map([i * 4 + j], inputs).indices[0]) is not None
    refused = arith.detect_iter_map([i, i], inputs)
    assert refused.indices == [] and "used twice" in refused.errors[0]


def test_maps_under_a_predicate():
    i, j = VARS["i"], VARS["j"]
    inputs = {i: ir.Range(0, 4), j: ir.Range(0, 32)}
    fused = i * 32 + j
    assert not arith.detect_iter_map([fused], inputs, fused < 100, "bijective").errors
    assert arith.detect_iter_map([i, j], inputs, fused < 100).errors
    division = arith.subspace_divide([i, j], inputs, [j], j < 30)
    assert division is not None
    assert division.indices[0].outer.same_as(i) and int(division.indices[1].inner_extent) == 30
    assert int(division.outer_predicate) == 1
    across = arith.subspace_divide([i, j], inputs, [j], fused < 100)
    assert across is not None
    assert ir.structural_equal(across.inner_predicate, fused < 100, map_free_vars=True)
    assert arith.subspace_divide([fused], inputs, [i]) is None
    (simple,) = arith.iter_map_simplify([fused // 8 * 8 + fused % 8], inputs)
    assert arith.Analyzer().can_prove_equal(simple, fused)


def test_wrong_arguments():
    i, analyzer = VARS["i"], arith.Analyzer()
    with pytest.raises(TypeError):
        analyzer.simplify(None)
    with pytest.raises(TypeError):
        analyzer.bind(None, ir.Range(0, 4))
    with pytest.raises(tw.ArgumentError, match="arguments/types"):
        arith.detect_iter_map([None], {i: ir.Range(0, 4)})
    with pytest.raises(tw.ArgumentError, match="arith/none"):
        arith.detect_iter_map([i], {i: None})
    with pytest.raises(tw.ArgumentError, match="arith/outputs"):
        arith.inverse_affine_iter_map(arith.detect_iter_map([i], {i: ir.Range(0, 4)}).indices, [])
    with pytest.raises(tw.ArgumentError, match="check_level"):
        arith.detect_iter_map([i], {i: ir.Range(0, 4)}, check_level="sideways")
    with pytest.raises(TypeError):
        analyzer.int_set(i, {i: 4})
    with pytest.raises(TypeError):
        analyzer.bind(i, ir.Evaluate(0))


def test_what_takes_the_place_of_a_variable_has_its_type():
    analyzer, wide = arith.Analyzer(), ir.Var("wide", "int64")
    analyzer.bind(wide, ir.Range(0, 1))
    assert analyzer.simplify(wide + wide).dtype == "int64"
    assert analyzer.simplify(ir.Ramp(wide, ir.const(2, "int64"), 4)).dtype == "int64x4"


def test_what_a_select_loads_has_its_place_whatever_the_condition_says():
    """Both values are computed, and an index that is simpler under the condition may lie outside without it."""
    i, analyzer = VARS["i"], arith.Analyzer()
    analyzer.bind(i, ir.Range(0, 5))
    loaded = tw.te.placeholder((2,), "int32", name="A")[i % 2]
    assert "i % 2" in str(analyzer.simplify(T.Select(i <= 2, 0, loaded)))
    assert "i % 2" not in str(analyzer.simplify(T.if_then_else(i <= 2, 0, loaded)))


def test_bounds_of_what_was_uint64():
    x = ir.Var("x", "uint64")
    analyzer = arith.Analyzer()
    assert analyzer.const_int_bound(T.Cast("int64", x)).min_value == -math.inf
    assert analyzer.const_int_bound(T.clz(x)).min_value == 0
    analyzer.bind(x, ir.Range(T.uint64(0), T.uint64(9)))
    assert analyzer.const_int_bound(T.Cast("int64", x)).max_value == 8
    assert analyzer.const_int_bound(T.clz(x)).min_value == 60


def test_an_open_end_is_on_its_own_side():
    """The largest number of int64 stands for an end that is not known; as a lower end it would stay one if divided."""
    analyzer = arith.Analyzer()
    n = ir.Var("n", "int64")
    analyzer.bind(n, ir.Range(T.int64(1), T.int64(9)))
    bound = analyzer.const_int_bound(T.max_value("int64") // n)
    assert bound.min_value <= (2**63 - 1) // 9 and bound.max_value >= 2**63 - 1
    least = ir.Var("least", "int64")
    analyzer.bind(least, ir.Range(T.min_value("int64"), T.int64(2)))
    assert analyzer.const_int_bound(T.shift_right(least, T.int64(32))).max_value >= -(2**31)


def test_a_guard_stays_in_front_of_what_it_guards():
    n, m, x = (ir.Var(name, "int32") for name in ("n", "m", "x"))
    analyzer = arith.Analyzer()
    divides = T.EQ(T.FloorMod(x, n), 3)
    simplified = {
        T.Or(T.And(n > 0, divides), T.And(m > n, divides)): "(0 < n or n < m) and x % n == 3",
        T.And(T.Or(n <= 0, divides), T.Or(m > n, divides)): "n <= 0 and n < m or x % n == 3",
        T.Or(T.And(divides, n > 0), T.And(divides, m > n)): "x % n == 3 and (0 < n or n < m)",
    }
    for condition, text in simplified.items():
        assert str(analyzer.simplify(condition)) == text


def test_a_division_by_zero_stays_in_a_smaller_type():
    x = ir.Var("x", "int64")
    analyzer = arith.Analyzer()
    analyzer.bind(x, ir.Range(0, 10))
    for node in (T.FloorDiv, T.FloorMod, T.Div, T.Mod):
        assert "0)" in str(analyzer.simplify(T.Cast("int32", node(x, ir.const(0, "int64")))))


def test_digits_that_overlap_do_not_divide():
    i, j = VARS["i"], VARS["j"]
    inputs = {i: ir.Range(0, 4), j: ir.Range(0, 3)}
    for unchecked in (i + j, i * 5 + j):
        assert arith.subspace_divide([unchecked], inputs, [j], check_level="nocheck") is None
    (division,) = arith.subspace_divide([i * 3 + j], inputs, [j], check_level="nocheck").indices
    assert int(division.inner_extent) == 3


def test_constraint_scopes_end_in_the_opposite_order():
    n = ir.Var("n", "int32")
    analyzer = arith.Analyzer()
    outer, inner = analyzer.constraint_scope(n > 3), analyzer.constraint_scope(n < 5)
    outer.__enter__()
    inner.__enter__()
    with pytest.raises(tw.ArgumentError) as error:
        outer.__exit__(None, None, None)
    assert error.value.code == "arith/scope-order"
    assert analyzer.can_prove(n == 4)
    inner.__exit__(None, None, None)
    outer.__exit__(None, None, None)
    assert not analyzer.can_prove(n > 3)


def nested_iterators(levels):
    total = arith.IterSumExpr([arith.IterSplitExpr(arith.IterMark(ir.Var("i", "int32"), 16), 1, 16, 1)], 0)
    for _ in range(levels):
        total = arith.IterSumExpr([arith.IterSplitExpr(arith.IterMark(total, 16), 1, 16, 1)], 1)
    return total


def test_iterators_do_not_nest_without_end():
    """They are walked and destroyed by recursion: 200,000 levels ended the process."""
    assert str(arith.normalize_iter_map_to_expr(nested_iterators(999))) == "i + 999"
    with pytest.raises(tw.ArgumentError, match="nest deeper than 1000 levels") as caught:
        nested_iterators(200000)
    assert caught.value.code == "arith/too-deep"
