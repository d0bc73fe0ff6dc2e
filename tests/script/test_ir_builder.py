"""Programs built by calls: each frame against the same program as a script, and what frames refuse."""

import gc
from collections.abc import Callable
from typing import Any

import pytest

import tilewright as tw
from tilewright.script import ir as SI
from tilewright.script import tir as S
from tilewright.script.ir_builder import IRBuilder
from tilewright.script.ir_builder import ir as I
from tilewright.script.ir_builder import tir as T


def build(body: Callable[[], Any]) -> Any:
    with IRBuilder() as builder:
        body()
    return builder.get()


def built_function(body: Callable[[], Any]) -> Any:
    def function() -> None:
        with T.prim_func(is_private=True):
            body()

    return build(function)


def refused(code: str, body: Callable[[], Any]) -> tw.ScriptError:
    with pytest.raises(tw.ScriptError) as caught:
        build(body)
    assert caught.value.code == code, caught.value
    return caught.value


def test_matmul_is_the_same_as_in_a_script() -> None:
    @S.prim_func
    def matmul(A: S.Buffer((16, 32)), B: S.Buffer((32, 8)), C: S.Buffer((16, 8))):
        S.func_attr({"tir.noalias": True})
        for i, j, k in S.grid(16, 8, 32):
            with S.block("C"):
                vi, vj, vk = S.axis.remap("SSR", [i, j, k])
                with S.init():
                    C[vi, vj] = 0.0
                C[vi, vj] += A[vi, vk] * B[vk, vj]

    with IRBuilder() as builder, T.prim_func():
        T.func_name("matmul")
        T.func_attr({"tir.noalias": True})
        A = T.arg("A", T.Buffer((16, 32)))
        B = T.arg("B", T.Buffer((32, 8)))
        C = T.arg("C", T.Buffer((16, 8)))
        with T.grid(16, 8, 32) as (i, j, k), T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                T.buffer_store(C, 0.0, [vi, vj])
            T.buffer_store(C, C[vi, vj] + A[vi, vk] * B[vk, vj], [vi, vj])
    tw.ir.assert_structural_equal(builder.get(), matmul)


def test_parameters() -> None:
    def body() -> None:
        T.arg("n", T.int64())
        T.arg("p", T.handle("float32", "shared"))
        a = T.arg("a", T.handle())
        T.func_ret(tw.ir.PrimType("int32"))
        T.match_buffer(a, (4,), "int8")
        T.evaluate(0)

    func = built_function(body)
    assert [p.name_hint for p in func.params] == ["n", "p", "a"]
    assert [p.dtype for p in func.params] == ["int64", "handle", "handle"]
    assert func.ret_type.dtype == "int32"


def test_a_parameter_keeps_the_identity_of_its_variable() -> None:
    n = tw.ir.Var("n", tw.ir.PrimType("int32"))

    def body() -> None:
        assert T.arg("n", n).same_as(n)
        T.evaluate(n)

    assert built_function(body).params[0].same_as(n)


def test_all_loops() -> None:
    def body() -> None:
        with (
            T.serial(1, 8, annotations={"key": 1}) as i,
            T.parallel(4) as j,
            T.vectorized(4) as k,
            T.unroll(2) as l,
            T.thread_binding(8, thread="threadIdx.x") as t,
        ):
            T.evaluate(i + j + k + l + t)

    @S.prim_func(private=True)
    def expected():
        for i in S.serial(1, 8, annotations={"key": 1}):
            for j in S.parallel(4):
                for k in S.vectorized(4):
                    for l in S.unroll(2):
                        for t in S.thread_binding(8, thread="threadIdx.x"):
                            S.evaluate(i + j + k + l + t)

    tw.ir.assert_structural_equal(built_function(body), expected)


def test_control_flow() -> None:
    def body() -> None:
        n = T.arg("n", T.int32())
        with T.If(n < 3):
            with T.Then():
                T.evaluate(1)
            with T.Else():
                T.evaluate(2)
        with T.While(n < 4):
            T.evaluate(3)
        with T.LetStmt(n + 1) as x, T.Assert(x > 0, "positive"), T.attr(x, "key", 7):
            T.evaluate(x)

    @S.prim_func(private=True)
    def expected(n: S.int32):
        if n < 3:
            S.evaluate(1)
        else:
            S.evaluate(2)
        while n < 4:
            S.evaluate(3)
        x = n + 1
        assert x > 0, "positive"
        S.attr(x, "key", 7)
        S.evaluate(x)

    tw.ir.assert_structural_equal(built_function(body), expected)


def test_memory() -> None:
    def body() -> None:
        with (
            T.decl_buffer((8,), "int8") as A,
            T.allocate([4], "float32", "local") as p,
            T.allocate_const([1, 2], "int32", [2]) as q,
            T.decl_buffer((4,), data=p) as B,
            T.realize(A[0:8], "global"),
        ):
            T.buffer_store(B, T.cast(A[0], "float32"), [0])
            T.evaluate(q)

    @S.prim_func(private=True)
    def expected():
        A = S.decl_buffer((8,), "int8")
        p = S.allocate([4], "float32", "local")
        q = S.allocate_const([1, 2], "int32", [2])
        B = S.decl_buffer((4,), data=p)
        S.realize(A[0:8], "global")
        B[0] = S.cast(A[0], "float32")
        S.evaluate(q)

    tw.ir.assert_structural_equal(built_function(body), expected)


def test_threads() -> None:
    def body() -> None:
        x = T.env_thread("threadIdx.x")
        with T.launch_thread(x, 32), T.launch_thread("blockIdx.x", 4) as y:
            T.evaluate(x + y)

    @S.prim_func(private=True)
    def expected():
        x = S.launch_thread("threadIdx.x", 32)
        y = S.launch_thread("blockIdx.x", 4)
        S.evaluate(x + y)

    tw.ir.assert_structural_equal(built_function(body), expected)


def test_a_statement_alone_is_the_result() -> None:
    assert isinstance(build(lambda: T.evaluate(1)), tw.ir.Evaluate)


def test_block_alone_keeps_the_note_about_missing_regions() -> None:
    def body() -> None:
        with T.block("b"):
            T.reads([])
            T.evaluate(0)

    realize = build(body)
    assert realize.block.annotations["tir.script_parsing_detect_access"].value == 2


def test_modules() -> None:
    with IRBuilder() as builder, I.ir_module():
        I.module_attrs({"key": 1})
        g = I.decl_function("g", tw.ir.PrimFunc([], {}, tw.ir.PrimType("int32"), {}, tw.ir.Evaluate(0)))
        with T.prim_func(is_private=True):
            T.func_name("f")
            T.evaluate(g(1))
        with T.prim_func(is_private=True):
            T.func_name("g")
            T.func_ret(tw.ir.PrimType("int32"))
            x = T.arg("x", T.int32())
            T.evaluate(T.ret(x))

    @SI.ir_module
    class Module:
        SI.module_attrs({"key": 1})

        @S.prim_func(private=True)
        def f():
            S.evaluate(cls.g(1))

        @S.prim_func(private=True)
        def g(x: S.int32) -> S.int32:
            return x

    tw.ir.assert_structural_equal(builder.get(), Module)


def test_names_are_given_once() -> None:
    def body() -> None:
        A = T.alloc_buffer((4,))
        IRBuilder.name("first", A)
        IRBuilder.name("second", A)
        assert A.name == "first" and A.data.name_hint == "first"
        T.evaluate(0)

    built_function(body)


def test_current_builder() -> None:
    assert not IRBuilder.is_in_scope()
    with IRBuilder() as outer:
        assert IRBuilder.current() is outer
        with IRBuilder() as inner:
            assert IRBuilder.current() is inner
            T.evaluate(1)
        assert IRBuilder.current() is outer
        T.evaluate(2)
    assert not IRBuilder.is_in_scope()
    assert inner.get().value.value == 1 and outer.get().value.value == 2


def test_an_exception_inside_leaves_no_trace() -> None:
    with pytest.raises(KeyError), IRBuilder(), T.prim_func(), T.serial(4):
        raise KeyError
    assert not IRBuilder.is_in_scope()


# ---- what frames refuse


def test_outside_of_a_builder() -> None:
    with pytest.raises(tw.ScriptError, match="outside of a script") as caught:
        T.evaluate(0)
    assert caught.value.code == "builder/none"


def test_nothing_built() -> None:
    assert refused("builder/empty", lambda: None)


def test_two_results() -> None:
    refused("builder/second-result", lambda: [T.evaluate(0), T.evaluate(1)])


def test_frames_left_open() -> None:
    with IRBuilder() as builder:
        T.prim_func().__enter__()
        with pytest.raises(tw.ScriptError) as caught:
            builder.get()
    assert caught.value.code == "builder/open"


def test_frames_opened_and_closed_out_of_order() -> None:
    def reopened() -> None:
        loop = T.serial(4)
        with T.prim_func():
            with loop:
                T.evaluate(0)
            with loop:
                pass

    refused("builder/reopened", reopened)

    def order() -> None:
        outer, inner = T.serial(4), T.serial(4)
        outer.__enter__()
        inner.__enter__()
        outer.__exit__(None, None, None)

    refused("builder/order", order)

    def closed() -> None:
        T.serial(4).__exit__(None, None, None)

    refused("builder/closed", closed)


def test_places() -> None:
    def statement_in_if() -> None:
        with T.If(T.int32() > 0):
            T.evaluate(0)

    refused("builder/place", statement_in_if)

    def function_in_function() -> None:
        with T.prim_func(), T.prim_func():
            pass

    refused("builder/place", function_in_function)

    def module_in_function() -> None:
        with T.prim_func(), I.ir_module():
            pass

    refused("builder/place", module_in_function)

    def then_alone() -> None:
        with T.Then():
            pass

    refused("builder/place", then_alone)

    def block_in_module() -> None:
        with I.ir_module(), T.block():
            pass

    refused("builder/place", block_in_module)
    for call in (
        lambda: T.alloc_buffer((4,)),
        lambda: T.match_buffer(T.handle(), (4,)),
        lambda: T.env_thread("threadIdx.x"),
        lambda: T.launch_thread("threadIdx.x", 4),
        lambda: T.func_name("f"),
        lambda: I.decl_function("f", None),
        lambda: I.def_function("f", tw.ir.PrimFunc([], {}, tw.ir.TupleType([]), {}, tw.ir.Evaluate(0))),
    ):
        refused("builder/place", call)


def test_branches() -> None:
    def no_then() -> None:
        with T.If(T.int32() > 0):
            pass

    refused("builder/no-then", no_then)

    def two() -> None:
        with T.If(T.int32() > 0):
            with T.Then():
                pass
            with T.Then():
                pass

    refused("builder/twice", two)


def test_function_headers() -> None:
    refused("builder/arg", lambda: built_function(lambda: T.arg("a", 3)))
    refused("builder/twice", lambda: built_function(lambda: [T.func_name("a"), T.func_name("b")]))
    refused(
        "builder/twice",
        lambda: built_function(lambda: [T.func_ret(tw.ir.PrimType("int32")), T.func_ret(tw.ir.PrimType("int32"))]),
    )
    n = tw.ir.Var("n", tw.ir.PrimType("int32"))
    refused("builder/same-param", lambda: built_function(lambda: [T.arg("a", n), T.arg("b", n)]))

    def no_name() -> None:
        with I.ir_module(), T.prim_func():
            T.evaluate(0)

    refused("builder/no-name", no_name)

    def declared_only() -> None:
        with I.ir_module():
            I.decl_function("f", None)

    refused("builder/undefined-function", declared_only)


def test_operators() -> None:
    with pytest.raises(tw.ScriptError) as caught:
        T.Ramp(0, 1, 0)
    assert caught.value.code == "ir/lanes"


def test_frames_of_another_builder() -> None:
    with IRBuilder():
        T.prim_func().__enter__()
        loop = T.serial(4)
        loop.__enter__()
    refused("builder/closed", lambda: loop.__exit__(None, None, None))
    with IRBuilder() as builder, T.serial(4) as i:
        outer = builder
        inner = T.serial(4)
        with inner:
            refused("builder/order", lambda: inner.__exit__(None, None, None))
            T.evaluate(i)
    assert "for v, v_1 in T.grid(4, 4)" in str(outer.get())


def test_a_builder_lives_as_long_as_it_is_the_current_one() -> None:
    def enter() -> None:
        IRBuilder().__enter__()

    enter()
    gc.collect()
    T.evaluate(7)
    current = IRBuilder.current()
    assert str(current.get()) == "T.evaluate(7)"
    current.__exit__(None, None, None)
    current.__exit__(None, None, None)  # a second time there is nothing to leave
    assert not IRBuilder.is_in_scope()
