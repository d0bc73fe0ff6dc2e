"""Views of arrays on devices and of shared memory: strides, empty views, copies that overlap, freeing, read-only.

NumPy's arrays are the oracle: whatever it does to views of its own, arrays on devices do or refuse.
"""

from __future__ import annotations

import ctypes
import random
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from samples import seeds
from tilewright.script import tir as T

DEVICES = ["cpu", "opencl:0"]


@pytest.fixture(params=DEVICES)
def device(request: Any) -> tw.Device:
    found = tw.device(request.param)
    if not found.exist:
        pytest.skip("no device of OpenCL")
    return found


def refusal(call: Any) -> tw.ArgumentError:
    with pytest.raises(tw.ArgumentError) as raised:
        call()
    return raised.value


def random_index(draw: random.Random, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Integers and slices that NumPy takes, among them such that leave nothing."""
    parts: list[Any] = []
    for extent in shape[: draw.randint(0, len(shape))]:
        if extent and draw.random() < 0.2:
            parts.append(draw.randint(-extent, extent - 1))
        else:
            first, last = sorted(draw.randint(0, extent) for _ in range(2))
            parts.append(slice(first, last, draw.choice([1, 1, 2, 3])))
    return tuple(parts)


def test_random_views_are_those_of_numpy(device):
    """Of views of views, shared by DLPack on the way, all elements; a copy to a part changes it alone."""
    for seed in seeds(0, 150):
        draw = random.Random(seed)
        shape = tuple(draw.randint(0, 7) for _ in range(draw.randint(1, 3)))
        right = np.arange(np.prod(shape), dtype=draw.choice(["int8", "int32", "float64"])).reshape(shape)
        whole = x = device.array(right)
        right = part = right.copy()
        for _ in range(draw.randint(1, 4)):
            if draw.random() < 0.3:
                x = device.from_dlpack(x)
            index = random_index(draw, part.shape)
            x, part = x[index], part[(*index, ...)]
        np.testing.assert_array_equal(x.numpy(), part, err_msg=f"seed {seed}")
        assert x.shape == part.shape
        if x.is_compact:
            x.copyfrom(np.full(part.shape, 99))
            part[...] = 99
        np.testing.assert_array_equal(whole.numpy(), right, err_msg=f"seed {seed}")


def test_random_strides_of_shared_memory():
    """Negative steps, transposed axes and broadcasts, as NumPy and other libraries export them."""
    cpu = tw.device("cpu")
    for seed in seeds(0, 100):
        draw = random.Random(seed)
        right = np.arange(120, dtype="int32").reshape(draw.choice([(120,), (8, 15), (4, 5, 6)]))
        steps = [slice(None, None, draw.choice([-3, -2, -1, 1, 2])) for _ in right.shape]
        view = right[tuple(steps)].transpose(draw.sample(range(right.ndim), right.ndim))
        if draw.random() < 0.3:
            view = np.broadcast_to(view, (2, *view.shape))
        shared = cpu.from_dlpack(view)
        np.testing.assert_array_equal(shared.numpy(), view, err_msg=f"seed {seed}")
        index = random_index(draw, view.shape)
        np.testing.assert_array_equal(shared[index].numpy(), view[index], err_msg=f"seed {seed}")
        np.testing.assert_array_equal(np.from_dlpack(shared), view)


def test_random_copies_that_overlap(device):
    """As of NumPy, a copy reads everything before it writes."""
    for seed in seeds(0, 60):
        draw = random.Random(seed)
        right = np.arange(draw.choice([1, 8, 5000]), dtype="int32")
        x = device.array(right)
        count = draw.randint(0, right.size)
        source, target = (draw.randint(0, right.size - count) for _ in range(2))
        x[target : target + count].copyfrom(x[source : source + count])
        right[target : target + count] = right[source : source + count].copy()
        np.testing.assert_array_equal(x.numpy(), right, err_msg=f"seed {seed}")
        np.testing.assert_array_equal(x.copyfrom(x).numpy(), right)


def test_empty_views_have_no_elements(device):
    for view in (device.zeros((0, 6))[0:0, 3:5:2], device.array(np.arange(8))[8:], device.zeros((3, 0))[:, ::2]):
        assert view.size == 0 and view.numpy().shape == view.shape
        assert view.copyfrom(np.zeros(view.shape)).numpy().size == 0


@pytest.mark.parametrize("shape", [(2**33, 2**33), (2**62,), (2**31, 2**31, 2**31), (0, 2**40, 2**40)])
def test_a_shape_whose_bytes_cannot_be_counted_is_refused(device, shape):
    for make in (device.empty, device.zeros):
        error = refusal(lambda make=make: make(shape, "float32"))
        assert error.code == "device/shape" and "2**63 - 1" in str(error)


@pytest.mark.parametrize("shape", [(1, 3, 10), (5, 4, -1), (2**61, 2, 0), (3, 2**62, 1), (9, 0, -40), (8, 1, 4)])
def test_a_view_of_other_memory_is_refused(device, shape):
    """Shape, stride and offset, of an array of 8 elements of 4 bytes, which no index reaches."""
    extent, stride, offset = shape
    x = device.array(np.arange(8, dtype="int32"))
    assert refusal(lambda: type(x)(x, [extent], [stride], offset * 4)).code == "device/shape"


class Strange:
    """An object that exports float32 by DLPack 1.0 with a shape and strides which NumPy has no array of."""

    class Tensor(ctypes.Structure):
        _fields_ = [
            *[("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p)],
            *[("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("data", ctypes.c_void_p)],
            *[("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32)],
            *[("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)],
            *[("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p), ("byte_offset", ctypes.c_uint64)],
        ]

    def __init__(self, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
        self._element = ctypes.c_float(7)
        self._lists = [(ctypes.c_int64 * len(each))(*each) for each in (shape, strides)]
        data, *lists = (ctypes.addressof(each) for each in (self._element, *self._lists))
        self._tensor = self.Tensor(1, 0, None, None, 0, data, 1, 0, len(shape), 2, 32, 1, *lists, 0)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __dlpack__(self, **options: Any) -> Any:
        make = ctypes.pythonapi.PyCapsule_New
        make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return make(ctypes.addressof(self._tensor), b"dltensor_versioned", None)


def test_shared_memory_that_no_address_reaches_is_refused():
    cpu = tw.device("cpu")
    shared = Strange((2, 3), (0, 0))  # its capsule does not keep it alive
    np.testing.assert_array_equal(cpu.from_dlpack(shared).numpy(), np.full((2, 3), 7))
    for shape, strides in (((2**33, 2**33), (0, 0)), ((4, 4), (2**62, 1)), ((2, 2), (2**60, 2**60)), ((-1, 4), (4, 1))):
        assert refusal(lambda s=shape, t=strides: cpu.from_dlpack(Strange(s, t))).code == "device/shape"


@pytest.mark.parametrize("shape", ["12", (2.5,), 2.0, ("3",), None])
def test_shapes_are_integers(device, shape):
    error = refusal(lambda: device.empty(shape))
    assert error.code == "device/shape" and repr(shape) in str(error)


@pytest.mark.parametrize("index", [True, False, np.True_, (0, True), None, 1.0])
def test_other_indices_are_refused(device, index):
    """NumPy makes another dimension of a truth value."""
    with pytest.raises(IndexError, match="integers and slices"):
        device.zeros((3, 4, 5))[index]


def test_freed_memory_is_kept_for_other_libraries():
    """Arrays that share it are refused, by DLPack too; what NumPy shares stays valid."""
    cpu = tw.device("cpu")
    for seed in seeds(0, 30):
        draw = random.Random(seed)
        right = np.arange(1 << draw.choice([4, 18]), dtype="int32")
        x = cpu.array(right)
        shared, view = np.from_dlpack(x), draw.choice([x, x[2:], cpu.from_dlpack(x)])
        same = cpu.from_dlpack(view)
        x.free()
        others = [cpu.zeros(right.shape, "int32") for _ in range(4)]  # would take the memory over
        np.testing.assert_array_equal(shared, right)
        for array in (x, view, same):
            assert array.is_freed and refusal(array.numpy).code == "device/freed"
        del shared, others


def test_freeing_an_array_that_dlpack_shares(device):
    x = device.array(np.arange(12, dtype="int32"))
    same = device.from_dlpack(x)
    x.free()
    assert same.is_freed and "freed" in repr(same)
    for call in (same.numpy, lambda: same[:2], lambda: device.from_dlpack(x), lambda: same.copyto(device)):
        assert refusal(call).code == "device/freed"


@T.prim_func
def doubled(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
    for i in range(4):
        B[i] = A[i] * 2


def test_read_only_memory_is_not_written():
    """Not by a copy, a kernel, or a library that gets it from here."""
    cpu, right = tw.device("cpu"), np.arange(4, dtype="int32")
    right.flags.writeable = False
    x, y = cpu.from_dlpack(right), cpu.zeros(4, "int32")
    for target in (x, x[1:3], cpu.from_dlpack(x)):
        error = refusal(lambda target=target: target.copyfrom(np.full(target.shape, 7)))
        assert error.code == "device/read-only"
        assert refusal(lambda target=target: target.copyfrom(y[: target.size])).code == "device/read-only"
    kernel = tw.compile(doubled)
    kernel(x, y)
    assert refusal(lambda: kernel(y, x)).code == "call/read-only"
    assert not np.from_dlpack(x).flags.writeable
    with pytest.raises(BufferError, match="read-only"):
        x.__dlpack__()
    np.testing.assert_array_equal(right, [0, 1, 2, 3])
    np.testing.assert_array_equal(y.numpy(), [0, 2, 4, 6])
    assert (x.copyto(cpu).copyfrom(y).numpy() == y.numpy()).all()
