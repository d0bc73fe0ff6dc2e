"""AutoInline: which blocks go where."""

from __future__ import annotations

from typing import Any

import pytest

from tilewright import meta_schedule as ms
from tilewright import te

from .sketches import blocks, check, sketches


def _rule(**changes: Any) -> ms.AutoInline:
    options = {
        "into_producer": False,
        "into_consumer": True,
        "inline_const_tensor": True,
        "disallow_if_then_else": True,
        "require_injective": True,
        "require_ordered": True,
    }
    return ms.AutoInline(**{**options, **changes})


def _chain(element: Any, shape: tuple[int, ...] = (5, 5), attrs: Any = None) -> Any:
    """B = element(A), summed up by rows."""
    a = te.placeholder((5, 5), name="A")
    b = te.compute(shape, lambda i, j: element(a, i, j), name="B", attrs=attrs)
    k = te.reduce_axis((0, shape[1]), name="k")
    c = te.compute((shape[0],), lambda i: te.sum(b[i, k], axis=[k]), name="C")
    return te.create_prim_func([a, c], name="main")


def test_elementwise_functions_become_one_block() -> None:
    a = te.placeholder((5, 7), name="A")
    b = te.compute((5, 7), lambda i, j: te.exp(a[i, j]), name="B")
    c = te.compute((7, 5), lambda i, j: te.if_then_else(i < 3, b[j, i], 1.0), name="C")
    function = te.create_prim_func([a, c], name="main")
    (sch,) = sketches(function, _rule(disallow_op=["tir.exp"]))
    assert blocks(sch) == ["C"]
    check(function, [sch])


@pytest.mark.parametrize(
    ("element", "changes", "left"),
    [
        (lambda a, i, j: a[i, j] * 2.0, {}, ["C"]),
        (lambda a, i, j: a[i, j] * 2.0, {"into_consumer": False}, ["B", "C"]),
        (lambda a, i, j: te.exp(a[i, j]), {"disallow_op": ["tir.exp"]}, ["B", "C"]),
        (lambda a, i, j: te.exp(a[i, j]), {"disallow_op": ["tir.log"]}, ["C"]),
        (lambda a, i, j: te.if_then_else(i < 3, a[i, j], 0.0), {}, ["B", "C"]),
        (lambda a, i, j: te.if_then_else(i < 3, a[i, j], 0.0), {"disallow_if_then_else": False}, ["C"]),
        (lambda a, i, j: a[j, i], {}, ["B", "C"]),
        (lambda a, i, j: a[j, i], {"require_ordered": False}, ["C"]),
        (lambda a, i, j: a[i, i], {}, ["B", "C"]),
        (lambda a, i, j: a[i, i], {"require_injective": False}, ["C"]),
    ],
)
def test_conditions_in_functions_that_reduce(element: Any, changes: dict[str, Any], left: list[str]) -> None:
    function = _chain(element)
    (sch,) = sketches(function, _rule(**changes))
    assert blocks(sch) == left
    check(function, [sch])


def test_an_annotation_forbids_it() -> None:
    function = _chain(lambda a, i, j: a[i, j], attrs={"meta_schedule.inline_rule": "disable"})
    (sch,) = sketches(function, _rule())
    assert blocks(sch) == ["B", "C"]


def test_tensors_of_constants_go_into_their_readers_whatever_they_compute() -> None:
    a = te.placeholder((4, 4), name="A")
    table = te.compute(
        (4, 4), lambda i, j: te.if_then_else(i < j, te.const(1.0, "float32"), te.const(2.0, "float32")), name="table"
    )
    k = te.reduce_axis((0, 4), name="k")
    c = te.compute((4, 4), lambda i, j: te.sum(a[i, k] * table[k, j], axis=[k]), name="C")
    function = te.create_prim_func([a, c], name="main")
    (sch,) = sketches(function, _rule())
    assert blocks(sch) == ["C"]
    (sch,) = sketches(function, _rule(inline_const_tensor=False))
    assert blocks(sch) == ["table", "C"]


def test_into_the_producer_where_that_is_complete() -> None:
    a = te.placeholder((4, 4), name="A")
    k = te.reduce_axis((0, 4), name="k")
    c = te.compute((4,), lambda i: te.sum(a[i, k], axis=[k]), name="C")
    d = te.compute((4,), lambda i: c[i] * 2.0, name="D")
    e = te.compute((4,), lambda i: d[i] + 1.0, name="E")
    function = te.create_prim_func([a, e], name="main")
    rule = _rule(into_producer=True, into_consumer=False, disallow_if_then_else=False)
    (sch,) = sketches(function, rule)
    assert blocks(sch) == ["C", "D"]  # C reduces: D stays behind it, E went into D
    check(function, [sch])
