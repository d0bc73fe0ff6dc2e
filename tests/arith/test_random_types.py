"""Random expressions that mix types of all widths: what the analyzer says of them holds for what Python computes."""

from __future__ import annotations

import itertools

import pytest
from tests.samples import samples
from tests.typed_expressions import TYPES, Sampler, UndefinedValueError, value_of

from tilewright import _core, arith, ir


def check(seed: int) -> bool:
    sampler = Sampler(seed)
    ranges = sampler.ranges()
    variables = sampler.variables
    expression = sampler.expression(sampler.rng.choice([*TYPES, *["bool"] * 5]), sampler.rng.randint(2, 4))
    points = [
        dict(zip(variables, values, strict=True))
        for values in itertools.product(*(range(first, first + count) for first, count in ranges))
    ]
    try:
        wanted = [value_of(expression, point) for point in points]
    except UndefinedValueError:
        return False
    analyzer = arith.Analyzer()
    if sampler.rng.random() < 0.8:
        for variable, (first, count) in zip(variables, ranges, strict=True):
            ends = (_core.const(first, variable.dtype), _core.const(count, variable.dtype))
            analyzer.bind(variable, ir.Range(*ends))
    simple = analyzer.simplify(expression)
    bound, residues = analyzer.const_int_bound(expression), analyzer.modular_set(expression)
    for point, value in zip(points, wanted, strict=True):
        said = (seed, str(expression), str(simple), [(str(v), v.dtype, number) for v, number in point.items()], value)
        try:
            assert value_of(simple, point) == value, said
        except UndefinedValueError:
            # Sums may be taken in another order: then a part of one may leave its type, but nothing divides by 0.
            assert expression.dtype in ("int32", "int64", "bool") and "//" not in str(simple), said
        assert bound.min_value <= value <= bound.max_value, (bound, said)
        assert residues.coeff == 1 or (value - residues.base) % (residues.coeff or 2**70) == 0, (residues, said)
    assert not (str(expression.dtype) == "bool" and analyzer.can_prove(expression) and not all(wanted)), seed
    return True


@pytest.mark.parametrize("seed", range(samples(8)))
def test_values_bounds_and_residues_hold(seed: int) -> None:
    compared = sum(check(1000 * seed + number) for number in range(150))
    assert compared > 40
