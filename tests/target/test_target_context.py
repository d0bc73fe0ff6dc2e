"""A target in a ``with`` says what to write instead; the one of the alias is a context."""

from __future__ import annotations

import pytest

import tilewright as tw
import tilewright.compat.tvm
from tilewright.support.user_lines import place_of


@pytest.mark.parametrize("text", ["native", "llvm -mcpu=skylake-avx512", "cuda"])
def test_a_target_is_no_context(text: str) -> None:
    begun = False
    with pytest.raises(TypeError, match=r"a target is not a context") as caught, tw.Target(text):
        begun = True
    assert not begun and caught.value.code == "target/context"  # type: ignore[attr-defined]
    assert isinstance(caught.value, tw.ArgumentError) and "hint: pass it: tw.compile(program, target=" in str(
        caught.value
    )
    assert "tw.Target(text)" in place_of(caught.value)


def test_that_of_the_alias_is_one() -> None:
    target = tilewright.compat.tvm.target.Target("llvm -num-cores=2")
    with target:
        assert tilewright.compat.tvm.target.Target.current() is target
    assert tilewright.compat.tvm.target.Target.current() is None
