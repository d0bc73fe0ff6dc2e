"""Streams of CUDA: kernels run on that of their tensors' library, and DLPack orders what others do with arrays."""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any

import pytest
from tests.processes import in_process

import tilewright as tw
from codegen.test_cuda import export_for_a_simulated_driver
from tilewright.kernel.device import DeviceArray

#: Tensors of a library on a device whose memory is that of the processor: of one that tells its current stream, as
#: PyTorch does, and of one that only speaks DLPack.
TENSORS = """
import ctypes
import numpy as np
import tilewright as tw

kernel, device = tw.load("LIBRARY"), tw.device("cuda:0")
a = np.arange(64, dtype="float32")


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class Managed(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("tensor", DLTensor),
    ]


MANAGED = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(ctypes.POINTER(Managed)))
BORROW = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(DLTensor))
STREAM = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))


class Api(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("older", ctypes.c_void_p),
        ("allocate", ctypes.c_void_p), ("managed", MANAGED), ("object", ctypes.c_void_p), ("borrow", BORROW),
        ("stream", STREAM),
    ]


class Tensor:
    requires_grad = False

    def __init__(self, array):
        self.array, self.shape = array, (ctypes.c_int64 * 1)(array.size)
        self.tensor = DLTensor(array.ctypes.data, 2, 0, 1, 2, 32, 1, self.shape, None, 0)
        self.managed = Managed(1, 1, None, None, 0, self.tensor)

    def is_neg(self):
        return False


def borrow(tensor, out):
    ctypes.memmove(out, ctypes.byref(tensor.tensor), ctypes.sizeof(DLTensor))
    return 0


def managed(tensor, out):
    out[0] = ctypes.pointer(tensor.managed)
    return 0


current = 0


def current_stream(kind, number, out):
    assert (kind, number) == (2, 0)
    out[0] = current
    return 0


api = Api(1, 3, None, None, MANAGED(managed), None, BORROW(borrow), STREAM(current_stream))
new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
Tensor.__dlpack_c_exchange_api__ = new_capsule(ctypes.addressof(api), b"dlpack_exchange_api", None)


class Exporter:
    def __init__(self, array):
        self.array, self.streams = device.array(array), []

    def __dlpack_device__(self):
        return (2, 0)

    def __dlpack__(self, *, stream=None, max_version=None):
        self.streams.append(stream)
        return self.array.__dlpack__(stream=-1, max_version=max_version)
"""


def log_of(folder: Path, program: str) -> list[str]:
    """Return what the program calls on streams."""
    exported = export_for_a_simulated_driver(folder)
    log = folder / "log"
    text = TENSORS.replace("LIBRARY", exported) + program
    outcome = in_process(text, LD_LIBRARY_PATH=str(folder), TW_TEST_LOG=str(log))
    assert outcome.stdout.strip() == "done", outcome.stderr
    return log.read_text().splitlines() if log.exists() else []


def test_kernels_run_on_the_current_stream_of_the_library(tmp_path: Path) -> None:
    log = log_of(
        tmp_path,
        """
for current in (0, 4096, 8192):
    b = np.zeros(64, "float32")
    kernel(Tensor(a), Tensor(b), 3.0)
    assert (b == 3 * a).all()
print("done")
""",
    )
    assert log == ["launch 0", "launch 4096", "launch 8192"]


def test_arrays_of_a_device_come_from_the_default_stream_and_go_back(tmp_path: Path) -> None:
    log = log_of(
        tmp_path,
        """
x = device.array(a)
b = np.zeros(64, "float32")
current = 4096
kernel(x, Tensor(b), 2.0)
assert (b == 2 * a).all()
current = 0
kernel(x, Tensor(b), 2.0)
print("done")
""",
    )
    assert log == ["record 0", "wait 4096", "launch 4096", "record 4096", "wait 0", "launch 0"]


def test_kernels_wait_for_copies_of_arrays_of_the_host(tmp_path: Path) -> None:
    """A copy from pageable memory may still be under way when cuMemcpyHtoD returns, and other streams do not wait."""
    log = log_of(
        tmp_path,
        """
current = 4096
b = np.zeros(64, "float32")
kernel(a, Tensor(b), 3.0)
assert (b == 3 * a).all(), b
print("done")
""",
    )
    assert log == ["launch 4096"]


def test_a_tensor_is_asked_for_on_the_stream_that_uses_it(tmp_path: Path) -> None:
    log = log_of(
        tmp_path,
        """
x, y = Exporter(a), Exporter(np.zeros(64, "float32"))
kernel(x, y, 2.0)
assert (y.array.numpy() == 2 * a).all() and x.streams == [1] and y.streams == [1]
current = 4096
b = np.zeros(64, "float32")
kernel(x, Tensor(b), 2.0)
assert (b == 2 * a).all() and x.streams == [1, 4096]
assert device.from_dlpack(x).numpy()[3] == 3 and x.streams == [1, 4096, 1]


class Old(Exporter):  # before DLPack 1.0
    def __dlpack__(self, stream=None):
        self.streams.append(stream)
        return self.array.__dlpack__(stream=-1)


old = Old(a)
kernel(old, y, 4.0)
assert (y.array.numpy() == 4 * a).all() and old.streams == [1]
print("done")
""",
    )
    assert log == ["launch 0", "launch 4096", "launch 0"]


def test_streams_of_consumers_wait_for_an_array(tmp_path: Path) -> None:
    log = log_of(
        tmp_path,
        """
x = device.array(a)
for stream in (None, 1, -1):
    x.__dlpack__(stream=stream)
for stream in (2, 4096):
    x.__dlpack__(stream=stream, max_version=(1, 0))
for wrong in (0, -2, 1.5, "1"):
    try:
        x.__dlpack__(stream=wrong)
    except tw.ArgumentError as error:
        assert error.code == "device/stream"
    else:
        raise AssertionError(wrong)
print("done")
""",
    )
    assert log == ["record 0", "wait 2", "record 0", "wait 4096"]


@pytest.mark.parametrize("wrong", [0, -2, 1.5, "1"])
def test_numbers_that_are_no_streams(wrong: Any) -> None:
    """As above, in this process, where no device is needed."""
    array: Any = types.SimpleNamespace(device_type=2, device_id=0)
    with pytest.raises(tw.ArgumentError, match="no stream") as error:
        DeviceArray._pass_to(array, wrong)
    assert error.value.code == "device/stream"


def test_opencl_arrays_are_exported_when_their_kernels_have_finished() -> None:
    """PyTorch knows no devices of OpenCL, and says so."""
    text = """
import numpy as np
import torch
import tilewright as tw

x = tw.device("opencl").array(np.arange(4, dtype="float32"))
for _ in range(3):
    try:
        torch.from_dlpack(x)
    except (RuntimeError, BufferError, ValueError) as error:
        print(type(error).__name__, str(error).partition(chr(10))[0])
assert x.numpy()[3] == 3
del x
print("done")
"""
    outcome: Any = in_process(text)
    assert outcome.returncode == 0 and outcome.stdout.endswith("done\n"), outcome.stderr
