"""Functions under names."""

from __future__ import annotations

import pytest

import tilewright as tw
from tilewright.meta_schedule import named_functions


def test_a_name_is_taken_once():
    named_functions.register("test.one", lambda: 1)
    try:
        assert named_functions.need("test.one")() == 1
        assert "test.one" in named_functions.names()
        with pytest.raises(tw.ArgumentError, match="already") as error:
            named_functions.register("test.one", lambda: 2)
        assert error.value.code == "functions/taken"
        named_functions.register("test.one", lambda: 3, override=True)
        assert named_functions.need("test.one")() == 3
    finally:
        named_functions.remove("test.one")
    assert named_functions.find("test.one") is None
    with pytest.raises(tw.ArgumentError, match="no function") as error:
        named_functions.need("test.one")
    assert error.value.code == "functions/unknown"


def test_as_a_decorator():
    @named_functions.register("test.two")
    def two() -> int:
        return 2

    try:
        assert named_functions.need("test.two") is two
    finally:
        named_functions.remove("test.two")


def test_a_shipped_function_keeps_its_name():
    def one() -> int:
        return 1

    shipped = {"test.three": one}
    assert named_functions.find("test.three") is None
    assert named_functions.need("test.three", shipped) is one
    with pytest.raises(tw.ArgumentError, match="already"):
        named_functions.register("test.three", lambda: 3, shipped=shipped)
