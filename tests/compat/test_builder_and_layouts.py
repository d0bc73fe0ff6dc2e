"""tvm.tir.ir_builder, and layouts by name."""

import numpy as np
import pytest
import tvm
from tvm import tir
from tvm.script import tir as T


def test_programs_statement_by_statement():
    ib = tir.ir_builder.create()
    n, A = tir.Var("n", "int32"), tir.decl_buffer((8, 4), "float32", "A")
    to = ib.buffer_ptr(A)
    rows = ib.allocate("float32", 4, name="rows", scope="global")
    with ib.for_range(0, n, name="k") as k, ib.for_range(0, 4, name="j", kind="unroll") as j:
        rows[j] = to[k, j] + 1.0
        with ib.if_scope(ib.likely(k < 3)):
            to[k, j] = rows[j] * 2
        with ib.else_scope():
            to[k * 4 + j] = 0.0
    made = tir.PrimFunc([n, A], ib.get()).with_attr("global_symbol", "main")

    @T.prim_func
    def main(n: T.int32, A: T.Buffer((8, 4), "float32")):
        rows_data = T.allocate([4], "float32", "global")
        rows = T.Buffer((4,), "float32", data=rows_data)
        for k in range(n):
            for j in T.unroll(4):
                rows[j] = A[k, j] + T.float32(1)
                if T.likely(k < 3):
                    A[k, j] = rows[j] * T.float32(2)
                else:
                    A[(k * 4 + j) // 4, (k * 4 + j) % 4] = T.float32(0)

    tvm.ir.assert_structural_equal(made, main)
    values = np.arange(32, dtype="float32").reshape(8, 4)
    want = np.concatenate([(values[:3] + 1) * 2, np.zeros((2, 4)), values[5:]])
    tvm.build(tvm.IRModule({"main": made}))(5, values)
    np.testing.assert_array_equal(values, want)


def test_names_attributes_and_lets():
    ib = tir.ir_builder.create()
    ptr = ib.pointer("int32", name="P")
    tx = tvm.te.thread_axis("threadIdx.x")
    ib.scope_attr(tx, "thread_extent", 8)
    x = ib.let("x", tx.var + 1)
    with ib.for_range(2, x) as i, ib.for_range(0, tir.const(3, "int64")) as j:
        ptr[i] = 1
    with ib.while_loop(ptr[0] < 3), ib.new_scope():
        ib.emit(tir.call_extern("int32", "step", ptr[0]))
    attr = ib.get()
    assert (attr.attr_key, attr.value.value, attr.body.var.name) == ("thread_extent", 8, "x")
    loop = attr.body.body.seq[0]
    assert (loop.loop_var.name, loop.body.loop_var.name) == ("i", "j")
    assert (loop.min.value, loop.loop_var.dtype, loop.body.loop_var.dtype) == (2, "int32", "int64")
    assert tvm.arith.Analyzer().can_prove_equal(loop.extent, x - 2)
    assert isinstance(attr.body.body.seq[1], tir.While) and ptr.asobject().name == "P" and ptr.dtype == "int32"
    assert j.name == "j"


def test_wrong_uses_of_a_builder():
    ib = tir.ir_builder.create()
    ptr = ib.pointer("float32")
    with pytest.raises(ValueError, match="int32 is stored to ptr, which holds float32"):
        ptr[0] = tir.const(1, "int32")
    with pytest.raises(RuntimeError, match="else_scope can only follow an if_scope"):
        ib.else_scope()
    with pytest.raises(ValueError, match="not bound"):
        ib.for_range(0, 4, kind="bound")
    with pytest.raises(IndexError, match="1 dimensions, and is indexed by 2"):
        ptr[0, 1]
    with ib.for_range(0, 4), pytest.raises(RuntimeError, match="inside construction scope"):
        ib.get()


def test_layouts():
    layout = tir.layout("NCHW16c")
    assert isinstance(layout, tir.Layout) and len(layout) == 5 and str(layout) == "NCHW16c"
    assert (layout.factor_of("c"), layout.factor_of("C"), layout.factor_of("N")) == (16, 16, -1)
    assert (layout.index_of("N"), layout.index_of("c"), layout.index_of("O")) == (0, 4, -1)
    assert "N" in layout and "n" not in layout and [layout[0], layout[4]] == ["N", "c"]
    assert [axis.var.name for axis in layout.axes] == ["N", "C", "H", "W", "c"]
    assert layout == tir.Layout("NCHW16c") != tir.layout("NCHW")
    with pytest.raises(IndexError):
        layout[5]


@pytest.mark.parametrize("name", ["NN", "N16n8n", "C16d", "N0n", "n", "16N", "N-C"])
def test_names_that_are_no_layout(name):
    with pytest.raises(ValueError, match="is not a layout"):
        tir.layout(name)


@pytest.mark.parametrize(("source", "target"), [("NCHW", "NCHW16c"), ("NCHW16c", "NHWC8c"), ("HW", "WH4h2w")])
def test_conversions_of_layouts_reach_each_element(source, target):
    sizes = {"N": 2, "C": 32, "H": 8, "W": 4}
    conversion = tir.bijective_layout(source, target)
    assert isinstance(conversion, tir.BijectiveLayout)
    src = tir.layout(source)
    shape = [
        src.factor_of(axis) if axis.islower() else sizes[axis] // max(src.factor_of(axis), 1)
        for axis in (src[d] for d in range(len(src)))
    ]
    image = [int(extent) for extent in conversion.forward_shape(shape)]
    assert np.prod(image) == np.prod(shape)
    assert [int(extent) for extent in conversion.backward_shape(image)] == shape
    reached = set()
    for index in np.ndindex(*shape):
        there = tuple(int(i) for i in conversion.forward_index(index))
        assert all(0 <= i < n for i, n in zip(there, image, strict=True))
        reached.add(there)
        assert tuple(int(i) for i in conversion.backward_index(there)) == index
        if len(reached) == 300:
            break
    assert len(reached) == min(300, np.prod(shape))


def test_layouts_of_other_axes_have_no_conversion():
    for source, target in [("NCHW", "ABCD"), ("__undef__", "NCHW"), ("NCHW", "__undef__"), ("", "NCHW")]:
        assert tir.bijective_layout(source, target) is None


def test_functions_return_values_without_saying_their_type():
    """TVM's functions do; Tilewright's own are refused."""

    @T.prim_func
    def five():
        T.evaluate(T.ret(5))

    @T.prim_func(private=True)
    def six():
        return T.int64(6)

    assert "return 5" in five.script() and "return T.int64(6)" in six.script() and "global_symbol" not in six.attrs
    from tilewright.script import tir as own

    with pytest.raises(tvm.error.TVMError, match="verify/return"):

        @own.prim_func
        def seven():
            own.evaluate(own.ret(7))

    with pytest.raises(tvm.error.TVMError, match="n_undefined"):

        @T.prim_func
        def eight():
            T.evaluate(T.ret(n_undefined))


def test_pointers_into_buffers():
    n = tir.Var("n", "int32")
    A = tir.decl_buffer((n, 8), "float32", name="A")
    read, both = (str(A.access_ptr(mask)) for mask in (tir.Buffer.READ, tir.Buffer.READ | tir.Buffer.WRITE))
    assert read == str(A.access_ptr("r")) and both == str(A.access_ptr("rw")) != str(A.access_ptr("w"))
    vectors = A.access_ptr("w", content_lanes=4, offset=8)
    assert [str(arg) for arg in vectors.args[0].args] == [] and vectors.args[0].dtype == "float32x4"
    assert (str(vectors.args[2]), str(vectors.args[3])) == ("2", "(n * 8 - 8) // 4")
    assert A.access_ptr("r", ptr_type="int64").dtype == "int64" and A.access_ptr("r").dtype == "handle"
    with pytest.raises(ValueError, match="no letter 'x'") as raised:
        A.access_ptr("rx")
    assert raised.value.code == "ir/access-mask"


def test_modules_under_a_name(words_of_tvm):
    from tvm.script import ir as I

    @I.ir_module
    class Calls:
        @T.prim_func
        def main(A: T.Buffer((4,), "float32")):
            Calls.fill(A.data)

        @T.prim_func(private=True)
        def fill(data: T.handle("float32")):
            T.evaluate(0)

    text = Calls.script(name="Foo", module_alias="")
    assert "class Foo:" in text and "Foo.fill(A.data)" in text and "def main(" in text
    tvm.ir.assert_structural_equal(tvm.script.from_source(text), Calls)
    assert "class Module:" in Calls.script()
