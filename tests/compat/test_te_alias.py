"""tvm.te: tensors by functions and by statements over buffers of one's own."""

import numpy as np
import pytest
import tvm
from tvm import te, tir
from tvm.script import tir as T


@T.prim_func
def doubled(a: T.handle, b: T.handle):
    A = T.match_buffer(a, (4,))
    B = T.match_buffer(b, (4,))
    for i in range(4):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            B[vi] = A[vi] * T.float32(2)


@T.prim_func
def added(A: T.Buffer((4,)), B: T.Buffer((4,))):
    for i in range(4):
        B[i] = B[i] + A[i]


def test_a_tensor_by_a_function():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
    C = te.extern_primfunc([B], doubled)
    D = te.compute((4,), lambda i: C[i] * 3.0, name="D")
    result = tvm.nd.empty((4,))
    tvm.build(te.create_prim_func([A, D]), "llvm")(tvm.nd.array(np.arange(4, dtype="float32")), result)
    assert list(result) == [6, 12, 18, 24]
    assert te.extern_primfunc([A], added).name == "B"


def test_functions_that_do_not_fit():
    with pytest.raises(ValueError, match="has the shape"):
        te.extern_primfunc([te.placeholder((5,))], doubled)
    with pytest.raises(ValueError, match="reads 1 buffers, but there are 2 tensors"):
        te.extern_primfunc([te.placeholder((4,))] * 2, doubled)

    @T.prim_func
    def ones(B: T.Buffer((4,))):
        for i in range(4):
            B[i] = T.float32(1)

    with pytest.raises(ValueError, match="reads none"):
        te.extern_primfunc([], ones)


def test_a_statement_over_buffers_of_its_own():
    A = te.placeholder((4,), name="A")
    own = tir.decl_buffer((4,), name="own")

    def call(ins, outs):
        return tir.call_packed("f", ins[0].access_ptr("r"), ins[0][1], outs[0].access_ptr("w"))

    with_buffers = te.create_prim_func([A, te.extern((4,), [A], call, name="C", in_buffers=[own])])
    without = te.create_prim_func([A, te.extern((4,), [A], call, name="C")])
    tvm.ir.assert_structural_equal(with_buffers, without)
    with pytest.raises(ValueError, match="1 inputs, but 2 buffers"):
        te.extern((4,), [A], call, in_buffers=[own, own])


def test_reductions_have_one_name_in_te_and_tir():
    A, k = te.placeholder((4, 4), name="A"), te.reduce_axis((0, 4), name="k")

    def rows(reduce):
        return lambda i: reduce(A[i, k], axis=k)

    for name in ("sum", "min", "max"):
        reduced = [te.compute((4,), rows(getattr(of, name)), name="B") for of in (te, tir)]
        tvm.ir.assert_structural_equal(*(te.create_prim_func([A, tensor]) for tensor in reduced))
    x = tir.Var("x", "int32")
    assert str(tir.max(x, 1)) == "T.max(x, 1)" and tir.min(3, 2) == 2
    product = tir.comm_reducer(fcombine=lambda a, b: a * b, fidentity=lambda dtype: tir.const(1, dtype), name="product")
    assert isinstance(product(A[0, k], axis=k), type(te.sum(A[0, k], axis=k)))


def test_small_names_of_tensors():
    A = te.placeholder((4, 3), "int8", name="A")
    sums = te.compute((4,), lambda i: (A[i, 0], A[i, 1]), name="S")
    assert (A.op.shape, A.op.dtype, A.op.num_outputs, A.value_index) == ((4, 3), "int8", 1, 0)
    assert [tensor.value_index for tensor in sums] == [0, 1] and sums[0].op.num_outputs == 2
    assert [axis.dom.extent for axis in sums[0].axis] == [4]
    assert isinstance(A.op, te.Operation) and isinstance(sums[0].op, te.BaseComputeOp)
