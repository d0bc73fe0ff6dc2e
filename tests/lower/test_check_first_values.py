"""Updates of memory that nothing has written are refused; what has a value on any way is not."""

from __future__ import annotations

import pytest

import tilewright as tw
from tilewright import ir
from tilewright.script import from_source

HEAD = """@T.prim_func
def main(X: T.Buffer((4, 8)), Y: T.Buffer((4,))):
    acc = T.alloc_buffer((4,))
"""
SUM = """    for i, k in T.grid(4, 8):
        with T.block("acc"):
            vi, vk = T.axis.remap("SR", [i, k])
            {body}
"""
TAIL = """    for i in range(4):
        with T.block("Y"):
            vi = T.axis.spatial(4, i)
            Y[vi] = acc[vi]
"""


def program(body: str, before: str = "") -> ir.PrimFunc:
    return from_source(HEAD + before + SUM.format(body=body) + TAIL)


@pytest.mark.parametrize("schedule", ["by rules", "as written"])
@pytest.mark.parametrize(
    "body",
    [
        "acc[vi] = acc[vi] + X[vi, vk]",
        "acc[vi] = T.max(X[vi, vk], acc[vi])",
        "acc[vi] = X[vi, vk] * 2.0 + T.exp(acc[vi])",
    ],
)
def test_nothing_has_written_it(body: str, schedule: str) -> None:
    with pytest.raises(tw.Error, match="'acc' is updated here, and nothing has written it before") as error:
        tw.compile(program(body), schedule=schedule)
    assert error.value.code == "lower/no-first-value" and "with T.init()" in str(error.value)


ZEROS = """    for i in range(4):
        with T.block("zero"):
            vi = T.axis.spatial(4, i)
            acc[vi] = T.float32(0)
"""
ADDRESS = """    with T.block("fill"):
        T.reads()
        T.writes(acc[0:4])
        T.evaluate(T.call_extern("int32", "fill", T.address_of(acc[0]), 4))
"""


@pytest.mark.parametrize(
    ("body", "before"),
    [
        ("acc[vi] = acc[vi] + X[vi, vk]", ZEROS),
        ("acc[vi] = T.if_then_else(vk == 0, X[vi, vk], acc[vi] + X[vi, vk])", ""),
        ("acc[vi] = T.Select(vk == 0, X[vi, vk], acc[vi] + X[vi, vk])", ""),
        ("acc[vi] = T.Cast('float32', vk == 0 or acc[vi] > X[vi, vk])", ""),
        ("acc[vi] = T.Cast('float32', vk > 0 and acc[vi] > X[vi, vk])", ""),
        ("with T.init():\n                acc[vi] = T.float32(0)\n            acc[vi] = acc[vi] + X[vi, vk]", ""),
        ("if vk == 0:\n                acc[vi] = T.float32(0)\n            acc[vi] = acc[vi] + X[vi, vk]", ""),
    ],
)
def test_it_has_a_value(body: str, before: str) -> None:
    tw.compile(program(body.replace("\\\n", "\n"), before), schedule="as written")


def test_others_may_have_its_address() -> None:
    tw.lower(program("acc[vi] = acc[vi] + X[vi, vk]", ADDRESS))


def test_what_callers_pass_has_a_value() -> None:
    text = (
        program("acc[vi] = acc[vi] + X[vi, vk]")
        .script()
        .replace('Y: T.Buffer((4,), "float32")', 'acc: T.Buffer((4,), "float32"), Y: T.Buffer((4,), "float32")')
    )
    tw.compile(from_source(text.replace("    acc = T.alloc_buffer((4,))\n", "")), schedule="as written")
