"""Devices with memory of their own, and arrays in it.

>>> device = tw.device("opencl:0")
>>> a = device.array(numpy_array)     # a copy
>>> kernel(a, b, c)                   # does not copy, and does not wait
>>> c.numpy()                         # waits
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from tilewright import _core
from tilewright.errors import ArgumentError
from tilewright.support.numpy_dtype import numpy_dtype
from tilewright.support.wrong_arguments import explained

__all__ = ["Device", "DeviceArray", "common_device", "cpu", "cuda", "device", "opencl"]

#: the numbers that DLPack gives to kinds of devices
_TYPES = {"cpu": 1, "cuda": 2, "opencl": 4}
#: the number that DLPack gives to the legacy default stream of CUDA
_DEFAULT_STREAM = 1
#: other words that stand for the processor
_HOST_WORDS = ("llvm", "c", "native")


class Device:
    """A device, or the processor.

    Attributes:
        device_type: the kind, as DLPack numbers them: 1 for the processor, 2 for CUDA, 4 for OpenCL.
        device_id: which one of them.
    """

    def __init__(self, device_type: int, device_id: int) -> None:
        self.device_type = device_type
        self.device_id = device_id

    @property
    def kind(self) -> str:
        """``"cpu"``, ``"cuda"`` or ``"opencl"``."""
        return next(kind for kind, number in _TYPES.items() if number == self.device_type)

    @property
    def exist(self) -> bool:
        """Whether it can be used."""
        return 0 <= self.device_id < _core.count_devices(self.device_type)

    @explained
    def array(self, source: Any, dtype: Any = None) -> DeviceArray:
        """Return a copy of an array in the memory of this device.

        Args:
            source: A NumPy array or what NumPy makes an array of, or an array on a device.
            dtype: Of the copy; that of the source by default.

        Raises:
            ResourceError: There is no such device, or no memory.
        """
        if isinstance(source, DeviceArray) and source.device == self and dtype is None:
            return self.empty(source.shape, source.dtype).copyfrom(source)
        host = np.asarray(source.numpy() if isinstance(source, DeviceArray) else source, dtype=dtype)
        return self.empty(host.shape, host.dtype).copyfrom(host)

    @explained
    def empty(self, shape: int | Sequence[int], dtype: Any = "float32") -> DeviceArray:
        """Return an array on this device whose elements are not set."""
        return self._new(shape, dtype, zero=False)

    @explained
    def zeros(self, shape: int | Sequence[int], dtype: Any = "float32") -> DeviceArray:
        """Return an array of zeros on this device."""
        return self._new(shape, dtype, zero=True)

    def _new(self, shape: int | Sequence[int], dtype: Any, *, zero: bool) -> DeviceArray:
        extents = _extents(shape)
        name = dtype if isinstance(dtype, str) else np.dtype(dtype).name
        return DeviceArray(self.device_type, self.device_id, name, extents, zero)

    @explained
    def from_dlpack(self, source: Any) -> DeviceArray:
        """Return an array that shares the memory of ``source``, which must be on this device.

        Of read-only memory, the array is read-only.

        Raises:
            ArgumentError: It is on another device, or has a type of elements that arrays do not have.
        """
        kind, number = (int(part) for part in source.__dlpack_device__())
        if (kind, number) != (self.device_type, self.device_id):
            elsewhere = Device(kind, number) if kind in _TYPES.values() else f"device type {kind}:{number}"
            raise ArgumentError.of(
                "device/elsewhere",
                f"the array is on {elsewhere}, not on {self}",
                f"copy it: device({str(self)!r}).array(x)",
            )
        if isinstance(source, DeviceArray):  # freed together
            return DeviceArray(source, source.extents, source.steps, 0)
        # Kernels use it on the default stream, which has to wait for the stream that the elements come from.
        stream = {"stream": _DEFAULT_STREAM} if kind == _TYPES["cuda"] else {}
        return DeviceArray(source.__dlpack__(max_version=(1, 1), **stream))

    def sync(self) -> None:
        """Wait for all kernels that were called on this device.

        Raises:
            ResourceError: One of them failed; the message names it.
        """
        if self.device_type != _TYPES["cpu"]:
            _core.wait_for_device(self.device_type, self.device_id)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and (self.device_type, self.device_id) == (other.device_type, other.device_id)

    def __hash__(self) -> int:
        return hash((self.device_type, self.device_id))

    def __str__(self) -> str:
        return f"{self.kind}:{self.device_id}"

    def __repr__(self) -> str:
        return f"device({str(self)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.device_type, self.device_id)


class DeviceArray(_core.DeviceArrayBase):
    """An array in the memory of a device, which :meth:`Device.array` and its kin create.

    Kernels take it without copies. A call whose arrays are all on a device does not wait for its kernels; what reads
    the elements does: :meth:`numpy`, :meth:`copyto` to NumPy arrays, :meth:`Device.sync`. The memory is freed with the
    last array that uses it, after the kernels that do.
    """

    __slots__ = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents."""
        return tuple(self.extents)

    @property
    def strides(self) -> tuple[int, ...]:
        """Distances of elements in bytes, as of NumPy's arrays."""
        return tuple(step * self.itemsize for step in self.steps)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the elements."""
        return numpy_dtype(self.type_name)

    @property
    def device(self) -> Device:
        """Where it is."""
        return Device(self.device_type, self.device_id)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.extents)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.extents)

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return numpy_dtype(self.type_name).itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.itemsize

    def numpy(self) -> Any:
        """Return a copy as a NumPy array, when the kernels called before have finished.

        Raises:
            ResourceError: A kernel that was called before failed; the message names it.
        """
        if self.is_compact:
            host = np.empty(self.shape, self.dtype)
            self.download(_bytes_of(host))
            return host
        # The bytes from the element with the lowest address to the one with the highest.
        reach = [(extent - 1) * step for extent, step in zip(self.extents, self.steps, strict=True)]
        low = sum(distance for distance in reach if distance < 0)
        memory = np.empty(sum(abs(distance) for distance in reach) + 1, self.dtype)
        type(self)(self, [memory.size], [1], low * self.itemsize).download(_bytes_of(memory))
        return np.lib.stride_tricks.as_strided(memory[-low:], self.shape, self.strides).copy()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        if copy is False:
            raise ValueError(f"an array on {self.device} cannot be a NumPy array without a copy")
        host = self.numpy()
        return host if dtype is None else host.astype(dtype)

    @explained
    def copyfrom(self, source: Any) -> DeviceArray:
        """Take over the elements of an array of the same shape, and return this array.

        Raises:
            ArgumentError: The shapes differ, the elements of this array are not contiguous, or it is read-only.
        """
        if tuple(np.shape(source)) != self.shape:
            message = f"an array of shape {tuple(np.shape(source))} cannot be copied to one of shape {self.shape}"
            raise ArgumentError.of("device/copy", message, "slice or reshape it first")
        if not self.is_compact:
            hint = "copy to the whole array, or to whole rows of it"
            raise ArgumentError.of("device/copy", "elements of this view are not contiguous", hint)
        if isinstance(source, DeviceArray):
            if source.is_compact and (source.device, source.dtype) == (self.device, self.dtype):
                self.copy_within_device(source)
                return self
            source = source.numpy()
        self.upload(_bytes_of(np.ascontiguousarray(np.asarray(source).astype(self.dtype, copy=False))))
        return self

    @explained
    def copyto(self, target: Any) -> Any:
        """Copy the elements to another array, or to a new one on a device, and return that.

        Args:
            target: An array on a device, a NumPy array, or a :class:`Device`.
        """
        if isinstance(target, Device):
            return target.array(self)
        if isinstance(target, DeviceArray):
            return target.copyfrom(self)
        target[...] = self.numpy()
        return target

    def free(self) -> None:
        """Free the memory when the kernels that use it have finished; arrays that share it are refused from now on.

        What another library got by DLPack stays valid: the memory is freed when that is gone, too.
        """
        self.release()

    def __getitem__(self, index: Any) -> DeviceArray:
        """Return a view: integers and slices with a positive step, as of NumPy."""
        shape, strides, offset = _view(self, index if isinstance(index, tuple) else (index,))
        return type(self)(self, shape, strides, offset * self.itemsize)

    def __len__(self) -> int:
        if not self.extents:
            raise TypeError("an array without dimensions has no length")
        return self.extents[0]

    def __iter__(self) -> Iterator[Any]:
        raise TypeError(f"an array on {self.device} is not iterated over: take array.numpy()")

    def __repr__(self) -> str:
        if self.is_freed:
            return f"<DeviceArray on {self.device}, freed>"
        return f"<DeviceArray {self.type_name} {self.shape} on {self.device}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _array_on, (self.device, self.numpy())

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
    ) -> Any:
        """Return a capsule of DLPack that shares the memory.

        Args:
            stream: where the elements will be used, as DLPack numbers streams of CUDA: None or 1 for the legacy default
                stream, 2 for that of the thread, -1 for a consumer that waits itself, else the stream's address. That
                stream waits for the kernels that were called before. For OpenCL, this call waits, except with -1.
            max_version: the version of DLPack that the consumer knows.
            dl_device: the device that the consumer wants.
            copy: True asks for a copy.

        Raises:
            BufferError: a copy is needed.
            ArgumentError: the stream is none of these.
            ResourceError: a kernel that was called before failed.
        """
        if copy:
            raise BufferError("the memory is shared; copy it first: array.copyto(array.device)")
        if dl_device not in (None, self.__dlpack_device__()):
            raise BufferError(f"the memory is on {self.device}; copy it first: array.copyto(device)")
        self._pass_to(stream)
        return self.dlpack_capsule(max_version is not None and max_version[0] >= 1)

    def _pass_to(self, stream: Any) -> None:
        """Let a stream of another library wait for what was called on the queue of this device."""
        if self.device_type == _TYPES["opencl"]:
            if stream != -1:
                self.device.sync()
        elif self.device_type == _TYPES["cuda"] and stream not in (None, _DEFAULT_STREAM, -1):
            if isinstance(stream, bool) or not isinstance(stream, int) or stream < _DEFAULT_STREAM:
                hint = (
                    "pass 1 for the legacy default stream, 2 for that of the thread, -1 to wait yourself, or an address"
                )
                raise ArgumentError.of("device/stream", f"DLPack has no stream {stream!r} of CUDA", hint)
            _core.order_streams(self.device_type, self.device_id, 0, stream)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device_type, self.device_id


def _extents(shape: Any) -> list[int]:
    """The integers that a shape consists of."""
    try:
        return [operator.index(each) for each in ([shape] if isinstance(shape, int | np.integer) else shape)]
    except TypeError as error:
        hint = "give an integer, or a tuple of integers"
        raise ArgumentError.of("device/shape", f"an array has no shape {shape!r}: {error}", hint) from None


def _bytes_of(host: Any) -> Any:
    """The memory of a contiguous array; the buffer protocol does not know all types of elements."""
    return host.reshape(-1).view(np.uint8) if host.size else bytearray()


def _view(array: Any, index: tuple[Any, ...]) -> tuple[list[int], list[int], int]:
    """Shape, strides and offset in elements of ``array[index]``."""
    if Ellipsis in [part for part in index if part is Ellipsis]:
        at = next(i for i, part in enumerate(index) if part is Ellipsis)
        index = (*index[:at], *[slice(None)] * (array.ndim - len(index) + 1), *index[at + 1 :])
    if len(index) > array.ndim:
        raise IndexError(f"{len(index)} indices of an array of {array.ndim} dimensions")
    shape, strides, offset = [], [], 0
    whole = [slice(None)] * (array.ndim - len(index))
    for extent, step, part in zip(array.extents, array.steps, [*index, *whole], strict=True):
        if isinstance(part, slice):
            taken = range(*part.indices(extent))
            if taken.step < 1:
                raise IndexError("an array on a device is sliced with positive steps")
            offset += taken.start * step if taken else 0
            shape.append(len(taken))
            strides.append(step * taken.step)
        elif isinstance(part, int | np.integer) and not isinstance(part, bool):
            if not -extent <= part < extent:
                raise IndexError(f"index {part} of a dimension of {extent}")
            offset += (int(part) % extent) * step
        else:
            raise IndexError(f"an array on a device is indexed by integers and slices, not by {part!r}")
    return shape, strides, offset


def _array_on(device: Device, host: Any) -> DeviceArray:
    return device.array(host)


def common_device(values: Iterable[Any]) -> Device | None:
    """Return the device of all arrays among the values; None where one is elsewhere, or there is none."""
    arrays = [value for value in values if hasattr(value, "shape") and not isinstance(value, np.generic)]
    if not arrays or not all(isinstance(array, DeviceArray) for array in arrays):
        return None
    return arrays[0].device if len({array.device for array in arrays}) == 1 else None


def cpu(dev_id: int = 0) -> Device:
    """The processor."""
    return Device(_TYPES["cpu"], dev_id)


def cuda(dev_id: int = 0) -> Device:
    """A device of CUDA."""
    return Device(_TYPES["cuda"], dev_id)


def opencl(dev_id: int | None = None) -> Device:
    """A device of OpenCL, by default the one that kernels run on: the first GPU, else the first device."""
    return Device(_TYPES["opencl"], _core.default_opencl_device() if dev_id is None else dev_id)


@explained
def device(dev: str, dev_id: int | None = None) -> Device:
    """Return the device of a name: ``"opencl:0"``, ``"cuda:1"``, ``"cpu"``; or of a target, such as ``"opencl"``.

    Args:
        dev: The kind, perhaps with a number.
        dev_id: The number, where the name has none. By default that on which kernels run.

    Raises:
        ArgumentError: There is no such kind.
    """
    kind, _, number = (dev.split() or [""])[0].partition(":")
    if kind in _HOST_WORDS:
        kind = "cpu"
    if kind not in _TYPES or not (number.isdecimal() or not number):
        hint = 'such as "opencl:0", "cuda:0" or "cpu"; tilewright info lists devices'
        raise ArgumentError.of("device/name", f"{dev!r} is not the name of a device", hint)
    chosen = int(number) if number else dev_id
    if kind == "opencl":
        return opencl(chosen)
    return Device(_TYPES[kind], chosen or 0)
