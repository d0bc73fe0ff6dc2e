"""Products with sparse matrices. Kernels are compiled once for each kind of structure and type, by heuristics."""

from __future__ import annotations

import functools
import sys
import time
from typing import Any

import numpy as np

from tilewright import _core
from tilewright.errors import ArgumentError, ArgumentTypeError
from tilewright.heuristics.cpu import schedule_for_cpu
from tilewright.kernel.kernel import Kernel, compile_quietly
from tilewright.schedule import Schedule
from tilewright.sparse import programs
from tilewright.sparse.convert import LANES, detach, to_csr, to_sell
from tilewright.sparse.matrix import Conversion, Matrix
from tilewright.task.arguments import aligned_empty, aligned_zeros

#: an array of NumPy or a tensor of PyTorch
Dense = Any
#: products on CSR before a matrix is converted for more: about what the conversion costs, so that it never costs more
#: than twice what the better choice would have
PRODUCTS_ON_CSR = 20
#: below, a product takes less time than calling it
MANY_NONZEROS = 2000


def spmm(a: Matrix, b: Dense, out: Dense | None = None) -> Any:
    """Multiply a sparse matrix (m, n) by a dense one (n, k), on all threads.

    The kernel works on CSR. A matrix of another kind is converted by the first product; :func:`conversions` reports the
    time. Each later product gathers its values again, if they may have changed. A kernel is compiled for each number
    of columns k.

    Args:
        a: the sparse matrix.
        b: contiguous, of the type of `a`: an array of NumPy, or a tensor of PyTorch.
        out: where the result goes, (m, k); a new array, or a tensor where `b` is one, if None.

    Returns:
        The product, which is `out` where that is given.

    Raises:
        tilewright.ArgumentError: Shapes or types do not fit.
    """
    _check(a, "b", b, (a.shape[1], None) if isinstance(a, Matrix) else ())
    csr = to_csr(a)
    columns = int(b.shape[1])
    out = _result(b, (a.shape[0], columns), out)
    if not columns:
        return out
    s = csr.structure
    _kernel("spmm", columns, a.dtype, s.index_dtype)(s.indptr, s.indices, csr.values, b, out)
    return out


def spmv(a: Matrix, x: Dense, out: Dense | None = None) -> Any:
    """Multiply a sparse matrix (m, n) by a vector (n,), on all threads.

    The first products work on CSR. After so many of them that a conversion would have paid, a matrix whose values
    nobody can change (``from_scipy(matrix, copy=True)``) is converted to SELL, slices of rows of similar length, and
    the copy is kept. :func:`prepare_spmv` does so at once with any matrix. Each row is summed from its first nonzero to
    its last in both formats, so that results are the same.

    Args:
        a: the sparse matrix; one that is not in CSR is converted with the first product (:func:`conversions`).
        x: contiguous, of the type of `a`: an array of NumPy, or a tensor of PyTorch.
        out: where the result goes, (m,); a new array, or a tensor where `x` is one, if None.

    Returns:
        The product, which is `out` where that is given.

    Raises:
        tilewright.ArgumentError: Shapes or types do not fit.
    """
    _check(a, "x", x, (a.shape[1],) if isinstance(a, Matrix) else ())
    out = _result(x, (a.shape[0],), out)
    csr = to_csr(a)
    if "sell" in csr._converted or (csr._is_constant and csr._products >= PRODUCTS_ON_CSR and a.nnz >= MANY_NONZEROS):
        _spmv_sell(csr, x, out)
    else:
        csr._products += 1
        _spmv_csr(csr, x, out)
    return out


def prepare_spmv(a: Matrix) -> Conversion:
    """Convert a matrix to SELL, on which later calls of :func:`spmv` work, and return what that has cost.

    Args:
        a: the matrix. From now on its values are a copy: changes of the array that it was made of have no effect.
    """
    _check_matrix(a)
    detach(a)
    to_sell(to_csr(a))
    return conversions(a)[-1]


def conversions(a: Matrix) -> list[Conversion]:
    """Return what the formats have cost that operators have converted a matrix to.

    Kernels are compiled before, and are not counted. The first call measures a product of the matrix in CSR.

    Args:
        a: the matrix.
    """
    _check_matrix(a)
    csr = to_csr(a)
    costs = a._costs | csr._costs
    if not csr._spmv_seconds and costs:
        x, y = (aligned_zeros((extent,), a.dtype) for extent in reversed(a.shape))
        csr._spmv_seconds = min(_seconds(_spmv_csr, csr, x, y) for _ in range(4))
    return [Conversion(name, seconds, seconds / csr._spmv_seconds) for name, seconds in costs.items()]


def _seconds(function: Any, *args: Any) -> float:
    start = time.perf_counter()
    function(*args)
    return time.perf_counter() - start


def _spmv_csr(csr: Matrix, x: Dense, out: Dense) -> None:
    s = csr.structure
    _kernel("spmv", 0, csr.dtype, s.index_dtype)(s.indptr, s.indices, csr.values, x, out)


def _spmv_sell(csr: Matrix, x: Dense, out: Dense) -> None:
    sell, values = to_sell(csr)
    kernel_of = _kernel("spmv_sell", LANES, csr.dtype, csr.structure.index_dtype)
    kernel_of(sell.starts, sell.indices, values, sell.lengths, sell.full, sell.order, x, out)


def sddmm(a: Matrix, x: Dense, y: Dense) -> Matrix:
    """Compute the elements of ``x @ y.T`` that a sparse matrix (m, n) holds, on all threads (sampled dense-dense matrix
    multiplication). The values of `a` take no part.

    Args:
        a: matrix whose structure selects the elements; if not in CSR, it is converted first.
        x: (m, k), contiguous, of the type of `a`.
        y: (n, k), contiguous, of the type of `a`.

    Returns:
        A matrix of the structure of `a`, in CSR.

    Raises:
        tilewright.ArgumentError: Shapes or types do not fit.
    """
    _check(a, "x", x, (a.shape[0], None) if isinstance(a, Matrix) else ())
    columns = int(x.shape[1])
    _check(a, "y", y, (a.shape[1], columns))
    s = to_csr(a).structure
    values = (aligned_empty if columns else aligned_zeros)((len(s.indices),), a.dtype)
    if columns:
        _kernel("sddmm", columns, a.dtype, s.index_dtype)(s.indptr, s.indices, x, y, values)
    result = Matrix(s, values)
    result._is_constant = True
    return result


def _check_matrix(a: Any) -> None:
    if not isinstance(a, Matrix):
        hint = "make a matrix once, and keep it: tw.sparse.from_scipy(a), or from_torch"
        raise ArgumentTypeError.of("sparse/matrix", f"a is of type {type(a).__name__}", hint)


def _check(a: Any, name: str, dense: Any, shape: tuple[int | None, ...]) -> None:
    _check_matrix(a)
    _check_array(name, dense)
    given = dense.shape
    if len(given) != len(shape) or any(s not in (None, g) for s, g in zip(shape, given, strict=True)):
        wanted = ", ".join("k" if extent is None else str(extent) for extent in shape)
        fits = f"a is {a.shape[0]} x {a.shape[1]}, so {name} has the shape ({wanted})"
        raise ArgumentError.of("sparse/shape", f"{name} is of shape {tuple(given)}", fits)
    if dense.dtype != a.values.dtype and (dtype := str(dense.dtype).removeprefix("torch.")) != a.dtype:
        raise ArgumentError.of("sparse/dtype", f"{name} is of {dtype}, and a of {a.dtype}", "convert one of them")
    _check_memory(name, dense)


def _check_array(name: str, dense: Any) -> None:
    if not hasattr(dense, "shape") or not hasattr(dense, "dtype"):
        message = f"{name} is of type {type(dense).__name__}"
        hint = f"give an array of NumPy or a tensor of PyTorch: numpy.asarray({name}, dtype=a.dtype)"
        raise ArgumentTypeError.of("sparse/arrays", message, hint)


def _check_memory(name: str, dense: Any) -> None:
    """Check what kernels would report under the names of their own parameters."""
    if isinstance(dense, np.ndarray):
        compact = f"numpy.ascontiguousarray({name})" if not dense.flags.c_contiguous else ""
    elif getattr(dense, "requires_grad", False):
        message = f"{name} records gradients, and products record none"
        raise ArgumentError.of("sparse/gradient", message, f"pass {name}.detach()")
    else:
        compact = "" if getattr(dense, "is_contiguous", lambda: True)() else f"{name}.contiguous()"
    if compact:
        hint = f"pass a copy: {compact}"
        if name == "out":
            hint = "omit it, and copy the result into your array: out[:] = the product"
        raise ArgumentError.of("sparse/contiguous", f"{name} is not contiguous", hint)


def _result(like: Any, shape: tuple[int, ...], out: Any) -> Any:
    """Return the array for the result: a tensor of PyTorch if the operand is one."""
    if out is not None:
        _check_array("out", out)
        if out.shape != shape:
            message = f"out is of shape {tuple(out.shape)}"
            raise ArgumentError.of("sparse/shape", message, f"the result has the shape {shape}")
        # Names of types take longer than all else; they are compared if one is an array and the other a tensor.
        if out.dtype is not like.dtype:
            dtype, wanted = (str(each.dtype).removeprefix("torch.") for each in (out, like))
            if dtype != wanted:
                raise ArgumentError.of("sparse/dtype", f"out is of {dtype}", f"the result is of {wanted}")
        _check_memory("out", out)
        if isinstance(out, np.ndarray) and not out.flags.writeable:
            raise ArgumentError.of("sparse/read-only", "out is read-only", "give an array that can be written")
        return out
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(like, torch.Tensor):
        return torch.empty(shape, dtype=like.dtype)
    return aligned_empty(shape, np.dtype(str(like.dtype)))


@functools.lru_cache(maxsize=256)
def _kernel(name: str, columns: int, dtype: str, index_dtype: str) -> Kernel:
    """Return the kernel of an operator."""
    sizes = (columns,) if columns else ()
    program = getattr(programs, name)(*sizes, dtype, index_dtype)
    scheduled = Schedule(program)
    schedule_for_cpu(scheduled, _core.Target("native"), best=True)
    compiled = compile_quietly(scheduled)
    assert isinstance(compiled, Kernel)
    return compiled
