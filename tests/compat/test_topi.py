"""tvm.topi of the alias layer against NumPy."""

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.compat.tvm import topi


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize(("axis", "keepdims"), [(1, False), (0, True), ((0, 2), False), (None, True)])
def test_positions_of_extremes_along_axes(name, axis, keepdims):
    A = te.placeholder((3, 5, 4), "int32")
    kernel = tw.compile(te.create_prim_func([A, getattr(topi, name)(A, axis=axis, keepdims=keepdims)]))
    a = np.random.default_rng(0).integers(0, 4, (3, 5, 4), dtype="int32")
    pair = axis == (0, 2)
    moved = a.transpose(1, 0, 2).reshape(5, 12) if pair else a
    want = getattr(np, name)(moved, 1 if pair else axis, keepdims=keepdims)
    b = np.zeros(want.shape, "int32")
    kernel(a, b)
    assert (b == want).all()


def test_the_last_of_equal_values():
    A = te.placeholder((8,), "float32")
    a, b = np.array([1, 3, 0, 3, 2, 3, 1, 0], "float32"), np.zeros((), "int32")
    tw.compile(te.create_prim_func([A, topi.argmax(A, 0, select_last_index=True)]))(a, b)
    assert b == 5


def test_names_that_are_only_mentioned():
    with pytest.raises(AttributeError, match=r"Tilewright has no tvm\.topi\.conv2d yet"):
        topi.conv2d.schedule


@pytest.mark.parametrize("pool_type", ["max", "avg"])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize(
    ("stride", "dilation", "padding", "ceil_mode"),
    [
        ((1, 1), (1, 1), (0, 0, 0, 0), False),
        ((2, 3), (1, 2), (1, 0, 2, 1), False),
        ((2, 2), (1, 1), (0, 1, 0, 1), True),
    ],
)
def test_pools(pool_type, layout, stride, dilation, padding, ceil_mode):
    shape = (2, 9, 10, 3) if layout == "NHWC" else (2, 3, 9, 10)
    A = te.placeholder(shape, "float32", name="A")
    B = topi.nn.pool2d(A, (3, 2), stride, dilation, padding, pool_type, ceil_mode, layout)
    a = np.random.default_rng(0).integers(-9, 9, shape).astype("float32")
    picture = a if layout == "NCHW" else a.transpose(0, 3, 1, 2)
    extra = [step - 1 if ceil_mode else 0 for step in stride]
    border = -np.finfo("float32").max if pool_type == "max" else 0
    top, left, bottom, right = padding
    wide = np.pad(picture, ((0, 0), (0, 0), (top, bottom + extra[0]), (left, right + extra[1])), constant_values=border)
    rows, columns = [
        range(0, wide.shape[2 + d] - (kernel - 1) * dilation[d], stride[d]) for d, kernel in enumerate((3, 2))
    ]
    want = np.zeros((2, 3, len(rows), len(columns)), "float32")
    for i, y in enumerate(rows):
        for j, x in enumerate(columns):
            window = wide[:, :, y : y + 2 * dilation[0] + 1 : dilation[0], x : x + dilation[1] + 1 : dilation[1]]
            want[:, :, i, j] = window.max((2, 3)) if pool_type == "max" else window.sum((2, 3)) / np.float32(6)
    want = want if layout == "NCHW" else want.transpose(0, 2, 3, 1)
    b = np.zeros(want.shape, "float32")
    tw.compile(te.create_prim_func([A, B]))(a, b)
    np.testing.assert_allclose(b, want, rtol=1e-6)


def test_pools_that_are_not_there():
    A = te.placeholder((1, 8, 8, 2), name="A")
    with pytest.raises(ValueError, match="pool2d of type 'min'"):
        topi.nn.pool2d(A, (2, 2), (1, 1), (1, 1), (0, 0, 0, 0), "min", layout="NHWC")
    with pytest.raises(ValueError, match="count_include_pad=True"):
        topi.nn.pool2d(A, (2, 2), (1, 1), (1, 1), (1, 1, 1, 1), "avg", False, "NHWC", False)
    with pytest.raises(AttributeError, match=r"Tilewright has no tvm\.topi\.nn\.conv3d_ncdhw yet"):
        topi.nn.conv3d_ncdhw.schedule


def run(inputs, tensor):
    """What a formula gives for arrays, whose placeholders are made in the same order."""
    shape = [int(extent) for extent in tensor.shape]
    result = np.zeros(shape, tensor.dtype)
    tensors = [*(placeholder for placeholder, _ in inputs), tensor]
    tw.compile(te.create_prim_func(tensors))(*(array for _, array in inputs), result)
    return result


def given(shape, dtype="float32", low=-3, high=4):
    values = np.random.default_rng(len(shape)).integers(low, high, shape)
    return te.placeholder(shape, dtype), values.astype(dtype)


UNARY = {"exp": np.exp, "tanh": np.tanh, "abs": np.abs, "negative": np.negative, "floor": np.floor, "identity": np.copy}


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_elements(name):
    A, a = given((3, 4))
    np.testing.assert_allclose(run([(A, a)], getattr(topi, name)(A)), UNARY[name](a), rtol=1e-6)


OPERATORS = ["add", "subtract", "multiply", "maximum", "minimum", "greater", "less_equal", "not_equal"]


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("shapes", [((3, 4), (3, 4)), ((3, 1), (4,)), ((1,), (2, 3)), ((2, 3), None)])
def test_operators_are_broadcast(name, shapes):
    (A, a), (B, b) = given(shapes[0]), given(shapes[1]) if shapes[1] else (1.5, np.float32(1.5))
    inputs = [(A, a), (B, b)] if shapes[1] else [(A, a)]
    tensor = getattr(topi, name)(A, B)
    np.testing.assert_array_equal(run(inputs, tensor), getattr(np, name)(a, b))
    assert tensor.op.name == f"T_{name}" and tensor.op.tag == "broadcast"


def test_quotients_of_integers():
    (A, a), (B, b) = given((5, 7), "int32"), given((7,), "int32", 1, 4)
    np.testing.assert_array_equal(run([(A, a), (B, b)], topi.divide(A, B)), np.trunc(a / b))
    np.testing.assert_array_equal(run([(A, a), (B, b)], topi.floor_divide(A, B)), a // b)
    np.testing.assert_array_equal(run([(A, a), (B, b)], topi.mod(A, B)), a % b)


def test_choices_and_casts():
    (A, a), (B, b) = given((3, 4)), given((4,))
    np.testing.assert_array_equal(run([(A, a), (B, b)], topi.where(topi.less(A, B), A, 0.0)), np.where(a < b, a, 0))
    np.testing.assert_array_equal(run([(A, a)], topi.clip(A, -1, 2)), np.clip(a, -1, 2))
    np.testing.assert_array_equal(run([(A, a)], topi.cast(A, "int8")), a.astype("int8"))
    np.testing.assert_array_equal(run([(A, a)], topi.add(A, topi.full_like(A, 2))), a + 2)


@pytest.mark.parametrize("name", ["sum", "max", "min", "prod"])
@pytest.mark.parametrize(("axis", "keepdims"), [(1, False), (-1, True), ((0, 2), False), (None, True), ((), False)])
def test_reductions(name, axis, keepdims):
    A, a = given((2, 3, 4))
    tensor = getattr(topi, name)(A, axis=axis, keepdims=keepdims)
    np.testing.assert_array_equal(run([(A, a)], tensor), getattr(np, name)(a, axis, keepdims=keepdims))


def test_reductions_of_conditions():
    A, a = given((4, 5), "int32", 0, 3)
    for name in ("all", "any"):
        tensor = getattr(topi, name)(topi.greater(A, 0), axis=1)
        np.testing.assert_array_equal(run([(A, a)], tensor), getattr(np, name)(a > 0, 1))
    with pytest.raises(ValueError, match="axis 2 of a tensor of 2 dimensions"):
        topi.sum(A, axis=2)


SHAPES = {
    "transpose": (lambda A: topi.transpose(A, (2, 0, 1)), lambda a: a.transpose(2, 0, 1)),
    "transpose of all": (topi.transpose, np.transpose),
    "reshape": (lambda A: topi.reshape(A, (4, 6)), lambda a: a.reshape(4, 6)),
    "reshape to what is left": (lambda A: topi.reshape(A, (2, -1, 2)), lambda a: a.reshape(2, -1, 2)),
    "expand_dims": (lambda A: topi.expand_dims(A, -1), lambda a: a[..., None]),
    "squeeze": (lambda A: topi.squeeze(topi.expand_dims(A, 1, 2)), lambda a: a),
    "broadcast_to": (lambda A: topi.broadcast_to(A, (2, 2, 3, 4)), lambda a: np.broadcast_to(a, (2, 2, 3, 4))),
    "concatenate": (lambda A: topi.concatenate([A, A, A], 1), lambda a: np.concatenate([a, a, a], 1)),
    "stack": (lambda A: topi.stack([A, topi.negative(A)], 1), lambda a: np.stack([a, -a], 1)),
    "flatten": (topi.nn.flatten, lambda a: a.reshape(2, 12)),
    "pad": (
        lambda A: topi.nn.pad(A, (0, 1, 2), pad_value=7),
        lambda a: np.pad(a, ((0, 0), (1, 1), (2, 2)), constant_values=7),
    ),
}


@pytest.mark.parametrize("name", SHAPES)
def test_other_shapes(name):
    A, a = given((2, 3, 4))
    make, want = SHAPES[name]
    np.testing.assert_array_equal(run([(A, a)], make(A)), want(a))


def test_shapes_that_do_not_fit():
    A, _ = given((2, 3))
    for make, what in (
        (lambda: topi.reshape(A, (4, 2)), "has not as many elements"),
        (lambda: topi.add(A, te.placeholder((4,))), "cannot be broadcast"),
        (lambda: topi.squeeze(A, 0), "not all of extent 1"),
        (lambda: topi.transpose(A, (0, 0)), "each of 2 dimensions once"),
        (lambda: topi.nn.pad(A, (1,)), "dismatch"),
        (lambda: topi.nn.dense(A, te.placeholder((5, 4))), "factors of 3 columns and 4 rows"),
    ):
        with pytest.raises(ValueError, match=what):
            make()


def test_products():
    (A, a), (B, b), (C, c) = given((3, 4)), given((5, 4)), given((5,))
    tensor = topi.nn.dense(A, B, C)
    np.testing.assert_allclose(run([(A, a), (B, b), (C, c)], tensor), a @ b.T + c, rtol=1e-6)
    (D, d), (E, e) = given((2, 3, 4)), given((1, 6, 4))
    np.testing.assert_allclose(run([(D, d), (E, e)], topi.nn.batch_matmul(D, E)), d @ e.transpose(0, 2, 1), rtol=1e-6)
    found = topi.matmul(A, B, transp_b=True)
    assert found.op.name == "T_matmul_NT" and found.op.tag == "dense"


@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_softmax(axis):
    A, a = given((2, 3, 4))
    powers = np.exp(a - a.max(axis, keepdims=True))
    want = powers / powers.sum(axis, keepdims=True)
    np.testing.assert_allclose(run([(A, a)], topi.nn.softmax(A, axis)), want, rtol=1e-5)
    np.testing.assert_allclose(run([(A, a)], topi.nn.log_softmax(A, axis)), np.log(want), rtol=1e-4, atol=1e-6)


def test_activations():
    A, a = given((3, 4))
    np.testing.assert_array_equal(run([(A, a)], topi.nn.relu(A)), np.maximum(a, 0))
    np.testing.assert_allclose(run([(A, a)], topi.nn.leaky_relu(A, 0.5)), np.where(a > 0, a, a / 2))
    B, b = given((3,))
    np.testing.assert_array_equal(run([(A, a), (B, b)], topi.nn.bias_add(A, B, 0)), a + b[:, None])
    assert topi.add(1, 2) == 3
