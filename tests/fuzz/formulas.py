"""Random programs that tilewright.te builds from formulas: chains of pointwise formulas, paddings, sums and maxima, of
ranges that depend on the index too.

NumPy says what each of them is, so that a formula that te builds wrongly is found, too.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright import te
from tilewright.script import tir as T


class Formulas:
    """Draws a chain of formulas; each uses one or two of the tensors before it."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.dtype = rng.choice(["float32", "float32", "float64", "int32", "uint8", "int64"])
        self.inputs = [self.placeholder(number) for number in range(rng.choice([1, 2]))]
        self.tensors: list[Any] = list(self.inputs)
        #: of each tensor, from the arrays of the inputs
        self.values: dict[Any, Callable[[list[np.ndarray]], np.ndarray]] = {
            x: lambda given, number=number: given[number] for number, x in enumerate(self.inputs)
        }

    def expected(self, arrays: list[np.ndarray]) -> np.ndarray:
        """The result, of the arguments in their order: the inputs and the array for the result."""
        with np.errstate(all="ignore"):
            return self.values[self.tensors[-1]](arrays)

    def placeholder(self, number: int) -> Any:
        shape = tuple(self.rng.choice([1, 2, 4, 5, 6]) for _ in range(self.rng.choice([1, 2, 2])))
        return te.placeholder(shape, self.dtype, name=f"X{number}")

    def text(self) -> str:
        for number in range(self.rng.choice([1, 2, 3])):
            kinds = [self.pointwise, self.pointwise, self.padded, self.reduced, self.product, self.ragged]
            self.tensors.append(self.rng.choice(kinds)(self.rng.choice(self.tensors), f"Y{number}"))
        text: str = te.create_prim_func([*self.inputs, self.tensors[-1]]).script()
        return text

    def pointwise(self, x: Any, name: str) -> Any:
        axes = list(range(len(x.shape)))
        self.rng.shuffle(axes)
        shape = tuple(x.shape[axis] for axis in axes)
        back = [axes.index(axis) for axis in range(len(axes))]
        same = [t for t in self.tensors if [int(e) for e in t.shape] == [int(e) for e in x.shape]]
        other = self.rng.choice(same)
        combine, numpy = self.rng.choice(
            [
                (lambda a, b: a + b, np.add),
                (lambda a, b: a - b, np.subtract),
                (T.max, np.maximum),
                (T.min, np.minimum),
            ]
        )

        def formula(*index: Any) -> Any:
            at = [index[axis] for axis in back]
            return combine(x[tuple(at)], other[tuple(at)])

        a, b = self.values[x], self.values[other]
        return self.known(
            te.compute(shape, formula, name=name), lambda given: numpy(a(given), b(given)).transpose(axes)
        )

    def known(self, tensor: Any, value: Callable[[list[np.ndarray]], np.ndarray]) -> Any:
        """The tensor, whose value in NumPy is kept, in its type."""
        self.values[tensor] = lambda given: value(given).astype(self.dtype)
        return tensor

    def padded(self, x: Any, name: str) -> Any:
        before, after = self.rng.choice([0, 1, 2]), self.rng.choice([0, 1, 2])
        first = int(x.shape[0])

        def formula(*index: Any) -> Any:
            inside = T.And(index[0] >= before, index[0] < first + before)
            return T.if_then_else(inside, x[(index[0] - before, *index[1:])], T.cast(1, self.dtype))

        widths = [(before, after), *[(0, 0)] * (len(x.shape) - 1)]
        a = self.values[x]
        return self.known(
            te.compute((first + before + after, *x.shape[1:]), formula, name=name),
            lambda given: np.pad(a(given), widths, constant_values=1),
        )

    def reduced(self, x: Any, name: str) -> Any:
        k = te.reduce_axis((0, int(x.shape[0])), name="k")
        reduce, numpy = self.rng.choice([(te.sum, np.add), (te.max, np.maximum), (te.min, np.minimum)])
        a = self.values[x]
        is_one = len(x.shape) == 1
        if is_one:
            made = te.compute((1,), lambda i: reduce(x[k], axis=k), name=name)
        else:
            made = te.compute(tuple(x.shape[1:]), lambda *index: reduce(x[(k, *index)], axis=k), name=name)
        return self.known(made, lambda given: numpy.reduce(a(given), axis=0, keepdims=is_one))

    def ragged(self, x: Any, name: str) -> Any:
        """A reduction over a range that begins or ends where the first index says; it may be empty."""
        size, rest = int(x.shape[0]), [int(extent) for extent in x.shape[1:]]
        count = self.rng.choice([1, 2, 3, size])
        begin, end = self.rng.choice(
            [
                (lambda i: 0, lambda i: T.min(i + 1, size)),
                (lambda i: 0, lambda i: T.min(i, size)),
                (lambda i: T.min(i, size), lambda i: size),
                (lambda i: i * size // count, lambda i: ((i + 1) * size + count - 1) // count),
            ]
        )
        limits = np.iinfo if "int" in self.dtype else np.finfo
        reduce, numpy, start = self.rng.choice(
            [
                (te.sum, np.add, 0),
                (te.max, np.maximum, limits(self.dtype).min),
                (te.min, np.minimum, limits(self.dtype).max),
            ]
        )
        is_nested = self.rng.random() < 0.3

        def formula(i: Any, *index: Any) -> Any:
            k = te.reduce_axis((begin(i), end(i)), name="k")
            if not is_nested:
                return reduce(x[(k, *index)], axis=k)
            m = te.reduce_axis((0, k + 1), name="m")
            return reduce(x[(m, *index)], axis=self.rng.choice([[k, m], [m, k]]))

        def value(given: list[np.ndarray]) -> np.ndarray:
            array = self.values[x](given)
            rows = []
            for i in range(count):
                first, last = int(begin(i)), int(end(i))
                points = [m for k in range(first, last) for m in (range(k + 1) if is_nested else [k])]
                rows.append(numpy.reduce(array[points], axis=0, initial=start, dtype=self.dtype))
            return np.array(rows)

        return self.known(te.compute((count, *rest), formula, name=name), value)

    def product(self, x: Any, name: str) -> Any:
        others = [t for t in self.tensors if len(t.shape) == 2 and int(t.shape[0]) == int(x.shape[-1])]
        if len(x.shape) != 2 or not others:
            return self.reduced(x, name)
        y = self.rng.choice(others)
        k = te.reduce_axis((0, int(x.shape[1])), name="k")
        a, b = self.values[x], self.values[y]
        made = te.compute((x.shape[0], y.shape[1]), lambda i, j: te.sum(x[i, k] * y[k, j], axis=k), name=name)
        return self.known(made, lambda given: a(given) @ b(given))
