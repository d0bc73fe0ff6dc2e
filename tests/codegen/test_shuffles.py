"""Shuffles of a warp: what each lane gets, in the interpreter and after every pass; the instructions of CUDA."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw
from codegen.test_cuda import compiled
from samples import seeds
from tilewright import _core
from tilewright.script import from_source

ALL = "T.uint32(0xFFFFFFFF)"
WAYS = ("tvm_warp_shuffle", "tvm_warp_shuffle_up", "tvm_warp_shuffle_down")


def program(body: str, x: int = 64, y: int = 1, dtype: str = "float32") -> Any:
    """Threads of one block; `lin` is the index of a thread among them."""
    return from_source(f"""
@T.prim_func
def main(A: T.Buffer(({x * y},), "{dtype}"), L: T.Buffer(({x * y},), "int32"), R: T.Buffer(({x * y},), "{dtype}")):
    for bx in T.thread_binding(1, thread="blockIdx.x"):
        for ty in T.thread_binding({y}, thread="threadIdx.y"):
            for tx in T.thread_binding({x}, thread="threadIdx.x"):
                {body.replace("lin", f"(ty * {x} + tx)")}
""")


def interpreted(given: Any, *arrays: np.ndarray) -> np.ndarray:
    """Return what is in the last array, which is the same after every pass."""
    module = _core.as_module(given)
    results = [each.copy() for each in arrays]
    _core.interpret(module, "main", *results)
    for name, after in _core.lower_stages(module, "cuda"):
        found = [each.copy() for each in arrays]
        _core.interpret(after, "main", *found)
        np.testing.assert_array_equal(found[-1], results[-1], err_msg=f"{name}\n{after.script()}")
    return results[-1]


def shuffled(way: str, values: np.ndarray, arguments: np.ndarray, width: int) -> np.ndarray:
    """What PTX says of shfl.sync.idx, .up and .down."""
    result = values.copy()
    for thread in range(len(values)):
        first = thread - thread % width
        source = {
            "tvm_warp_shuffle": first + arguments[thread] % width,
            "tvm_warp_shuffle_up": thread - arguments[thread],
            "tvm_warp_shuffle_down": thread + arguments[thread],
        }[way]
        if first <= source < first + width:
            result[thread] = values[source]
    return result


@pytest.mark.parametrize("way", WAYS)
def test_lanes_get_what_the_instruction_says(way):
    """Distinct values, arguments that differ from lane to lane, every width, blocks whose rows are parts of warps."""
    for seed in seeds(0, 8):
        draw = np.random.default_rng(seed)
        x, y = [(64, 1), (8, 8), (16, 2), (48, 2), (32, 3)][seed % 5]
        width = int(2 ** draw.integers(0, 6))
        dtype = ["float32", "int32", "float64", "int64", "float16", "int8", "uint16"][seed % 7]
        values = draw.permutation(x * y).astype(dtype)
        arguments = draw.integers(0, 33, x * y).astype("int32")
        given = program(f"R[lin] = T.{way}({ALL}, A[lin], L[lin], {width}, 32)", x, y, dtype)
        found = interpreted(given, values, arguments, np.zeros(x * y, dtype))
        np.testing.assert_array_equal(found, shuffled(way, values, arguments, width), err_msg=f"{x} {y} {width}")


def test_lanes_that_the_mask_names_take_part():
    """Those of another branch do not wait; T.tvm_warp_activemask() names the lanes of a branch."""
    values, arguments = np.arange(64, dtype="int32") * 3, np.ones(64, "int32")
    half = program(
        f"""if tx % 32 < 16:
                    R[lin] = T.{WAYS[2]}(T.uint32(0xFFFF), A[lin], L[lin], 16, 32)
                else:
                    R[lin] = -1""",
        dtype="int32",
    )
    expected = np.where(np.arange(64) % 32 < 16, shuffled(WAYS[2], values, arguments, 16), -1)
    np.testing.assert_array_equal(interpreted(half, values, arguments, np.zeros(64, "int32")), expected)
    active = program(
        """if tx % 2 == 0:
                    R[lin] = T.reinterpret("int32", T.tvm_warp_activemask())
                else:
                    R[lin] = 0""",
        dtype="int32",
    )
    expected = np.where(np.arange(64) % 2 == 0, 0x55555555, 0)
    np.testing.assert_array_equal(interpreted(active, values, arguments, np.zeros(64, "int32")), expected)
    few = program(f"R[lin] = T.{WAYS[2]}({ALL}, A[lin], L[lin], 8, 32)", 8, dtype="int32")
    expected = shuffled(WAYS[2], values[:8], arguments[:8], 8)
    np.testing.assert_array_equal(interpreted(few, values[:8], arguments[:8], np.zeros(8, "int32")), expected)


IF = "if {}:\n                    R[lin] = T.{}({}, A[lin], {}, 32, 32)"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        # The other lanes wait behind it.
        (
            IF.format("tx % 2 == 0", WAYS[0], ALL, 0) + "\n                T.evaluate(T.tvm_storage_sync('shared'))",
            "interpret/warp",
        ),
        (f"R[lin] = T.{WAYS[0]}(T.uint32(0xFFFF), A[lin], 0, 32, 32)", "interpret/warp-mask"),
        (IF.format("tx % 32 < 16", WAYS[0], "T.uint32(0xFFFF)", 20), "interpret/warp-lane"),
        (f"R[lin] = T.{WAYS[0]}({ALL}, A[lin], 0, 24, 32)", "interpret/unsupported"),
        (f"R[lin] = T.{WAYS[0]}({ALL}, A[lin], 0, 32, 64)", "interpret/unsupported"),
    ],
)
def test_lanes_that_cannot_exchange_are_errors(body, code):
    arrays = [np.zeros(64, "float32"), np.zeros(64, "int32"), np.zeros(64, "float32")]
    with pytest.raises(tw.Error) as raised:
        _core.interpret(_core.as_module(program(body)), "main", *arrays)
    assert raised.value.code == code, raised.value
    if code == "interpret/unsupported":
        with pytest.raises(tw.ScriptError) as raised:
            tw.compile(program(body), target="cuda")
        assert raised.value.code == "codegen/not-on-device"


@pytest.mark.parametrize(
    "dtype", ["float32", "int32", "float64", "int64", "uint64", "float16", "bfloat16", "int8", "bool"]
)
def test_cuda_has_shuffles(dtype):
    body = "\n                ".join(
        f"R[lin] = T.{way}(T.tvm_warp_activemask(), A[lin], L[lin], 16, 32)" for way in WAYS
    )
    text = compiled(program(body, dtype=dtype)).inspect("ptx")
    for way in ("idx", "up", "down"):
        assert f"shfl.sync.{way}.b32" in text, text
    assert "activemask" in text or "vote" in text, text


def test_opencl_has_no_lanes():
    for body in (
        f"R[lin] = T.{WAYS[0]}({ALL}, A[lin], 0, 32, 32)",
        "R[lin] = T.cast(T.tvm_warp_activemask(), 'float32')",
    ):
        with pytest.raises(tw.ScriptError) as raised:
            tw.compile(program(body), target="opencl")
        assert raised.value.code == "codegen/not-on-device" and "tvm_warp" in str(raised.value)
