"""Devices with their own memory, and arrays in it.

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
from tilewright.support import limits
from tilewright.support.numpy_dtype import numpy_dtype
from tilewright.support.wrong_arguments import explained

__all__ = ["Device", "DeviceArray", "common_device", "cpu", "cuda", "device", "opencl"]

#: device type numbers of DLPack
_TYPES = {"cpu": 1, "cuda": 2, "opencl": 4}
#: number of CUDA's legacy default stream in DLPack
_DEFAULT_STREAM = 1
#: other names of the processor
_HOST_WORDS = ("llvm", "c", "native")


class Device:
    """A device, or the host processor.

    Attributes:
        device_type: the kind, numbered as in DLPack: 1 for the processor, 2 for CUDA, 4 for OpenCL.
        device_id: the number of the device among those of its kind.
    """

    def __init__(self, device_type: int, device_id: int) -> None:
        self.device_type = device_type
        self.device_id = device_id

    @property
    def kind(self) -> str:
        """Return ``"cpu"``, ``"cuda"`` or ``"opencl"``."""
        return next(kind for kind, number in _TYPES.items() if number == self.device_type)

    @property
    def exist(self) -> bool:
        """Return whether the device exists and can be used."""
        return 0 <= self.device_id < _core.count_devices(self.device_type)

    @explained
    def array(self, source: Any, dtype: Any = None) -> DeviceArray:
        """Return a copy of an array in the memory of this device.

        Args:
            source: A NumPy array, a value that NumPy can convert to one, or an array on a device.
            dtype: Data type of the copy; by default that of the source.

        Raises:
            ResourceError: The device does not exist, or there is not enough memory.
        """
        if isinstance(source, DeviceArray) and source.device == self and dtype is None:
            return self.empty(source.shape, source.dtype).copyfrom(source)
        host = np.asarray(source.numpy() if isinstance(source, DeviceArray) else source, dtype=dtype)
        return self.empty(host.shape, host.dtype).copyfrom(host)

    @explained
    def empty(self, shape: int | Sequence[int], dtype: Any = "float32") -> DeviceArray:
        """Return an uninitialized array on this device."""
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

        If the memory is read-only, so is the array.

        Raises:
            ArgumentError: ``source`` is on another device, or has a data type that device arrays do not support.
        """
        kind, number = (int(part) for part in source.__dlpack_device__())
        if (kind, number) != (self.device_type, self.device_id):
            elsewhere = Device(kind, number) if kind in _TYPES.values() else f"device type {kind}:{number}"
            raise ArgumentError.of(
                "device/elsewhere",
                f"the array is on {elsewhere}, not on {self}",
                f"copy it: device({str(self)!r}).array(x)",
            )
        if isinstance(source, DeviceArray):  # both share one owner of the memory
            return DeviceArray(source, source.extents, source.steps, 0)
        # Kernels use the array on the default stream, which has to wait for the stream that produces the elements.
        stream = {"stream": _DEFAULT_STREAM} if kind == _TYPES["cuda"] else {}
        return DeviceArray(source.__dlpack__(max_version=(1, 1), **stream))

    def sync(self) -> None:
        """Wait for all kernels that were called on this device.

        Raises:
            ResourceError: A kernel failed; the message names it.
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
    """An array in the memory of a device, created by :meth:`Device.array`, :meth:`~Device.empty` and similar methods.

    Kernels accept it without copies. A call whose arrays are all on a device does not wait for its kernels; methods
    that read the elements do: :meth:`numpy`, :meth:`copyto` to NumPy arrays, :meth:`Device.sync`. The memory is freed
    with the last array that uses it, after the kernels that use it.
    """

    __slots__ = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the extents."""
        return tuple(self.extents)

    @property
    def strides(self) -> tuple[int, ...]:
        """Return the strides in bytes, as NumPy's arrays have them."""
        return tuple(step * self.itemsize for step in self.steps)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Return the data type of the elements."""
        return numpy_dtype(self.type_name)

    @property
    def device(self) -> Device:
        """Return the device of the array."""
        return Device(self.device_type, self.device_id)

    @property
    def ndim(self) -> int:
        """Return the number of dimensions."""
        return len(self.extents)

    @property
    def size(self) -> int:
        """Return the number of elements."""
        return math.prod(self.extents)

    @property
    def itemsize(self) -> int:
        """Return the size of an element in bytes."""
        return numpy_dtype(self.type_name).itemsize

    @property
    def nbytes(self) -> int:
        """Return the size of all elements in bytes."""
        return self.size * self.itemsize

    def numpy(self) -> Any:
        """Return a copy as a NumPy array, after all kernels called before have finished.

        Raises:
            ResourceError: A kernel that was called before failed; the message names it.
        """
        if self.is_compact:
            host = np.empty(self.shape, self.dtype)
            self.download(_bytes_of(host))
            return host
        # Copy the bytes from the element with the lowest address to the one with the highest.
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
        """Copy the elements of an array of the same shape to this array, and return this array.

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
        """Copy the elements to another array, or to a new array on a device; return that array.

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
        """Free the memory after the kernels that use it have finished. Later uses of arrays that share it are refused.

        Memory that another library obtained by DLPack stays valid until that library releases it.
        """
        self.release()

    def __getitem__(self, index: Any) -> DeviceArray:
        """Return a view, with the semantics of NumPy for integers and slices with a positive step."""
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
            stream: stream on which the elements will be used, as DLPack numbers streams of CUDA: None or 1 for the
                legacy default stream, 2 for the per-thread default stream, -1 if the consumer synchronizes by itself,
                otherwise the stream's address. That stream waits for the kernels that were called before. For OpenCL,
                this call waits, except with -1.
            max_version: highest version of DLPack that the consumer supports.
            dl_device: device that the consumer wants.
            copy: True requests a copy.

        Raises:
            BufferError: a copy is needed.
            ArgumentError: the stream has another value.
            ResourceError: a kernel that was called before failed.
        """
        if copy:
            raise BufferError("the memory is shared; copy it first: array.copyto(array.device)")
        if dl_device not in (None, self.__dlpack_device__()):
            raise BufferError(f"the memory is on {self.device}; copy it first: array.copyto(device)")
        self._pass_to(stream)
        return self.dlpack_capsule(max_version is not None and max_version[0] >= 1)

    def _pass_to(self, stream: Any) -> None:
        """Make a stream of another library wait for all calls on the queue of this device."""
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
    """Return a shape as a list of integers."""
    try:
        return [operator.index(each) for each in ([shape] if isinstance(shape, int | np.integer) else shape)]
    except TypeError as error:
        hint = "give an integer, or a tuple of integers"
        raise ArgumentError.of("device/shape", f"an array has no shape {shape!r}: {error}", hint) from None


def _bytes_of(host: Any) -> Any:
    """Return the memory of a contiguous array as bytes; the buffer protocol does not support all data types."""
    return host.reshape(-1).view(np.uint8) if host.size else bytearray()


def _view(array: Any, index: tuple[Any, ...]) -> tuple[list[int], list[int], int]:
    """Return shape, strides and offset of ``array[index]``, in elements."""
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
    """Return the device of all arrays among the values; None if they are not all on one device, or there is no
    array."""
    arrays = [value for value in values if hasattr(value, "shape") and not isinstance(value, np.generic)]
    if not arrays or not all(isinstance(array, DeviceArray) for array in arrays):
        return None
    return arrays[0].device if len({array.device for array in arrays}) == 1 else None


def cpu(dev_id: int = 0) -> Device:
    """Return the host processor as a device."""
    return Device(_TYPES["cpu"], dev_id)


def cuda(dev_id: int = 0) -> Device:
    """Return a CUDA device."""
    return Device(_TYPES["cuda"], dev_id)


def opencl(dev_id: int | None = None) -> Device:
    """Return an OpenCL device. By default that on which kernels run: the first GPU, or else the first device."""
    return Device(_TYPES["opencl"], _core.default_opencl_device() if dev_id is None else dev_id)


@explained
def device(dev: str, dev_id: int | None = None) -> Device:
    """Return the device of a name: ``"opencl:0"``, ``"cuda:1"``, ``"cpu"``; or of a target, such as ``"opencl"``.

    Args:
        dev: The kind, optionally with a number.
        dev_id: The number, if the name has none. By default that of the device on which kernels run.

    Raises:
        ArgumentError: The kind does not exist.
    """
    kind, _, number = (dev.split() or [""])[0].partition(":")
    if kind in _HOST_WORDS:
        kind = "cpu"
    if kind not in _TYPES or not (number.isdecimal() or not number):
        hint = 'such as "opencl:0", "cuda:0" or "cpu"; tilewright info lists devices'
        raise ArgumentError.of("device/name", f"{dev!r} is not the name of a device", hint)
    if dev_id is not None:
        limits.whole("dev_id", dev_id, 0)
    chosen = int(number) if number else dev_id
    if kind == "opencl":
        return opencl(chosen)
    return Device(_TYPES[kind], chosen or 0)
