"""Arrays that keep what a program declares of its parameters."""

from itertools import pairwise

import numpy as np
import pytest

import tilewright as tw
from tilewright import ir
from tilewright.script import tir as T
from tilewright.task.arguments import make_arrays
from tilewright.task.declared_values import declared_arrays
from tilewright.task.task import task_of
from tilewright.testing.check import random_arguments


@T.prim_func
def rows(ptr: T.handle, ind: T.handle, val: T.handle, key: T.handle, out: T.handle):
    m, n, z = T.int32(is_size_var=True), T.int32(is_size_var=True), T.int32(is_size_var=True)
    P = T.match_buffer(ptr, (m + 1,), "int32")
    I = T.match_buffer(ind, (z,), "int64")
    A = T.match_buffer(val, (z,))
    K = T.match_buffer(key, (n, 2), "int32")
    C = T.match_buffer(out, (m,))
    T.assume_buffer_domain(P, [0, z + 1], order="nondecreasing")
    T.assume_buffer_domain(I, [0, n], order="increasing", segments=P)
    T.assume_buffer_domain(K, [-2, 3])
    for i in range(m):
        with T.block("C"):
            vi = T.axis.spatial(m, i)
            C[vi] = T.float32(0)
            for p in range(P[vi + 1] - P[vi]):
                C[vi] += A[P[vi] + p] * T.Cast("float32", K[I[P[vi] + p], 1])


@pytest.mark.parametrize(("m", "n", "z"), [(7, 5, 20), (3, 4, 12), (6, 9, 0), (1, 30, 30), (40, 2, 9)])
def test_structures_in_csr(m: int, n: int, z: int) -> None:
    shapes = {0: (m + 1,), 1: (z,), 2: (z,), 3: (n, 2), 4: (m,)}
    for seed in range(4):
        made = declared_arrays(rows, shapes, {}, np.random.default_rng(seed))
        assert sorted(made) == [0, 1, 3]
        offsets, indices, keys = made[0], made[1], made[3]
        assert (offsets.dtype, indices.dtype, keys.dtype) == ("int32", "int64", "int32")
        assert offsets[0] == 0 and offsets[-1] == z and (np.diff(offsets) >= 0).all()
        assert indices.shape == (z,) and ((indices >= 0) & (indices < n)).all()
        assert all((np.diff(indices[begin:end]) > 0).all() for begin, end in pairwise(offsets))
        assert keys.shape == (n, 2) and keys.min() >= -2 and keys.max() <= 2


def test_given_offsets_are_kept() -> None:
    offsets = np.array([0, 0, 2, 3], "int32")
    shapes = {0: (4,), 1: (3,), 2: (3,), 3: (5, 2), 4: (3,)}
    made = declared_arrays(rows, shapes, {0: offsets}, np.random.default_rng(0))
    assert 0 not in made and made[1][0] < made[1][1]


@T.prim_func
def lists(r: T.handle, s: T.handle, t: T.handle):
    a, b, c = T.int32(is_size_var=True), T.int32(is_size_var=True), T.int32(is_size_var=True)
    R = T.match_buffer(r, (a,), "int32")
    S = T.match_buffer(s, (b,), "int32")
    U = T.match_buffer(t, (c,), "int32")
    T.assume_buffer_domain(R, [0, 9], order="increasing")
    T.assume_buffer_domain(S, [2, 9], order="nondecreasing")
    T.assume_buffer_domain(U, [0, 7])
    T.assume_disjoint(R, S)
    T.assume_disjoint(S, U)
    T.assume_disjoint(R, U)
    T.evaluate(0)


@pytest.mark.parametrize(("a", "b", "c"), [(3, 3, 3), (5, 9, 2), (0, 4, 0), (6, 1, 1), (0, 0, 0)])
def test_disjoint_lists(a: int, b: int, c: int) -> None:
    for seed in range(20):
        made = declared_arrays(lists, {0: (a,), 1: (b,), 2: (c,)}, {}, np.random.default_rng(seed))
        r, s, u = made[0], made[1], made[2]
        assert (len(r), len(s), len(u)) == (a, b, c) and (np.diff(r) > 0).all() and (np.diff(s) >= 0).all()
        assert not {*r} & {*s} and not {*s} & {*u} and not {*r} & {*u}
        assert ((r >= 0) & (r < 9)).all() and ((s >= 2) & (s < 9)).all() and ((u >= 0) & (u < 7)).all()


def test_lists_disjoint_from_given_ones() -> None:
    given = np.array([2, 3, 8], "int32")
    made = declared_arrays(lists, {0: (3,), 1: (3,), 2: (2,)}, {0: given}, np.random.default_rng(0))
    assert not {*given} & ({*made[1]} | {*made[2]}) and not {*made[1]} & {*made[2]}
    with pytest.raises(tw.ArgumentError, match="need more values than"):
        declared_arrays(lists, {0: (9,), 1: (1,), 2: (2,)}, {}, np.random.default_rng(0))


def test_what_cannot_be() -> None:
    offsets = np.array([0, 3], "int32")
    with pytest.raises(tw.ArgumentError, match=r"'I' has 3 increasing values, more than are in \[0, 2\)"):
        declared_arrays(rows, {0: (2,), 1: (3,), 2: (3,), 3: (2, 2), 4: (1,)}, {0: offsets}, np.random.default_rng(0))
    with pytest.raises(tw.ArgumentError, match=r"no value of 'I' is in the domain \[0, 0\)"):
        declared_arrays(rows, {0: (2,), 1: (3,), 2: (3,), 3: (0, 2), 4: (1,)}, {0: offsets}, np.random.default_rng(0))


def test_random_arguments_of_tests_and_tasks_run_in_the_interpreter() -> None:
    arrays = random_arguments(rows, 0, {"m": 4, "n": 6, "z": 9})
    assert [a.shape for a in arrays] == [(5,), (9,), (9,), (6, 2), (4,)]
    ir.interpret(ir.as_module(rows), "rows", *arrays)
    task = task_of(rows, sizes={"m": 4, "n": 6, "z": 9})
    made = make_arrays(task, {}, seed=1)
    ir.interpret(ir.as_module(rows), "rows", *made.values())
