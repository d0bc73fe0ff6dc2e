"""Maps of indices that steps draw."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

#: From axes to indices, by the number of axes that the old indices speak of.
ORDERS: dict[int, list[Callable[[list[Any]], Sequence[Any]]]] = {
    1: [lambda v: v, lambda v: (v[0] // 2, v[0] % 2), lambda v: (v[0] * 2,)],
    2: [lambda v: (v[1], v[0]), lambda v: (v[1], v[0] // 3, v[0] % 3), lambda v: (v[0] * 8 + v[1],)],
    3: [lambda v: (v[2], v[0], v[1]), lambda v: (v[0], v[2], v[1] // 2, v[1] % 2)],
}

#: From old indices to new ones, by rank: digits, transpositions, paddings, diagonals.
LAYOUTS: dict[int, list[Callable[..., Any]]] = {
    1: [
        lambda i: (i // 4, i % 4),
        lambda i: (i % 2, i // 2),
        lambda i: (i * 2,),
        lambda i: (15 - i,),
        lambda i: (i + 3,),
        lambda i: (0, i),
    ],
    2: [
        lambda i, j: (j, i),
        lambda i, j: (i, j // 4, j % 4),
        lambda i, j: (j // 2, i, j % 2),
        lambda i, j: (i * 12 + j,),
        lambda i, j: (i, j * 2),
        lambda i, j: (i + j, j),
        lambda i, j: (i // 2, j // 2, i % 2, j % 2),
    ],
    3: [
        lambda i, j, k: (k, j, i),
        lambda i, j, k: (i, k // 2, j, k % 2),
        lambda i, j, k: (i * 12 + j, k),
        lambda i, j, k: (i, j, k % 3, k // 3),
    ],
}
