"""Contractions by tiles of matrices (AMX): what the rules make is right, and which programs take the instructions."""

from __future__ import annotations

import dataclasses
import random

import numpy as np
import pytest

import tilewright as tw
from tilewright import _core, te
from tilewright.heuristics.by_target import heuristic_schedules
from tilewright.task.arguments import make_arrays
from tilewright.task.task import task_of
from tilewright.tensor_intrin.amx import TileProduct, make_if_named

TARGET = tw.Target("llvm -mcpu=sapphirerapids")
TYPES = [
    ("int8", "int8", "int32"),
    ("uint8", "int8", "int32"),
    ("int8", "uint8", "int32"),
    ("uint8", "uint8", "int32"),
    ("bfloat16", "bfloat16", "float32"),
]


def runs_here() -> bool:
    known = set(tw.Target("native").features)
    return {"amx-tile", "amx-int8", "amx-bf16"} <= known


def product(rows: int, columns: int, depth: int, types, *, batch: int = 0, turned: bool = False, relu: bool = False):
    a, b, c = types
    lead = (batch,) if batch else ()
    A = te.placeholder((*lead, rows, depth), a, name="A")
    B = te.placeholder((*lead, columns, depth) if turned else (*lead, depth, columns), b, name="B")
    k = te.reduce_axis((0, depth), name="k")

    def element(*at):
        *n, i, j = at
        return te.sum(A[(*n, i, k)].astype(c) * B[(*n, j, k) if turned else (*n, k, j)].astype(c), axis=k)

    C = te.compute((*lead, rows, columns), element, name="C")
    if not relu:
        return te.create_prim_func([A, B, C])
    zero = te.const(0, c)
    D = te.compute(C.shape, lambda *at: te.max(C[at] + te.const(3, c), zero), name="D")
    return te.create_prim_func([A, B, D])


def convolution(size: int, channels: int, filters: int, kernel: int, stride: int, pad: int, types, draw=None):
    """`draw`: puts the axes of the weights and of the sum into another order."""
    a, b, c = types
    X = te.placeholder((1, size, size, channels), a, name="X")
    places, sums = [0, 1, 2, 3], [0, 1, 2]
    if draw:
        draw.shuffle(places)
        draw.shuffle(sums)
    W = te.placeholder([(kernel, kernel, channels, filters)[place] for place in places], b, name="W")
    P = te.compute(
        (1, size + 2 * pad, size + 2 * pad, channels),
        lambda n, h, w, i: te.if_then_else(
            te.all(h >= pad, h < size + pad, w >= pad, w < size + pad), X[n, h - pad, w - pad, i], te.const(0, a)
        ),
        name="P",
    )
    r, s, i = (te.reduce_axis((0, extent), name=n) for extent, n in ((kernel, "r"), (kernel, "s"), (channels, "i")))
    out = (size + 2 * pad - kernel) // stride + 1
    C = te.compute(
        (1, out, out, filters),
        lambda n, h, w, f: te.sum(
            P[n, h * stride + r, w * stride + s, i].astype(c) * W[[(r, s, i, f)[place] for place in places]].astype(c),
            axis=[(r, s, i)[number] for number in sums],
        ),
        name="C",
    )
    return te.create_prim_func([X, W, C])


def by_rules(program, target=TARGET):
    module = tw.ir.Module({"main": program})
    return heuristic_schedules(module, target)[0]


def takes_tiles(module) -> bool:
    return "llvm.x86.tdp" in module.script()


def agree(actual, desired) -> None:
    """Integers exactly; floats are added in another order."""
    if actual.dtype.kind == "f":
        np.testing.assert_allclose(actual, desired, rtol=1e-4, atol=1e-4)
    else:
        np.testing.assert_array_equal(actual, desired)


def check(program, target=TARGET, *, expected: bool | None = True) -> None:
    """What the rules make computes what the program says: in the interpreter, and in code where the machine has it."""
    module = by_rules(program, target)
    assert expected is None or takes_tiles(module) == expected
    arrays = list(make_arrays(task_of(program), {}, 1).values())
    said, made = ([array.copy() for array in arrays] for _ in range(2))
    _core.interpret(tw.ir.Module({"main": program}), "main", *said)
    _core.interpret(module, "main", *made)
    agree(made[-1], said[-1])
    assert "tdp" in tw.compile(module, target, schedule="as written").inspect("asm") or not takes_tiles(module)
    if runs_here():
        tw.compile(module, tw.Target("native"), schedule="as written")(*arrays)
        agree(arrays[-1], said[-1])


@pytest.mark.parametrize("types", TYPES, ids=lambda types: "-".join(types))
@pytest.mark.parametrize("turned", [False, True], ids=["plain", "turned"])
def test_a_product_takes_the_instructions_of_its_types(types, turned) -> None:
    check(product(64, 64, 128, types, turned=turned))


def test_halves_take_those_of_processors_that_have_them() -> None:
    program = product(32, 32, 64, ("float16", "float16", "float32"))
    target = tw.Target("llvm -mcpu=graniterapids")
    module = by_rules(program, target)
    assert "llvm.x86.tdpfp16ps" in module.script()
    assert "tdpfp16ps" in tw.compile(module, target, schedule="as written").inspect("asm")
    assert not takes_tiles(by_rules(program))


def test_without_the_unit_other_instructions_are_taken() -> None:
    module = by_rules(product(64, 64, 128, TYPES[0]), tw.Target("llvm -mcpu=icelake-server"))
    assert not takes_tiles(module) and "vpdpbusd" in module.script()


@pytest.mark.parametrize(
    "program",
    [
        product(33, 48, 64, TYPES[4], batch=3, turned=True),
        product(50, 70, 90, TYPES[4], relu=True),
        product(64, 64, 64, TYPES[0], relu=True),
        convolution(14, 64, 64, 1, 1, 0, TYPES[0]),
        convolution(8, 32, 32, 3, 1, 1, TYPES[4]),
        convolution(15, 64, 32, 3, 2, 1, TYPES[4]),
    ],
    ids=["batched", "odd with relu", "with relu", "1x1", "3x3", "stride 2"],
)
def test_contractions_of_other_forms_take_them(program) -> None:
    check(program)


def test_axes_may_stand_in_any_order() -> None:
    for seed in range(6):
        check(convolution(8, 32, 32, 3, 1, 1, TYPES[4], random.Random(seed)), expected=None)
    X = te.placeholder((10, 8, 32), "bfloat16", name="X")
    W = te.placeholder((32, 3, 16), "bfloat16", name="W")
    r, i = te.reduce_axis((0, 3), name="r"), te.reduce_axis((0, 32), name="i")
    term = lambda h, w, f: X[h + r, w, i].astype("float32") * W[i, r, f].astype("float32")  # noqa: E731
    C = te.compute((8, 8, 16), lambda h, w, f: te.sum(term(h, w, f), axis=[i, r]), name="C")
    check(te.create_prim_func([X, W, C]))


@pytest.mark.parametrize("seed", range(24))
def test_shapes_that_nobody_has_thought_of(seed) -> None:
    draw = random.Random(seed)
    types = draw.choice(TYPES)
    if draw.random() < 0.6:
        rows, columns = draw.choice([1, 2, 5, 16, 17, 31, 32, 48, 70]), draw.choice([3, 16, 20, 32, 33, 48, 100])
        depth = draw.choice([4, 30, 32, 64, 96, 100, 128, 200])
        more = {"batch": draw.choice([0, 0, 2, 3]), "turned": draw.random() < 0.4, "relu": draw.random() < 0.4}
        program = product(rows, columns, depth, types, **more)
    else:
        size, channels, filters = draw.choice([5, 7, 8, 12]), draw.choice([4, 16, 32, 48]), draw.choice([8, 16, 32, 40])
        program = convolution(
            size, channels, filters, draw.choice([1, 2, 3]), draw.choice([1, 1, 2]), draw.choice([0, 1]), types, draw
        )
    check(program, TARGET.with_num_cores(draw.choice([1, 2, 4])), expected=None)


def test_threads_share_the_columns_and_results_may_be_left_out() -> None:
    program = product(64, 256, 64, TYPES[0])
    kernel = tw.compile(program, TARGET.with_num_cores(2))
    assert "tdp" in kernel.inspect("asm") and "parallel" in kernel.inspect("schedule")
    if runs_here():
        a, b = np.full((64, 64), 2, "int8"), np.full((64, 256), 3, "int8")
        assert (kernel(a, b) == 384).all()


def test_a_name_says_all_that_a_product_computes() -> None:
    """So a trace can be replayed in a process that has never made it."""
    made = TileProduct(("int8", "int8", "int32"), (32,), 32, (128,), (((0, 1),), ((2, 1),)), (), (0, 1), 0, 8, 0, 2, 16)
    assert tw.TensorIntrin.get(made.name, allow_missing=True) is not None
    schedule = tw.Schedule(product(64, 64, 128, TYPES[0]))
    with pytest.raises(tw.ScheduleError, match="tensorize/P2"):
        schedule.tensorize(schedule.get_block("C"), made.name)


@pytest.mark.parametrize(
    "wrong",
    [
        {"height": 12},  # 32 rows are not tiles of 12
        {"height": 32},  # a tile has 16 rows at most
        {"height": 8.0},
        {"depth": 32},
        {"depth": 12},  # 128 elements are 32 groups
        {"wide": 3},
        {"pair": 0, "height": 32},
        {"pair": 1},
        {"along": 1},
        {"c": (None, 1)},  # all rows would be one
        {"c": (1, 0)},
        {"a": (((0, 1),), ((0, 1),))},
        {"b": (0,)},  # rows of one tile need different ones
        {"rows": (0,)},
        {"columns": 40},
        {"types": ("float32", "float32", "float32")},
    ],
)
def test_tiles_that_do_not_fit_are_refused(wrong) -> None:
    """An intrinsic of such tiles would compute wrong elements, or configure the unit with sizes that it refuses."""
    product = TileProduct(
        ("int8", "int8", "int32"), (32,), 32, (128,), (((0, 1),), ((2, 1),)), (), (0, 1), 0, 8, None, 2, 16
    )
    name = dataclasses.replace(product, **wrong).name
    assert tw.TensorIntrin.get(name, allow_missing=True) is None
    if "types" not in wrong and wrong != {"height": 8.0}:
        with pytest.raises(tw.ArgumentError, match="do not fit") as caught:
            dataclasses.replace(product, **wrong).register()
        assert caught.value.code == "tensor-intrin/tiles"
    assert tw.TensorIntrin.get(product.name, allow_missing=True) is not None


@pytest.mark.parametrize(
    "name", ["amx_product ", "amx_product {}", "amx_product []", 'amx_product {"types":["a","b","c"]}', "amx_product {"]
)
def test_names_that_only_look_like_one_are_none(name) -> None:
    make_if_named(name)
    assert tw.TensorIntrin.get(name, allow_missing=True) is None


def entry_of(program) -> str:
    text = tw.compile(by_rules(program), TARGET, schedule="as written").inspect("asm")
    return text[text.rindex(".type\tC,@function") :]


def test_what_is_loaded_often_is_copied_where_it_begins_inside_of_a_line() -> None:
    assert "memcpy" in entry_of(product(64, 512, 128, TYPES[4]))
    # Rows that are no whole lines apart begin inside of one wherever the first does; what is loaded once needs no copy.
    assert "memcpy" not in entry_of(product(64, 512, 96 + 16, TYPES[4]))
    assert "memcpy" not in entry_of(product(64, 32, 128, TYPES[4]))


@pytest.mark.skipif(not runs_here(), reason="the processor has no matrix tiles")
@pytest.mark.parametrize("types", TYPES)
@pytest.mark.parametrize("columns", [32, 512])
def test_arguments_begin_anywhere(types, columns: int) -> None:
    program = product(64, columns, 128, types)
    kernel = tw.compile(program, "native -num-cores=1", schedule="by rules")
    arrays = list(make_arrays(task_of(program), {}, 1).values())
    want = [array.copy() for array in arrays]
    kernel(*want)
    for offset in (0, 16, 32, 62, 64):
        moved = []
        for array in arrays:
            memory = np.zeros(array.nbytes + 192, np.uint8)
            begin = -memory.ctypes.data % 64 + offset // array.itemsize * array.itemsize
            moved.append(memory[begin : begin + array.nbytes].view(array.dtype).reshape(array.shape))
            moved[-1][...] = array
        for _ in range(2):
            kernel(*moved)
            np.testing.assert_array_equal(moved[-1], want[-1])
