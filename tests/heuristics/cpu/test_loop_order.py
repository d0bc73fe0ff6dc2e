"""By rules, it is no matter in which order the loops of a program were written."""

import itertools
import math

import numpy as np
import pytest
from tests.heuristics.cpu.programs import TARGETS, here, scheduled
from tests.samples import samples

import tilewright as tw
from tilewright.heuristics import cpu
from tilewright.script import tir as T


def product_in_order(order, sizes):
    """As people write it, in whatever order of loops."""
    dims = dict(zip("ijk", sizes, strict=True))
    opened = [size for size in sizes if isinstance(size, str)]
    return tw.script.from_source(
        f"""from tilewright.script import tir as T
@T.prim_func
def main(a: T.handle, b: T.handle, c: T.handle):
    {"; ".join(f"{name} = T.int32()" for name in dict.fromkeys(opened)) or "pass"}
    A = T.match_buffer(a, ({dims["i"]}, {dims["k"]}))
    B = T.match_buffer(b, ({dims["k"]}, {dims["j"]}))
    C = T.match_buffer(c, ({dims["i"]}, {dims["j"]}))
    for {", ".join(order)} in T.grid({", ".join(str(dims[axis]) for axis in order)}):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""
    )


@pytest.mark.parametrize("sizes", [(48, 48, 48), (20, 36, 28), ("n", "n", "n"), ("n", 40, "m")])
def test_the_order_of_loops_is_no_matter(sizes):
    target = tw.Target(TARGETS[0])
    scripts = set()
    for order in itertools.permutations("ijk"):
        sch = tw.Schedule(product_in_order(order, sizes))
        cpu.schedule_for_cpu(sch, target, best=True, sizes={"n": 50, "m": 30})
        sch.verify()
        tw.compile(sch, target)
        scripts.add(sch.mod.script())
    assert len(scripts) == 1


def test_an_order_of_loops_that_has_to_stay():
    """Two blocks in one nest: nothing is known of their loops, or only of those that they have alone."""

    @T.prim_func
    def main(A: T.Buffer((6, 6)), B: T.Buffer((6, 6)), C: T.Buffer((6, 6))):
        for i, j in T.grid(6, 6):
            with T.block("B"):
                vj, vi = T.axis.remap("SS", [j, i])
                B[vi, vj] = A[vi, vj] + T.float32(1)
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj] * T.float32(2)

    scheduled(main).verify()
    kernel = tw.compile(main)
    a, b, c = np.ones((6, 6), "float32"), np.zeros((6, 6), "float32"), np.zeros((6, 6), "float32")
    kernel(a, b, c)
    assert (b == 2).all() and (c == 2).all()


#: types of operands and results
TYPES = [("float32", "float32"), ("float64", "float64"), ("int8", "int32"), ("float16", "float32")]

MOST_STEPS = 100_000  #: of a product, which the interpreter runs twelve times


def product_of_orders(seed, narrow, wide):
    """A product with batches, whose operands and results have their dimensions in any order."""
    random = np.random.default_rng(seed)
    sizes = {}
    for axis in random.permutation([*"bijk"]):
        left = MOST_STEPS // math.prod(sizes.values())
        sizes[axis] = int(random.choice([size for size in (1, 3, 8, 17, 32, 48) if size <= left]))
    dims = {}
    for name, axes in {"A": "ik", "B": "kj", "C": "ij"}.items():
        batched = axes + "b" if name == "C" or random.random() < 0.6 else axes
        dims[name] = "".join(random.permutation([*batched]))
    order = random.permutation([*"bijk"])
    shapes = {name: tuple(sizes[axis] for axis in axes) for name, axes in dims.items()}

    def at(name):
        place = f"{name}[{', '.join(f'v{axis}' for axis in dims[name])}]"
        return place if name == "C" or narrow == wide else f'T.cast({place}, "{wide}")'

    def buffer(name):
        return f'{name}: T.Buffer({shapes[name]}, "{wide if name == "C" else narrow}")'

    text = f"""from tilewright.script import tir as T
@T.prim_func
def main({", ".join(map(buffer, "ABC"))}):
    for {", ".join(order)} in T.grid({", ".join(str(sizes[axis]) for axis in order)}):
        with T.block("C"):
            vb, vi, vj, vk = T.axis.remap("SSSR", [b, i, j, k])
            with T.init():
                {at("C")} = T.cast(0, "{wide}")
            {at("C")} = {at("C")} + {at("A")} * {at("B")}
"""
    arrays = {name: random.integers(-9, 9, shapes[name]).astype(narrow) for name in "AB"}
    factors = [each.astype(wide) for each in (*arrays.values(), np.ones(sizes["b"]))]
    return tw.script.from_source(text), arrays, np.einsum(f"{dims['A']},{dims['B']},b->{dims['C']}", *factors)


@pytest.mark.parametrize("seed", range(samples(20)))
def test_the_order_of_dimensions_is_no_matter(seed):
    narrow, wide = TYPES[seed % len(TYPES)]
    program, arrays, expected = product_of_orders(seed, narrow, wide)
    for target in (*map(here, TARGETS), tw.Target("native")):
        for best in (True, False):
            sch = scheduled(program, target, best=best, seed=seed)
            sch.verify()
            result = np.empty(expected.shape, wide)
            kernel = tw.compile(sch, target)
            kernel(*arrays.values(), result)
            np.testing.assert_array_equal(result, expected)
            # What the rules ask for comes about, so that a search does not refuse it.
            assert not [str(note) for note in kernel.notes if note.is_requested]
