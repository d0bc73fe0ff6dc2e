"""Comparisons keep the order in which they are written, also where Python would ask the other side."""

import pytest

from tilewright import ir
from tilewright.script import tir as T
from tilewright.testing import check_same

# ruff: noqa: SIM300


@T.prim_func
def compared(A: T.Buffer((8,), "int32"), x: T.float32):
    for i in range(8):
        A[i] = T.Select(2 <= i and i < 7 and 5 > i and 1 >= i, 1, 0)
        A[i] = T.Select(1 == i or 3 != i or 0.5 <= x, 1, 0)


def test_operators():
    kinds = []
    ir.post_order_visit(compared, lambda node: kinds.append(type(node)))
    for kind, count in {ir.LE: 2, ir.LT: 1, ir.GT: 1, ir.GE: 1, ir.EQ: 1, ir.NE: 1}.items():
        assert kinds.count(kind) == count, kind


@pytest.mark.parametrize("text", ["2 <= i and i < 7 and 5 > i and 1 >= i", "1 == i or 3 != i or T.float32(0.5) <= x"])
def test_text(text):
    assert text in compared.script()


def test_text_is_read_back():
    from tilewright.script import from_source

    check_same(from_source(compared.script()), compared)
