"""What TVM's tutorials do, through the alias layer."""

from __future__ import annotations

from typing import Any

import pytest

HEAD = """
import numpy as np
import tilewright.compat.tvm
import tvm
from tvm import te
from tvm.script import ir as I, tir as T


@I.ir_module
class MyModule:
    @T.prim_func
    def add(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi] + 1.0


a, b = tvm.nd.array(np.arange(8, dtype="float32")), tvm.nd.array(np.zeros(8, "float32"))


def refused(error, text, function):
    try:
        function()
    except error as found:
        assert text in str(found), found
        return
    raise AssertionError("not refused")
"""

PROGRAMS = {
    "build, arrays and times": """
        lib = tvm.build(MyModule, target="llvm")
        lib["add"](a, b)
        np.testing.assert_array_equal(b.numpy(), np.arange(8) + 1)
        timer = lib.time_evaluator("add", tvm.cpu(0), number=3, repeat=2)
        result = timer(a, b)
        assert result.mean > 0 and len(result.results) == 2
    """,
    "schedules": """
        sch = tvm.tir.Schedule(MyModule)
        block = sch.get_block("B", func_name="add")
        (i,) = sch.get_loops(block)
        i0, i1, i2 = sch.split(i, factors=[2, 2, 2])
        sch.reorder(i0, i2, i1)
        sch.mod.show()
        sch.show()
        assert "i_0" in sch.mod.script() and "from tvm.script" in sch.mod.script()
        tvm.build(sch.mod, target="llvm")["add"](a, b)
    """,
    "tensor expressions": """
        n = te.var("n")
        A = te.placeholder((n,), dtype="float32", name="A")
        B = te.compute((n,), lambda *i: A(*i) + 1.0, name="B")
        func = te.create_prim_func([A, B])
        assert func.attrs["global_symbol"] == "main"
        lib = tvm.build(tvm.IRModule({"main": func.with_attr({"global_symbol": "main"})}), target="llvm")
        lib(a, b)
        np.testing.assert_array_equal(b.numpy(), np.arange(8) + 1)
    """,
    "targets as contexts": """
        assert tvm.target.Target.current() is None
        refused(ValueError, "no current target", lambda: tvm.target.Target.current(allow_none=False))
        with tvm.target.Target("llvm -num-cores 1", host="llvm") as outer:
            assert tvm.target.Target.current() == outer
            assert isinstance(outer, tvm.target.Target)
            with tvm.target.Target("llvm -mcpu=skylake-avx512"):
                assert "skylake" in str(tvm.target.Target.current())
            lib = tvm.build(MyModule)
            assert lib.threads == 1
        assert tvm.target.Target.current() is None
    """,
    "pass contexts": """
        with tvm.transform.PassContext(opt_level=3) as context:
            assert tvm.transform.PassContext.current() is context
            tvm.build(MyModule, target="llvm")(a, b)
        with tvm.transform.PassContext(config={"tir.disable_vectorize": True, "tir.UnrollLoop": {"auto_max_step": 4}}):
            tvm.build(MyModule, target="llvm")(a, b)
        @T.prim_func
        def gather(I: T.Buffer((8,), "int32"), A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
            for i in range(8):
                with T.block("B"):
                    vi = T.axis.spatial(8, i)
                    B[vi] = A[I[vi]]
        with tvm.transform.PassContext(config={"tir.instrument_bound_checkers": True}):
            checked = tvm.build(gather, target="llvm")
        far = tvm.nd.array(np.arange(8, dtype="int32") + 5)
        refused(ValueError, "not in [0, 8)", lambda: checked(far, a, b))
        refused(TypeError, "no option 'tir.vectorize'",
                lambda: tvm.transform.PassContext(config={"tir.vectorize": 1}))
        refused(TypeError, "PassContext(trace_stack=...)", lambda: tvm.transform.PassContext(trace_stack=[1]))
    """,
    "lower": """
        lowered = tvm.lower(MyModule)
        assert "T.block(" not in lowered.script()
        tvm.build(lowered, target="llvm")(a, b)
        np.testing.assert_array_equal(b.numpy(), np.arange(8) + 1)
        assert "renamed" in tvm.lower(MyModule["add"], name="renamed").script()
        refused(TypeError, "te schedules", lambda: tvm.lower(MyModule, [a, b]))
    """,
    "what is missing is named": """
        refused(AttributeError, "no tvm.relay yet", lambda: tvm.relay)
        tune = tvm.meta_schedule.tune_tir
        refused(ValueError, "no space", lambda: tune(MyModule, "llvm", "/tmp", 4, space="outer"))
        refused(ValueError, "no space", lambda: tune(MyModule, "llvm", "/tmp", 4, space="outer", task_name="main"))
        elsewhere = lambda: tune(MyModule, "llvm", "/tmp", 4, runner="rpc", database="memory")
        refused(RuntimeError, "no tracker of RPC", elsewhere)
        refused(RuntimeError, "cannot be a host", lambda: tvm.target.Target("llvm", host="interpreter"))
    """,
    "accesses without indices": """
        @T.prim_func
        def f(A: T.Buffer((), "float32"), B: T.Buffer((), "float32")):
            B[()] = A[()] + 1.0
        tvm.ir.assert_structural_equal(f, f, True)
        tvm.ir.assert_structural_equal(tvm.script.from_source(f.script()), f, map_free_vars=True)
        x, y = tvm.nd.array(np.array(1, "float32")), tvm.nd.array(np.array(0, "float32"))
        tvm.build(f)(x, y)
        assert y.numpy() == 2
    """,
    "differences in the body come before those in attributes": """
        @T.prim_func
        def one(A: T.Buffer((8,), "float32")):
            A[0] = 1.0
        @T.prim_func
        def two(A: T.Buffer((8,), "float32")):
            A[1] = 1.0
        place = "ValueError: StructuralEqual check failed, caused by lhs at <root>.body"
        refused(ValueError, place, lambda: tvm.ir.assert_structural_equal(one, two))
        renamed = one.with_attr("global_symbol", "renamed")
        refused(ValueError, "<root>.attrs", lambda: tvm.ir.assert_structural_equal(one, renamed))
    """,
    "free variables": """
        x, y = tvm.tir.Var("x", "int32"), tvm.tir.Var("y", "int32")
        tvm.ir.assert_structural_equal(x + 1, y + 1, True)
        tvm.ir.assert_structural_equal(x + 1, y + 1, map_free_vars=True)
        refused(ValueError, "", lambda: tvm.ir.assert_structural_equal(x + 1, y + 1))
    """,
}


@pytest.mark.parametrize("what", PROGRAMS)
def test_program(what: str, python: Any, words_of_tvm: None) -> None:
    python(HEAD, PROGRAMS[what])
