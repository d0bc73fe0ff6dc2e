"""`import tvm` means Tilewright, in each of the three ways to start it."""

import subprocess
import sys
import textwrap

import pytest


def run(*args, cwd=None):
    done = subprocess.run([sys.executable, *args], capture_output=True, text=True, cwd=cwd, timeout=280)
    return done.returncode, done.stdout, done.stderr


PROGRAM = """
import tvm
from tvm import tir
from tvm.script import tir as T
from tvm.tir.schedule.testing import verify_trace_roundtrip

@T.prim_func
def double(A: T.Buffer((16,)), B: T.Buffer((16,))):
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi] * T.float32(2)

def test_split():
    sch = tir.Schedule(double, debug_mask="all")
    (i,) = sch.get_loops("B")
    sch.split(i, factors=[None, 4])
    assert isinstance(sch, tir.Schedule) and isinstance(double, tvm.tir.PrimFunc)
    verify_trace_roundtrip(sch, double)

if __name__ == "__main__":
    test_split()
    print("ran", tvm.__name__)
"""


def test_as_an_import(python):
    assert python("import tilewright.compat.tvm\n" + PROGRAM) == ["ran tilewright.compat.tvm"]


def test_as_a_runner(tmp_path):
    (tmp_path / "neighbor.py").write_text("name = 'beside'")
    (tmp_path / "script.py").write_text(PROGRAM + "\n    import sys, neighbor\n    print(sys.argv[1:], neighbor.name)")
    code, out, err = run("-m", "tilewright.compat.tvm", str(tmp_path / "script.py"), "-x", "y")
    assert code == 0, err
    assert out.splitlines() == ["ran tilewright.compat.tvm", "['-x', 'y'] beside"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [([], 2, "usage"), (["--help"], 0, "usage"), (["missing.py"], 2, "there is no file missing.py")],
)
def test_runner_says_how(arguments, code, message):
    got, _, err = run("-m", "tilewright.compat.tvm", *arguments)
    assert got == code
    assert message in err


def test_as_a_plugin_of_pytest(tmp_path):
    (tmp_path / "test_it.py").write_text(PROGRAM)
    code, out, _ = run("-m", "pytest", "-q", "-p", "tilewright.compat.tvm", "-p", "no:cacheprovider", str(tmp_path))
    assert code == 0, out
    assert "1 passed" in out


def test_parameters_of_tests(tmp_path):
    (tmp_path / "test_it.py").write_text(
        textwrap.dedent("""
        import pytest, tvm.testing

        one = tvm.testing.parameter(1, 2)
        named = tvm.testing.parameter(by_dict={"small": 3, "large": 4})
        left, right = tvm.testing.parameters((1, 10), (2, 20))

        @tvm.testing.fixture
        def total(one, named):
            return one + named

        @tvm.testing.fixture(cache_return_value=True)
        def items():
            return []

        def test_total(one, named, total):
            assert total == one + named

        def test_together(left, right):
            assert right == 10 * left

        def test_copies(items, one):
            assert items == []
            items.append(one)

        @tvm.testing.requires_cuda
        def test_gpu():
            raise AssertionError("must be skipped")

        @tvm.testing.requires_llvm
        def test_llvm():
            pass

        if __name__ == "__main__":
            tvm.testing.main()
    """)
    )
    code, out, _ = run("-m", "pytest", "-q", "-p", "tilewright.compat.tvm", "-p", "no:cacheprovider", str(tmp_path))
    assert code == 0, out
    assert "9 passed, 1 skipped" in out
    code, out, _ = run("-m", "tilewright.compat.tvm", str(tmp_path / "test_it.py"), "-q", "-k", "llvm")
    assert code == 0, out


def test_strides_of_compact_buffers(python):
    assert python("""
        import tilewright.compat.tvm
        import tvm
        from tvm.script import tir as T

        @T.prim_func
        def with_strides(A: T.Buffer((4, 4), "int32")):
            B = T.alloc_buffer((4, 4), "int32", strides=[1])
            for i, j in T.grid(4, 4):
                B[i, j] = A[i, j]

        @T.prim_func
        def compact(A: T.Buffer((4, 4), "int32")):
            B = T.alloc_buffer((4, 4), "int32")
            for i, j in T.grid(4, 4):
                B[i, j] = A[i, j]

        tvm.ir.assert_structural_equal(with_strides, compact.with_attr("global_symbol", "with_strides"))
        print("same")
    """) == ["same"]


def test_names_resolve(python):
    assert python("""
        import tilewright.compat.tvm
        import tvm, tvm.testing
        import tilewright as tw
        from tvm import arith, ir, runtime, target, te, testing, tir
        from tvm.ir.base import assert_structural_equal
        from tvm.ir.diagnostics import override_renderer
        from tvm.script import from_source, ir as I, ir_builder, tir as T
        from tvm.script.ir_builder import IRBuilder, ir as IB, tir as TB
        from tvm.script.parser import tir as TP
        from tvm.tir.expr import Add
        from tvm.tir.schedule import BlockRV, Schedule
        from tvm.tir.stmt_functor import post_order_visit
        from tilewright.script import tir
        print(T.block is tir.block, TP is T, te.reduce_axis is tw.te.reduce_axis, Add is tw.ir.Add)
        print(issubclass(tvm.TVMError, Exception), tvm.error.DiagnosticError is tw.ScriptError)
        print(issubclass(tvm.tir.ScheduleError, tvm.TVMError), tvm.IRModule is ir.IRModule, target.Target("llvm").kind)
    """) == ["True True True True", "True True", "True True llvm"]


@pytest.mark.parametrize(
    ("statement", "error", "name"),
    [
        ("import tvm.relay", "ModuleNotFoundError", "tvm.relay"),
        ("from tvm import relay", "ModuleNotFoundError", "tvm.relay"),
        ("from tvm.tir import ProducerRealize", "ModuleNotFoundError", "tvm.tir.ProducerRealize"),
        ("from tvm.te import scan", "ModuleNotFoundError", "tvm.te.scan"),
        ("import tvm; tvm.autotvm", "AttributeError", "tvm.autotvm"),
        ("import tvm; tvm.tir.ProducerRealize", "AttributeError", "tvm.tir.ProducerRealize"),
        ("import tvm; tvm.testing.requires_magic", "AttributeError", "tvm.testing.requires_magic"),
    ],
)
def test_missing_names_are_named(python, statement, error, name):
    assert python(f"""
        import tilewright.compat.tvm
        try:
            {statement}
        except Exception as error:
            print(type(error).__name__, error)
    """) == [f"{error} Tilewright has no {name} yet"]


def test_nothing_is_accepted_and_ignored(python):
    lines = python("""
        import tilewright.compat.tvm
        import tvm
        from tvm import tir
        f = tir.PrimFunc([], tir.Evaluate(0))
        for attempt in (
            lambda: tir.Schedule(f, error_render_level="some"),
            lambda: tir.Schedule(f, debug_mask="some"),
            lambda: tir.Var("x", "int32", span=1),
            lambda: tvm.IRModule({}, global_infos={"a": []}),
            lambda: tvm.ir.make_node("tir.Var", name="x"),
            lambda: tvm.nd.array([1], tvm.cuda()),
            lambda: tvm.device("vulkan"),
        ):
            try:
                attempt()
                print("accepted")
            except (TypeError, ValueError) as error:
                print("yet" in str(error) or str(error).splitlines()[0])
    """)
    assert lines.pop(0) == "[schedule/error-level] the error_render_level is 'some'"
    assert lines == ["debug_mask is 'all', 'none' or a number, not 'some'", *["True"] * 5]


def test_it_refuses_beside_the_real_package(tmp_path):
    package = tmp_path / "tvm"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (tmp_path / "script.py").write_text("import tvm\nimport tilewright.compat.tvm")
    code, _, err = run(str(tmp_path / "script.py"), cwd=tmp_path)
    assert code == 1
    assert "ImportError: another package 'tvm' is imported (from" in err
    # One that is installed but not imported is not in the way.
    (tmp_path / "script.py").write_text("import tilewright.compat.tvm, tvm\nprint(tvm.__name__)")
    code, out, err = run(str(tmp_path / "script.py"), cwd=tmp_path)
    assert (code, out) == (0, "tilewright.compat.tvm\n"), err


def test_constructors_have_the_signatures_of_tvm(python):
    assert python("""
        import tilewright.compat.tvm
        import numpy as np, tvm
        from tvm import tir
        x = tir.Var("x", "int32")
        n = tir.SizeVar("n", dtype="int64")
        print(isinstance(x, tir.Var), isinstance(x, tir.SizeVar), isinstance(n, tir.SizeVar))
        A = tir.decl_buffer((4, 4), "float32", name="A", offset_factor=1)
        print(A.name, A.elem_offset.name_hint)
        loop = tir.For(x, 0, 4, tir.ForKind.SERIAL, tir.BufferStore(A, 0.1, [x, x]))
        block = tir.Block([], [], [A[0:4, 0:4]], "B", loop, annotations={"a": 1})
        func = tir.PrimFunc([A, n], tir.BlockRealize([], True, block), attrs={"global_symbol": "f"})
        print(len(func.params), list(func.buffer_map.values())[0].same_as(A), func.attrs)
        print(tvm.IRModule.from_expr(func)["f"].same_as(func), tvm.IRModule({"main": func}).get_global_vars())
        data = tir.AllocateConst(tir.Var("p", tvm.ir.PointerType(tvm.ir.PrimType("int32"))), "int32", [2],
                                 tvm.nd.array(np.array([1, 2], "int32")), tir.Evaluate(0))
        print(data.data.shape, tvm.ir.Range(2, 6), tvm.ir.Range(3).extent, tvm.ir.Range.from_min_extent(1, 2).extent)
        print(tir.IterVar((0, 8), "a", tir.IterVar.CommReduce).iter_type.name, tir.Call("float32", "tir.exp", [1.0]))
        seen = []
        tir.stmt_functor.post_order_visit(func.body, lambda node: seen.append(type(node).__name__))
        print(seen.index("Var") < seen.index("BufferStore") < seen.index("For") < seen.index("BlockRealize"))
        print([tir.all(x > 1, x < 3), tir.any(x > 1, x < 3), tir.const(1, "int8"), tir.max(x, 3)])
    """) == [
        "True False True",
        "A A_elem_offset",
        "2 True {'global_symbol': 'f'}",
        'True [I.GlobalVar("main")]',
        "(2,) I.Range(2, 6) 3 2",
        "COMM_REDUCE T.exp(T.float32(1.0))",
        "True",
        "[x > 1 and x < 3, x > 1 or x < 3, T.int8(1), T.max(x, 3)]",
    ]


def test_texts_and_expressions_of_scripts(python, tmp_path):
    assert python("""
        import tilewright.compat.tvm
        import inspect
        from tvm import tir
        from tvm.script.parser.core import doc, doc_core, utils
        from tvm.script.parser.core.diagnostics import Source
        from tvm.script.parser.core.evaluator import ExprEvaluator, eval_expr

        def outer():
            limit = 3
            def inner(x):
                # a comment

                return x + limit
            return inner

        whole, part = Source(outer), Source(outer())
        print(whole.source == inspect.getsource(outer), whole.source_name == __file__, whole.start_line)
        print(whole.full_source == open(__file__).read(), part.start_line, part.start_column)
        print(part.source.splitlines()[:3], type(part.as_ast()) is doc.Module is doc_core.Module)
        print(utils.inspect_function_capture(outer())["limit"], doc.from_doc(doc.to_doc(part.as_ast())).body[0].name)

        def calc(text, **names):
            return ExprEvaluator.eval(None, names, Source(text).as_ast().body[0].value)

        print(calc("max(x, 2) ** 2, [*y, 1][0], f(*y, k=3)", x=5, y=[4], f=lambda a, k: a * k))
        b = tir.Var("b", "bool")
        print(calc("not b and b", b=b), eval_expr(None, doc.parse("1 < 2", mode="eval"), None))
        for attempt in (lambda: calc("z"), lambda: eval_expr(object(), doc.parse("1", mode="eval"), None)):
            try:
                attempt()
            except Exception as error:
                print(type(error).__name__, str(error).splitlines()[0])
    """) == [
        "True True 9",
        "True 11 4",
        "['def inner(x):', '    # a comment', ''] True",
        "3 inner",
        "(25, 4, 12)",
        "not b and b True",
        "ScriptError [script/unknown-name] 'z' is not defined",
        "TypeError Tilewright takes no parser here yet",
    ]


def test_functions_of_a_module_by_their_global_vars(python):
    assert python("""
        import tilewright.compat.tvm
        import tvm
        from tvm.script import ir as I, tir as T

        @I.ir_module
        class Module:
            @T.prim_func
            def f(A: T.Buffer(4)):
                A[0] = 1.0

        var = Module.get_global_var("f")
        functions = Module.functions
        print([name.name_hint for name in functions], functions[var].same_as(functions["f"]))
        print(var in functions, "g" in functions, functions.get(var).same_as(Module[var]), functions.get("g"))
        print(tvm.IRModule(functions)["f"].same_as(Module["f"]))
    """) == ["['f'] True", "True False True None", "True"]


def test_small_names(python):
    assert python("""
        import tilewright.compat.tvm
        import numpy as np, tvm
        from tvm import ir, tir
        from tvm.runtime import ObjectPath

        path = ObjectPath.root().attr("a").array_index(1)
        parent = path.parent
        print(parent == ObjectPath.root().attr("a"), parent.is_prefix_of(path), path.is_prefix_of(parent))
        print(ObjectPath.root().parent)
        a = tvm.nd.empty((2,), "int32").copyfrom(np.array([1, 2]))
        print(a.asnumpy(), a.copyto(tvm.cpu()), a.copyto(tvm.nd.empty((2,))))
        try:
            a.copyfrom([1, 2, 3])
        except ValueError as error:
            print(error)
        print(tvm.runtime.convert([1, {"a": 2.5}, True]), tvm.convert("x"))
        index_map = tir.IndexMap.from_func(lambda *i: i[::-1], ndim=2)
        print(index_map.final_indices, isinstance(index_map, tir.IndexMap))
        print(tir.IndexMap.from_func(lambda i: (i // 4, i % 4)).final_indices)
        seen, e = [], tir.Var("x", "int32") + 1
        tir.stmt_functor.post_order_visit(tir.Evaluate(e), lambda n: seen.append(type(n).__name__))
        tir.stmt_functor.pre_order_visit(e, lambda n: seen.append(type(n).__name__) or True)
        print(seen)
        print(issubclass(tvm.TVMError, RuntimeError), tir.StringImm("a") == "a", tir.StringImm("a") != "a")
        try:
            tir.Any
        except AttributeError as error:
            print(error)
    """) == [
        "True True False",
        "None",
        "[1 2] [1 2] [1. 2.]",
        "an array of shape (3,) cannot be copied to one of shape (2,)",
        "[1, {'a': T.float32(2.5)}, T.bool(True)] x",
        "(i1, i0) True",
        "(i // T.int64(4), i % T.int64(4))",
        "['Var', 'IntImm', 'Add', 'Evaluate', 'Add', 'Var', 'IntImm']",
        "True True False",
        "Tilewright has no tvm.tir.Any yet",
    ]


def test_programs_are_shown_as_tvm_shows_them(python, words_of_tvm):
    lines = python("""
        import tilewright.compat.tvm
        from tvm import tir
        from tvm.script.highlight import _format, cprint
        func = tir.PrimFunc([], tir.Evaluate(0))
        assert repr(func) == str(func) == func.script()
        func.show(None, False)
        cprint(func, black_format=True)
        cprint("a + 1")
        try:
            _format("if (a == 1) { a +=1; }")
        except ValueError as error:
            print(str(error)[:23])
        try:
            cprint(1)
        except TypeError as error:
            print(error)
    """)
    assert lines[0] == "# from tvm.script import tir as T"
    assert lines.count("def main():") == 2
    assert lines[-3:] == ["a + 1", "ruff cannot format this", "cprint prints programs and their text, not a int"]


def test_a_prefetch_is_a_statement(python):
    assert python("""
        import tilewright.compat.tvm
        from tvm import tir
        from tvm.ir import Range
        A = tir.decl_buffer((128, 128), "float16", name="A")
        hint = tir.Prefetch(A, [Range(0, 64), Range(2, 3)])
        print(isinstance(hint, tir.Prefetch), isinstance(tir.Evaluate(0), tir.Prefetch))
        print(hint)
    """) == [
        "True False",
        'A = T.Buffer((128, 128), "float16")',
        "T.prefetch(A, [T.Range(0, 64), T.Range(2, 3)])",
    ]


def test_errors_of_schedules_show_the_program_as_tvm_does(python):
    lines = python(
        PROGRAM.replace('if __name__ == "__main__":', "if True:")
        .replace(
            'print("ran", tvm.__name__)',
            """try:
        sch = tir.Schedule(double)
        i, = sch.get_loops("B")
        sch.fuse(i, i)
    except tvm.tir.ScheduleError as error:
        print(error)
        print([type(node).__name__ for node in error.nodes])""",
        )
        .replace("import tvm\n", "import tilewright.compat.tvm\nimport tvm\n", 1)
    )
    assert lines[0] == "ScheduleError: An error occurred in the schedule primitive 'fuse'."
    at = lines.index("            for i in range(16):")
    assert lines[at - 1] == "            # tir.For#1"
    assert lines[at + 1] == "            ^^^^^^^^^^^^^^^^^^^"
    assert any(line.startswith("Error message: [fuse/") for line in lines)
    assert lines[-1].startswith("['For'")


def test_structural_differences_are_told_as_tvm_does(python):
    assert python("""
        import tilewright.compat.tvm
        import tvm
        from tvm.runtime import ObjectPath
        from tvm.script import ir as I, tir as T

        def module(n):
            @I.ir_module
            class Module:
                @T.prim_func
                def f(a: T.handle, b: T.handle):
                    T.func_attr({"x": {"y": n}})
                    A = T.match_buffer(a, (4,))
                    B = T.match_buffer(b, (n,))
                    T.evaluate(A[0])
            return Module

        left, right = module(4), module(5)
        print(left.__name__, tvm.ir.structural_equal([T.int32(1)], [T.int32(1)]))
        try:
            tvm.ir.assert_structural_equal(left, right)
        except ValueError as error:
            print(str(error).splitlines()[0].removeprefix("ValueError: StructuralEqual check failed, "))
        f = left["f"]
        b = ObjectPath.root().attr("functions").map_value("f").attr("buffer_map").map_value(f.params[1])
        path = b.attr("shape").array_index(0).attr("value")
        print(path)
        print([line for line in left.script(path_to_underline=[path]).splitlines() if "^" in line])
        for wrong in (left.script(path_to_annotate={path: "here"}), left.script()):
            print(wrong.count("# here"))
    """) == [
        "Module True",
        'caused by lhs at <root>.functions[I.GlobalVar("f")].buffer_map[b].shape[0].value:',
        '<root>.functions["f"].buffer_map[b].shape[0].value',
        "['                                                     ^']",
        "1",
        "0",
    ]


def test_schedules_have_the_names_of_tvm(python, words_of_tvm):
    assert python("""
        import tilewright.compat.tvm
        import tvm
        from tvm import tir
        from tvm.script import tir as T
        from tvm.tir.block_scope import DepKind
        from tvm.tir.schedule import BlockRV, Instruction, InstructionKind, ScheduleState, StmtSRef, Trace
        from tvm.tir.schedule.testing import verify_trace_roundtrip

        @T.prim_func
        def double(A: T.Buffer((16,)), B: T.Buffer((16,))):
            for i in range(16):
                with T.block("B"):
                    vi = T.axis.spatial(16, i)
                    B[vi] = A[vi] * T.float32(2)

        for level in ("detail", "fast", "none"):
            sch = tir.Schedule(double, error_render_level=level)
            try:
                sch.get_block("C")
            except tir.ScheduleError as error:
                print(len(str(error).splitlines()) > 5, str(error).splitlines()[0])
        print(sch.func_working_on, isinstance(sch.state, ScheduleState))
        print(tir.ScheduleState(double).mod["main"] == double)
        sch.split(sch.get_loops("B")[0], [4, 4])
        sch.enter_postproc()
        trace = Trace(sch.trace.insts, sch.trace.decisions)
        print(str(trace) == str(sch.trace), isinstance(sch.get_sref(sch.get_block("B")), StmtSRef))
        print(sch.trace.simplified(True))
        verify_trace_roundtrip(sch, double, debug_mask="none")
        for wrong in (lambda: tir.NoSuchName, lambda: verify_trace_roundtrip(sch, double, debug_mask="some"),
                      lambda: tir.Schedule(double, debug_mask=None), lambda: sch.get(BlockRV())):
            try:
                wrong()
            except (AttributeError, ValueError, TypeError) as error:
                print("IndexError" if isinstance(error, IndexError) else type(error).__name__)
    """) == [
        "True ScheduleError: An error occurred in the schedule primitive 'get-block'.",
        "False ScheduleError: Cannot find a block with the specified name",
        "False ScheduleError: (not rendered)",
        'I.GlobalVar("main") True',
        "True",
        "True True",
        "# from tvm import tir",
        "def apply_trace(sch: tir.Schedule) -> None:",
        '  b0 = sch.get_block(name="B", func_name="main")',
        "  l1, = sch.get_loops(block=b0)",
        "  l2, l3 = sch.split(loop=l1, factors=[4, 4], preserve_unit_iters=True, disable_predication=False)",
        *("AttributeError", "ValueError", "TypeError", "IndexError"),
    ]


def test_mistakes_of_scripts_reach_a_renderer(python):
    assert (
        python("""
        import tilewright.compat.tvm
        import tvm
        from tvm.ir.diagnostics import override_renderer
        seen = []
        override_renderer(lambda context: seen.extend(context.diagnostics))
        text = "@T.prim_func\\ndef f(a):\\n    T.evaluate(0)"
        for _ in range(2):
            try:
                tvm.script.from_source(text)
            except tvm.error.DiagnosticError:
                print(len(seen), seen[0].level, seen[0].span.line, seen[0].span.column, seen[0].message[:15])
            override_renderer(None)
    """)
        == ["1 error 2 7 type annotation"] * 2
    )


def test_the_graph_dialect_can_be_mentioned_not_used(python):
    assert python("""
        import tilewright.compat.tvm
        import tvm
        from tvm.script import relax as R
        print(tvm.script.parser.relax.entry.TensorProxy.__name__, R.Tensor)
        for use in (lambda: R.function(print), lambda: R.Tensor([1], "int8"), lambda: R.call.x):
            try:
                use()
            except AttributeError as error:
                print(error)
    """) == [
        "TensorProxy <Tilewright has no tvm.script.relax.Tensor yet>",
        "Tilewright has no tvm.script.relax.function yet",
        "Tilewright has no tvm.script.relax.Tensor yet",
        "Tilewright has no tvm.script.relax.call yet",
    ]


def test_kernels_and_arrays(python):
    assert python("""
        import tilewright.compat.tvm
        import numpy as np, tvm, tvm.testing
        from tvm.script import tir as T

        @T.prim_func
        def double(A: T.Buffer((4,)), B: T.Buffer((4,))):
            for i in range(4):
                B[i] = A[i] * 2.0

        kernel = tvm.build(double, target="llvm")
        a, b = tvm.nd.array(np.arange(4, dtype="float32"), tvm.cpu()), tvm.nd.empty((4,), device=tvm.device("llvm"))
        kernel(a, b)
        tvm.testing.assert_allclose(b.numpy(), a.numpy() * 2)
        print(type(b.numpy()).__name__, b.device, tvm.cuda().exist, tvm.DataType("int8x4"))
    """) == ["ndarray cpu(0) False int8x4"]


def test_schedules_and_traces_are_shown_as_tvm_shows_them(python, words_of_tvm):
    lines = python("""
        import tilewright.compat.tvm
        import tvm
        from tvm.script import tir as T

        @T.prim_func
        def f(A: T.Buffer((8,))):
            for i in range(8):
                with T.block("B"):
                    vi = T.axis.spatial(8, i)
                    A[vi] = 1.0

        sch = tvm.tir.Schedule(f)
        sch.trace.show()
        sch.get_block("B")
        sch.show()
    """)
    assert lines[:4] == [
        "# from tvm import tir",
        "def apply_trace(sch: tir.Schedule) -> None:",
        "  pass",
        "# from tvm.script import ir as I",
    ]
    assert lines[-3:] == [
        "# from tvm import tir",
        "def apply_trace(sch: tir.Schedule) -> None:",
        '  b0 = sch.get_block(name="B", func_name="main")',
    ]


def test_targets_have_the_attributes_of_tvm(python):
    assert python("""
        import tilewright.compat.tvm
        import tvm
        target = tvm.target.Target("llvm -mcpu core-avx2 -num-cores 2 -mattr=+avx512f")
        print(target.kind.name, target.kind == "llvm", target.attrs["mcpu"], target.attrs["num-cores"])
        print(target.attrs["mattr"], "mtriple" in target.attrs)
    """) == ["llvm True core-avx2 2", "['+avx512f'] False"]


def test_kernels_have_the_methods_of_modules(python, tmp_path):
    assert python(f"""
        import tilewright.compat.tvm
        import numpy as np, tvm
        from tvm.script import ir as I, tir as T

        @I.ir_module
        class Module:
            @T.prim_func
            def main(A: T.Buffer((4,)), B: T.Buffer((4,))):
                for i in range(4):
                    B[i] = A[i] * 2.0

            @T.prim_func
            def other(A: T.Buffer((4,)), B: T.Buffer((4,))):
                for i in range(4):
                    B[i] = A[i] * 3.0

        built = tvm.compile(Module, target="llvm")
        a, b = tvm.nd.array(np.ones(4, "float32")), tvm.nd.empty((4,))
        times = built.time_evaluator("other", tvm.cpu(), number=3, repeat=4)(a, b)
        print(len(times.results), times.min <= times.median <= times.max, 0 < times.mean, b.numpy()[0])
        filled = built.time_evaluator("main", tvm.cpu(), number=1, min_repeat_ms=2)(a, b)
        print(len(filled.results), filled.std)
        print(built.entry_func.name, "define" in built["main"].get_source(), "ret" in built["main"].get_source("asm"))
        path = built.export_library({str(tmp_path / "both.so")!r})
        tvm.runtime.load_module(path)["other"](a, b)
        one = tvm.runtime.load_module(built["main"].export_library({str(tmp_path / "one.so")!r}))
        one["main"](a, b)
        print(built.imported_modules, b.numpy()[0])
        tvm.runtime.load_module(path)["other"](a, b)
        built.get_function("main")(a, a := tvm.nd.empty((4,)))
        print(b.numpy()[1], a.numpy()[1])
        for wrong in (lambda: built.time_evaluator("absent", tvm.cpu()),
                      lambda: built.time_evaluator("main", tvm.cuda()),
                      lambda: built["main"].get_source("cu"), lambda: built.export_library("both.tar")):
            try:
                wrong()
            except (AttributeError, ValueError) as error:
                print(type(error).__name__, error)
    """) == [
        "4 True True 3.0",
        "1 0.0",
        "main True True",
        "[] 2.0",
        "3.0 2.0",
        "AttributeError Module has no function 'absent'",
        "ValueError Tilewright runs nothing on cuda(0) yet",
        "ValueError Tilewright has no source of the kind 'cu'; there are 'll' and 'asm'",
        "ValueError Tilewright exports shared libraries, so 'both.tar' has to end in '.so'",
    ]


def test_tuning_in_the_space_of_a_function(python, tmp_path):
    assert python(f"""
        import tilewright.compat.tvm
        from tvm import meta_schedule as ms
        from tvm.script import tir as T

        @T.prim_func
        def double(A: T.Buffer((64, 64)), B: T.Buffer((64, 64))):
            for i, j in T.grid(64, 64):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj] * T.float32(2)

        def tiles(sch):
            i, j = sch.get_loops("B")
            sch.split(j, factors=sch.sample_perfect_tile(j, n=2))

        if __name__ == "__main__":
            space = ms.space_generator.ScheduleFn(tiles)
            parts = dict(strategy="replay-trace", cost_model="none")
            found = ms.tune_tir(double, "llvm", {str(tmp_path)!r}, 2, space=space, seed=1, **parts)
            sch = ms.tir_integration.compile_tir(found, double, "llvm")
            print(len(sch.get_loops("B")))
            for wrong in (lambda: ms.testing.tune_te, lambda: ms.relax_integration.tune_relax(double)):
                try:
                    wrong()
                except (TypeError, AttributeError) as error:
                    print(error)
    """)[-3:] == [
        "3",
        "Tilewright has no tvm.meta_schedule.testing.tune_te yet",
        "Tilewright has no Relax programs yet: tune their functions by tune_tir",
    ]


#: where TVM has some names
PLACES = [
    "from tvm.arith.analyzer import Analyzer, ConstIntBound, ModularSet, ProofStrength",
    "from tvm.arith.int_set import IntervalSet, IntSet",
    "from tvm.arith.iter_affine_map import IterMapLevel, detect_iter_map",
    "from tvm.driver.build_module import build, lower",
    "from tvm.ir.container import Array, Map",
    "from tvm.ir.expr import GlobalVar, PrimExpr, Range",
    "from tvm.ir.function import BaseFunc",
    "from tvm.ir.op import Op",
    "from tvm.ir.type import PointerType, PrimType",
    "from tvm.runtime.object import Object",
    "from tvm.target.target import Target",
    "from tvm.te.operation import compute, create_prim_func, placeholder, reduce_axis",
    "from tvm.te.tensor import Tensor",
    "from tvm.testing.utils import assert_allclose",
    "from tvm.tir.analysis import find_anchor_block",
    "from tvm.tir.expr import BinaryOpExpr, CallEffectKind, CmpExpr, ConstExpr",
    "from tvm.tir.schedule.state import CachedFlags",
]


def test_names_stand_where_tvm_has_them():
    """Each line is the first import of a process, since an import may make the next one possible."""
    code, _, err = run(
        "-c",
        f"""
import os, tilewright.compat.tvm
for line in {PLACES!r}:
    if not (child := os.fork()):
        try:
            exec(line)
            os._exit(0)
        except BaseException as error:
            os.write(2, repr(error).encode())
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0, line
""",
    )
    assert code == 0, err


def test_modules_of_packages_are_attributes_of_theirs(python):
    assert python(
        "import tilewright.compat.tvm, tvm",
        "print(tvm.ir.expr.Range is tvm.ir.Range, tvm.arith.analyzer.Analyzer is tvm.arith.Analyzer)",
        """
        try:
            tvm.ir.expr.Nothing
        except AttributeError as error:
            print(error)
        """,
    ) == ["True True", "Tilewright has no tvm.ir.Nothing yet"]


def test_kinds_of_expressions(python):
    assert python(
        "import tilewright.compat.tvm, tvm",
        "from tvm import tir",
        "x = tir.Var('x', 'int32')",
        "print([isinstance(x + 1, kind) for kind in (tir.BinaryOpExpr, tir.CmpExpr, tir.ConstExpr)])",
        "print(isinstance(x < 1, tir.CmpExpr), isinstance(tir.const(1), tir.ConstExpr))",
        "print(isinstance(tir.convert([1])[0], tir.IntImm), isinstance((x,), tvm.ir.Array))",
    ) == ["[True, False, False]", "True True", "True True"]


def test_where_two_programs_differ_first(python):
    assert python(
        "import tilewright.compat.tvm, tvm",
        "from tvm import tir",
        "x = tir.Var('x', 'int32')",
        "print(tvm.ir.get_first_structural_mismatch(x + 1, x + 1))",
        "print(tuple(tvm.ir.get_first_structural_mismatch(x + 1, x + 2)))",
    ) == ["None", "(<root>.b.value, <root>.b.value)"]


def test_what_llvm_knows(python):
    assert python(
        "import tilewright.compat.tvm, tvm",
        "from tvm.target import codegen",
        "haswell = tvm.target.Target('llvm -mcpu=haswell')",
        "print(codegen.target_has_features('avx2', haswell), codegen.target_has_features(['avx512f'], haswell))",
        "with haswell: print(codegen.llvm_cpu_has_features('avx2'), codegen.llvm_get_vector_width())",
        "print('avx2' in codegen.llvm_get_cpu_features(haswell), codegen.llvm_version_major())",
    ) == ["True False", "True 256", "True 19"]


def test_what_nobody_has_code_for_is_skipped(tmp_path):
    (tmp_path / "test_it.py").write_text("import tvm.testing\n@tvm.testing.requires_cudnn\ndef test_it(): assert False")
    code, out, _ = run("-m", "pytest", "-q", "-p", "tilewright.compat.tvm", "-p", "no:cacheprovider", str(tmp_path))
    assert code == 0 and "1 skipped" in out
