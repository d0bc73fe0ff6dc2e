"""Values that hold themselves, functions that call themselves, and expressions that double with each step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.script import from_source
from tilewright.script import tir as T


@T.prim_func
def copy(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    for i in range(8):
        with T.block("b"):
            v = T.axis.spatial(8, i)
            B[v] = A[v]


def endless_list() -> Any:
    value: list[Any] = []
    value.append(value)
    return value


def endless_dict() -> Any:
    value: dict[str, Any] = {}
    value["a"] = value
    return value


def deep_list() -> Any:
    value: Any = 1
    for _ in range(100_000):
        value = [value]
    return value


def split(value: Any) -> object:
    schedule = tw.Schedule(copy)
    return schedule.split(schedule.get_loops("b")[0], factors=value)


TAKERS: dict[str, Callable[[Any], object]] = {
    "annotate": lambda value: tw.Schedule(copy).annotate("b", "key", value),
    "split": split,
    "with_attr": lambda value: copy.with_attr("key", value),
    "target": lambda value: tw.Target({"kind": "llvm", "host": value}),
    "trace": lambda value: tw.Trace.from_json([value, []]),
    "script": lambda value: from_source(
        "@T.prim_func\ndef f(A: T.Buffer((8,))):\n    T.func_attr({'key': value})\n    A[0] = T.float32(1)\n",
        extra_vars={"value": value},
    ),
}


@pytest.mark.parametrize("make", [endless_list, endless_dict, deep_list])
@pytest.mark.parametrize("taker", TAKERS)
def test_values_without_end_are_refused(taker: str, make: Callable[[], Any]) -> None:
    with pytest.raises((tw.Error, TypeError), match=r"without end|JSON|nested|takes|key"):
        TAKERS[taker](make())


def test_values_of_some_depth_are_taken() -> None:
    value: Any = 1
    for _ in range(20):
        value = {"of": [value]}
    schedule = tw.Schedule(copy)
    schedule.annotate("b", "key", value)
    again = tw.Schedule(copy)
    tw.Trace.from_json(schedule.trace.as_json()).apply_to_schedule(again)
    assert tw.ir.structural_equal(again.mod, schedule.mod)


def test_kernels_do_not_call_themselves() -> None:
    module = from_source("""
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def there(A: T.handle("int32")):
        Module.back(A)
    @T.prim_func(private=True)
    def back(A: T.handle("int32")):
        Module.there(A)
    @T.prim_func
    def main(A: T.Buffer((4,), "int32")):
        Module.there(A.data)
""")
    with pytest.raises(tw.ScriptError, match="calls itself") as caught:
        tw.compile(module)
    assert caught.value.code == "codegen/recursion"


def chain(length: int) -> tw.ir.PrimFunc:
    source = '@T.prim_func\ndef f(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):\n'
    source += "".join(f'    t{k} = T.alloc_buffer((8,), "int32")\n' for k in range(length))
    for k in range(length + 1):
        read, written = "A" if k == 0 else f"t{k - 1}", "B" if k == length else f"t{k}"
        source += f'    for i in range(8):\n        with T.block("{written}"):\n            v = T.axis.spatial(8, i)\n'
        source += f"            {written}[v] = {read}[v] * {read}[7 - v]\n"
    return from_source(source)


def test_inlining_that_doubles_each_time_ends() -> None:
    schedule = tw.Schedule(chain(30))
    with pytest.raises(tw.ScheduleError, match="more than 131072 operations") as caught:
        for k in range(30):
            schedule.compute_inline(f"t{k}")
    assert caught.value.code == "schedule/too-large"
    before = schedule.mod.script()
    assert "t29" in before and '"t3"' not in before


def test_a_chain_that_reads_twice_by_rules() -> None:
    kernel = tw.compile(chain(30))
    np.testing.assert_array_equal(kernel(np.full(8, -1, "int32")), np.full(8, 1, "int32"))


def doubled(x: Any) -> Any:
    for _ in range(40):
        x = x + x * x
    return x


def test_expressions_that_share_their_parts() -> None:
    with pytest.raises(tw.ScriptError) as caught:
        from_source(
            "@T.prim_func\ndef f(A: T.Buffer((8,), 'int32'), B: T.Buffer((8,), 'int32')):\n"
            "    for i in range(8):\n        with T.block('b'):\n            v = T.axis.spatial(8, i)\n"
            "            B[v] = doubled(A[v])\n",
            extra_vars={"doubled": doubled},
        )
    assert caught.value.code == "ir/too-large"
    a = te.placeholder((8,), "int32", name="A")
    with pytest.raises(tw.Error, match="more than 131072 operations"):
        te.create_prim_func([a, te.compute((8,), lambda i: doubled(a[i]), name="B")])


def test_indices_that_share_their_parts() -> None:
    def index(v: Any) -> Any:
        for _ in range(30):
            v = (v + v) % 7
        return v

    with pytest.raises(tw.ScriptError) as caught:
        from_source(
            "@T.prim_func\ndef f(A: T.Buffer((8,), 'int32'), B: T.Buffer((8,), 'int32')):\n"
            "    for i in range(8):\n        with T.block('b'):\n            v = T.axis.spatial(8, i)\n"
            "            B[v] = A[index(v)]\n",
            extra_vars={"index": index},
        )
    assert caught.value.code == "ir/too-large"
