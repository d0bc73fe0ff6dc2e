"""The pass @name@: <what it does>."""

import tilewright as tw
from tilewright.script import tir as T


def test_the_example_of_the_contract():
    lowered = tw.lower(<program>, after="@name@")
    assert lowered.script() == <text>
