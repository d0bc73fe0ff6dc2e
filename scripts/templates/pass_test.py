"""The pass @name@: <what it does>."""

import numpy as np
from tests.lower.passes import agrees, check, check_unchanged

from tilewright.script import tir as T


def test_the_example_of_the_contract():
    check(<program>, "@name@", <program after the pass>)


def test_the_results_are_those_of_numpy():
    agrees(<program>, "@name@", [<arrays before>], [<arrays after>])


def test_<where it has nothing to do>():
    check_unchanged(<program>, "@name@")
