"""Calling kernels with PyTorch tensors."""

import numpy as np
import pytest

import tilewright as tw
from tilewright.script import tir as T

pytestmark = pytest.mark.usefixtures("with_torch")


def ones(*shape, **options):
    return torch.ones(*shape, **options)


def test_tensors_are_taken_without_copies(kernels):
    a, b, c = torch.arange(6.0).reshape(2, 3), ones(2, 3), torch.zeros(2, 3)
    kernels["add"](a, b, c)
    assert torch.equal(c, a + 1)
    kernels["add"](a, np.ones((2, 3), np.float32), c)
    assert torch.equal(c, a + 1)


def test_views_and_transposes(kernels):
    base = torch.arange(48.0).reshape(6, 8)
    for view in (base, base.t(), base[::2, 1:5], base[1:], base[0].expand(4, 8), base[:, :0]):
        out = torch.empty(1)
        kernels["total"](view, out)
        rows, columns = torch.meshgrid(torch.arange(view.shape[0]), torch.arange(view.shape[1]), indexing="ij")
        assert out.item() == (view * (10 * rows + columns)).sum().item()
    with pytest.raises(tw.ArgumentError, match="expected compact row-major data"):
        kernels["add"](base.t(), base.t(), torch.empty(8, 6))


@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "uint8", "float16", "bfloat16", "float64", "complex64"])
def test_element_types(kernels, dtype):
    source = torch.tensor([1, 0, 1, 1, 0]).to(getattr(torch, dtype))
    target = torch.zeros_like(source)
    kernels[f"copy_{dtype}"](source, target)
    assert torch.equal(source, target)
    with pytest.raises(tw.ArgumentError, match=f"expected dtype float32, got {dtype}"):
        kernels["copy_float32"](source, target)


@pytest.mark.parametrize("name", ["A", "C"])
@pytest.mark.parametrize("make", [lambda t: t.requires_grad_(), lambda t: torch.nn.Parameter(t)])
def test_gradients_are_refused(kernels, name, make):
    arguments = {"A": ones(2, 2), "B": ones(2, 2), "C": torch.zeros(2, 2)}
    arguments[name] = make(arguments[name])
    with pytest.raises(tw.ArgumentError, match=f"argument {name}: .* cannot be shared") as error:
        kernels["add"](**arguments)
    assert error.value.code == "call/argument"
    assert error.value.hint == f"pass {name}.detach(): a kernel records no gradients"
    arguments[name] = arguments[name].detach()
    kernels["add"](**arguments)
    assert arguments["C"][1, 1] == 2


def test_tensors_that_memory_does_not_show(kernels):
    b, c = ones(2, 2), torch.zeros(2, 2)
    negated = ones(2, 2, dtype=torch.complex64).conj().imag
    assert negated.is_neg()
    for tensor in (torch._neg_view(b), b.to_sparse(), torch.empty(2, 2, device="meta")):
        with pytest.raises(tw.ArgumentError, match="cannot be shared") as error:
            kernels["add"](tensor, b, c)
        assert "\n" not in error.value.message
        assert error.value.hint


def test_results_of_tensors_are_tensors():
    """What is left out is made as what is given is: tensors where all are, arrays where one is an array."""

    @T.prim_func
    def twice(
        A: T.Buffer((3, 4), "float32"), s: T.float32, B: T.Buffer((3, 4), "float32"), C: T.Buffer((3,), "bfloat16")
    ):
        for i, j in T.grid(3, 4):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * s
        for i in range(3):
            with T.block("C"):
                vi = T.axis.spatial(3, i)
                C[vi] = T.Cast("bfloat16", A[vi, 0])

    kernel = tw.compile(twice)
    a = torch.arange(12.0).reshape(3, 4)
    b, c = kernel(a, np.float32(2))
    assert torch.equal(b, 2 * a) and c.dtype == torch.bfloat16 and torch.equal(c, a[:, 0].bfloat16())
    assert isinstance(kernel(a.numpy(), 2.0)[0], np.ndarray)
    assert isinstance(kernel(a.numpy(), 2.0, C=torch.zeros(3, dtype=torch.bfloat16)), np.ndarray)
