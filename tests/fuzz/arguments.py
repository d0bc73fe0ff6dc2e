"""Arguments of random programs, between guards that show writes outside of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fuzz.expressions import FLOATS, SMALL, limits
from tilewright import ir
from tilewright.support.numpy_dtype import numpy_dtype

#: Bytes around each array.
GUARD = 256
#: What guards hold: signaling where it is read as a float, large where it is read as an integer.
PATTERN = 0xFB


@dataclass
class Arguments:
    """Arrays for the parameters of a function, and the memory that each lies in."""

    arrays: list[np.ndarray]
    memory: list[np.ndarray]

    def copy(self) -> Arguments:
        return Arguments.around(self.arrays)

    @staticmethod
    def around(arrays: list[np.ndarray]) -> Arguments:
        """Copies of the arrays with their strides, each between two guards, the first byte at a multiple of 64."""
        placed, memory = [], []
        for array in arrays:
            below, above = reach(array)
            raw = np.full(below + above + 2 * GUARD + 64, PATTERN, np.uint8)
            start = GUARD + -(raw.ctypes.data + GUARD) % 64 + below
            inside = np.ndarray(array.shape, array.dtype, raw, start, array.strides)
            inside[...] = array
            placed.append(inside)
            memory.append(raw)
        return Arguments(placed, memory)

    def damaged(self) -> int | None:
        """The first array around whose elements, or between them, something was overwritten."""
        for position, (array, raw) in enumerate(zip(self.arrays, self.memory, strict=True)):
            start, (below, above) = array.ctypes.data - raw.ctypes.data, reach(array)
            if (raw[: start - below] != PATTERN).any() or (raw[start + above :] != PATTERN).any():
                return position
            if below + above > array.nbytes:
                own = np.ndarray((*array.shape, array.itemsize), np.uint8, raw, start, (*array.strides, 1)).copy()
                rest = raw.copy()
                np.ndarray(own.shape, np.uint8, rest, start, (*array.strides, 1))[...] = PATTERN
                if (rest != PATTERN).any():
                    return position
        return None


def reach(array: np.ndarray) -> tuple[int, int]:
    """How many bytes elements of the array lie below the address of the first one, and above it."""
    if array.size == 0:
        return 0, 0
    ends = [(extent - 1) * stride for extent, stride in zip(array.shape, array.strides, strict=True)]
    return -sum(end for end in ends if end < 0), sum(end for end in ends if end > 0) + array.itemsize


def draw(func: ir.PrimFunc, sizes: dict[str, int], special: bool, seed: int) -> Arguments:
    """Arguments of a function: small integers, and where `special` says so NaN, infinities and limits of the types."""
    random = np.random.default_rng(seed)
    arrays = []
    for param in func.params:
        buffer = func.buffer_map[param]
        shape = [size_of(extent, sizes) for extent in buffer.shape]
        array = numbers(random, buffer.dtype, shape, special)
        has_strides = len(buffer.strides) == array.ndim > 0
        arrays.append(with_strides(random, array, list(buffer.strides)) if has_strides else array)
    return Arguments.around(arrays)


def with_strides(random: np.random.Generator, array: np.ndarray, strides: list[ir.Expr]) -> np.ndarray:
    """The array in memory as its buffer says: strides that it leaves open put elements next to one another or apart,
    in this direction or in the other one."""
    steps, span = [], 1
    for extent, stride in zip(reversed(array.shape), reversed(strides), strict=True):
        known = isinstance(stride, ir.IntImm)
        step = stride.value if known else (span + int(random.integers(0, 3))) * int(random.choice([-1, 1, 1]))
        steps.insert(0, step * array.itemsize)
        span = max(span, abs(step) * max(extent, 1))
    shaped = np.ndarray(array.shape, array.dtype, strides=None)
    below, above = reach(np.lib.stride_tricks.as_strided(shaped, array.shape, steps))
    memory = np.zeros(max(below + above, 1), np.uint8)
    result = np.ndarray(array.shape, array.dtype, memory, below if array.size else 0, steps)
    result[...] = array
    return result


def size_of(extent: ir.Expr, sizes: dict[str, int]) -> int:
    if isinstance(extent, ir.IntImm):
        return extent.value
    return int(eval(str(extent), {"__builtins__": {}}, dict(sizes)))


def numbers(random: np.random.Generator, dtype: str, shape: list[int], special: bool) -> np.ndarray:
    small = random.integers(-int(SMALL), int(SMALL) + 1, size=shape)
    kind = numpy_dtype(dtype)
    if dtype == "bool":
        return (small > 0).astype(kind)
    if dtype not in FLOATS:
        low, high = limits(dtype)
        array = (abs(small) if low == 0 else small).astype(kind)
        chosen = np.array([low, low + 1, high - 1, high, high // 2], dtype=kind)
    else:
        array = small.astype(kind)
        chosen = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0]).astype(kind)
    if special:
        mask = random.random(shape) < 0.25
        array = np.where(mask, random.choice(chosen, size=shape), array).astype(kind)
    return np.asarray(array)  # NumPy makes numbers of arrays without dimensions


def difference(got: list[np.ndarray], want: list[np.ndarray]) -> str | None:
    """Where two lists of arrays differ, bit by bit but for payloads of NaN and signs of zero; None where they agree.

    Which zero is the smaller one is left open (docs/meaning.md).
    """
    for position, (a, b) in enumerate(zip(got, want, strict=True)):
        if a.tobytes() == b.tobytes():
            continue
        bits = np.dtype(f"u{a.dtype.itemsize}")
        # ascontiguousarray would give an array without dimensions one.
        same = np.asarray(a, order="C").view(bits) == np.asarray(b, order="C").view(bits)
        if a.dtype.kind not in "biu":
            same |= (np.isnan(a.astype("float64")) & np.isnan(b.astype("float64"))) | ((a == 0) & (b == 0))
        if same.all():
            continue
        at = tuple(int(i) for i in np.argwhere(~same)[0])
        where = f"argument {position} at {list(at)}: {a[at]} instead of {b[at]}"
        return f"{where}; {int((~same).sum())} of {same.size} elements differ"
    return None
