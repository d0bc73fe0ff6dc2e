"""Parameters that share names: a parameter is its position, and a name is for people."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tilewright import _core, ir, te
from tilewright.script import ir_builder as ib
from tilewright.script.ir_builder import tir as ibt
from tilewright.search.expectations import Expectations
from tilewright.task.task import task_of

#: which of the parameters A, B, C, and the result, share a name
SHARED = [("X", "X", "Y", "Z"), ("X", "Y", "X", "Z"), ("X", "X", "X", "Z"), ("X", "Y", "Z", "Z"), ("X", "X", "X", "X")]


def formula(names: tuple[str, ...]) -> ir.PrimFunc:
    """(A - 2 B) C, of which each argument has another part."""
    a, b, c = (te.placeholder((2, 3), "float32", name=name) for name in names[:3])
    d = te.compute((2, 3), lambda i, j: (a[i, j] - 2.0 * b[i, j]) * c[i, j], name=names[3])
    return te.create_prim_func([a, b, c, d])


def built(names: tuple[str, ...]) -> ir.PrimFunc:
    """The same through IRBuilder."""
    with ib.IRBuilder() as builder, ibt.prim_func():
        ibt.func_name("main")
        a, b, c, d = (ibt.arg(name, ibt.Buffer((2, 3), "float32")) for name in names)
        with ibt.grid(2, 3) as (i, j):
            ibt.buffer_store(d, (a[i, j] - 2.0 * b[i, j]) * c[i, j], [i, j])
    return builder.get()


MAKERS = [formula, built]
A, B, C = (np.random.default_rng(3).integers(-8, 8, (3, 2, 3)).astype("float32")[i] for i in range(3))
WANT = (A - 2 * B) * C


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("names", SHARED)
@pytest.mark.parametrize("target", ["native", "interpreter"])
def test_calls(make, names: tuple[str, ...], target: str) -> None:
    kernel = tw.compile(make(names), target)
    out = np.full((2, 3), np.nan, "float32")
    kernel(A, B, C, out)
    np.testing.assert_array_equal(out, WANT)
    np.testing.assert_array_equal(kernel(A, B, C), WANT)
    assert [name for name, _, _ in kernel.parameters] == list(names)


@pytest.mark.parametrize("names", SHARED)
def test_a_keyword_that_several_have_is_refused(names: tuple[str, ...], tmp_path: Path) -> None:
    compiled = tw.compile(formula(names))
    for kernel in (compiled, tw.load(compiled.export(tmp_path, "f").library)):
        for position, name in enumerate(names):
            rest = [A, B, C, np.empty((2, 3), "float32")]
            mine = rest.pop(position)
            if names.count(name) > 1:
                with pytest.raises(tw.ArgumentError, match=rf"called with {name}=\.\.\., and its parameters") as caught:
                    kernel(*rest[:3], **{name: mine})
                assert caught.value.code == "call/ambiguous" and "without names" in caught.value.hint
        unique = [name for name in names if names.count(name) == 1]
        if unique == ["Z"]:
            out = np.empty((2, 3), "float32")
            kernel(A, B, C, Z=out)
            np.testing.assert_array_equal(out, WANT)
        if names == ("X", "Y", "X", "Z"):
            np.testing.assert_array_equal(kernel(A, C, Y=B), WANT)


def test_names_of_handles_tell_buffers_of_one_name_apart() -> None:
    buffers = [ir.decl_buffer((3,), "int32", name="X") for _ in range(3)]
    handles = [ir.Var(name, "handle") for name in ("a", "b", "c")]
    i = ir.Var("i", "int32")
    a, b, c = buffers
    body = ir.For(i, 0, 3, body=ir.BufferStore(c, a[i] - b[i], [i]))
    ret_type = formula(SHARED[0]).ret_type
    func = ir.PrimFunc(handles, dict(zip(handles, buffers, strict=True)), ret_type, {"global_symbol": "f"}, body)
    kernel = tw.compile(func, schedule="as written")
    x, y = np.array([5, 6, 7], "int32"), np.array([1, 1, 2], "int32")
    np.testing.assert_array_equal(kernel(b=y, a=x), x - y)
    out = np.empty(3, "int32")
    kernel(c=out, b=y, a=x)
    np.testing.assert_array_equal(out, x - y)
    with pytest.raises(tw.ArgumentError, match="none for"):
        kernel(a=x)


def test_two_outputs_of_one_name() -> None:
    a = te.placeholder((4,), "int32")
    up = te.compute((4,), lambda i: a[i] + 1)
    down = te.compute((4,), lambda i: a[i] - 1)
    x = np.array([3, 1, 4, 1], "int32")
    for given in (te.create_prim_func([a, up, down]), te.create_prim_func([up, a, down])):
        more, less = tw.compile(given)(x)
        np.testing.assert_array_equal(more, x + 1)
        np.testing.assert_array_equal(less, x - 1)
    more, less = tw.compile(te.create_prim_func([up, a, down]))(x)
    assert not np.shares_memory(more, less)


def test_open_sizes_of_one_name() -> None:
    n, m = te.var("n"), te.var("n")
    a, b = te.placeholder((n,), "int32"), te.placeholder((m,), "int32")
    c = te.compute((n, m), lambda i, j: a[i] - 2 * b[j])
    program = te.create_prim_func([a, b, c])
    x, y = np.array([5, 6, 7], "int32"), np.array([1, 4], "int32")
    np.testing.assert_array_equal(tw.compile(program)(x, y), x[:, None] - 2 * y)
    with pytest.raises(tw.ArgumentError, match=r"no usual value of n#0.0, n#1.0 is known"):
        task_of(program)
    task = task_of(program, {"n#0.0": 3, "n#1.0": 2})
    assert [p.shape for p in task.parameters] == [(3,), (2,), (3, 2)]
    result = tw.tune(program, trials=2, inputs={0: x, 1: y}, progress=None)
    np.testing.assert_array_equal(result.kernel(x, y), x[:, None] - 2 * y)
    assert dict(result.task.sizes) == {"n#0.0": 3, "n#1.0": 2}


def test_a_loaded_library(tmp_path: Path) -> None:
    for number, names in enumerate(SHARED):
        exported = tw.compile(formula(names)).export(tmp_path, f"f{number}")
        kernel = tw.load(exported.library)
        np.testing.assert_array_equal(kernel(A, B, C), WANT)
        header = exported.header.read_text()
        declared = header.split("_arrays(")[1].partition(")")[0]
        spelled = [part.split()[-1] for part in declared.split(",")]
        assert len(spelled) == len(set(spelled)) == 4


def test_a_header_of_one_name_compiles_and_computes(tmp_path: Path) -> None:
    tw.compile(formula(("X", "X", "X", "X"))).export(tmp_path, "f")
    program = tmp_path / "program.c"
    program.write_text(
        '#include <stdio.h>\n#include "f.h"\nint main(void) {\n'
        "  float a[6] = {1, 2, 3, 4, 5, 6}, b[6] = {3, 2, 1, 0, 1, 2}, c[6] = {1, 2, 1, 2, 1, 2}, d[6];\n"
        "  if (f_arrays(a, b, c, d)) return 1;\n"
        '  for (int i = 0; i < 6; ++i) printf("%g ", d[i]);\n  return 0;\n}\n'
    )
    subprocess.run(
        ["cc", "-o", tmp_path / "program", program, "-I", tmp_path, tmp_path / "f.so", f"-Wl,-rpath,{tmp_path}"],
        check=True,
    )
    said = subprocess.run([tmp_path / "program"], check=True, capture_output=True, text=True).stdout
    assert said.split() == ["-5", "-4", "1", "8", "3", "4"]


def test_libraries_of_earlier_versions_say_outputs_by_name() -> None:
    from tilewright.kernel.omitted_outputs import call_of, signatures_from_json, signatures_to_json

    module = ir.IRModule({"f": formula(("A", "B", "C", "D"))})
    noted = json.loads(signatures_to_json({"f": call_of(module["f"], module)}))
    ((name, call),) = noted.items()
    assert call.pop("positions") == [3] and call["outputs"] == ["D"]
    assert signatures_from_json(json.dumps(noted))[name].outputs == {3}


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("names", SHARED)
def test_verify(make, names: tuple[str, ...]) -> None:
    sch = tw.Schedule(make(names))
    block = sch.get_block(names[3]) if make is formula else None
    if block is None:
        assert str(sch.verify()) == "the program is the original one"
        return
    sch.vectorize(sch.get_loops(block)[-1])
    assert sch.verify().elements == 12  # of two calls
    assert sch.verify({0: A, 1: B}).extent == "full"
    if names.count("X") > 1:
        with pytest.raises(tw.ArgumentError, match="'X' names the parameters 0") as caught:
            sch.verify({"X": A})
        assert caught.value.code == "arguments/ambiguous" and "inputs={0: ...}" in caught.value.hint


def test_verify_looks_at_the_layout_of_the_right_parameter() -> None:
    sch = tw.Schedule(formula(("X", "X", "Y", "Z")))
    sch.transform_layout(sch.get_block("Z"), ("read", 1), lambda i, j: (j, i))
    assert sch.verify().elements == 12


def test_verify_with_scalars_of_one_name() -> None:
    a = te.placeholder((4,), "int32", name="s")
    first, second = te.var("s"), te.var("s")
    b = te.compute((4,), lambda i: (a[i] - first) * second, name="b")
    program = te.create_prim_func([first, a, second, b])
    sch = tw.Schedule(program)
    sch.unroll(sch.get_loops(sch.get_block("b"))[0])
    x = np.array([9, 8, 7, 6], "int32")
    assert sch.verify().elements > 0
    assert sch.verify({0: 2, 1: x, 2: 5}).elements > 0
    np.testing.assert_array_equal(tw.compile(program)(2, x, 5), (x - 2) * 5)
    result = tw.tune(program, trials=1, inputs={0: 2, 1: x, 2: 5}, progress=None)
    np.testing.assert_array_equal(result.kernel(2, x, 5), (x - 2) * 5)


@pytest.mark.parametrize("names", SHARED)
def test_expectations(names: tuple[str, ...]) -> None:
    """What a search calls the program as written with, and how it judges the results."""
    expectations = Expectations(task_of(formula(names)), {}, 0)
    arguments = expectations.arguments()
    told = [name for name, *_ in arguments]
    assert len(set(told)) == 4
    a, b, c = (np.frombuffer(data, "float32") for *_, data, _ in arguments[:3])
    assert expectations.judge({told[3]: ((a - 2 * b) * c).tobytes()})[0] == "full"
    with pytest.raises(tw.InternalError):
        expectations.judge({told[3]: ((b - 2 * a) * c).tobytes()})


@pytest.mark.parametrize("names", [SHARED[0], SHARED[4]])
def test_tune(names: tuple[str, ...]) -> None:
    program = formula(names)

    def space(sch: tw.Schedule) -> None:
        i, _ = sch.get_loops(sch.get_block(names[3]))
        sch.split(i, sch.sample_perfect_tile(i, n=2))

    result = tw.tune(program, space=space, trials=2, inputs={1: B}, progress=None)
    assert result.record is not None and result.verdict is not None and result.verdict.checked
    np.testing.assert_array_equal(result.kernel(A, B, C), WANT)
    assert len(result.record.verification["tolerance"]) == 1
    assert "as written" in str(result.table())
    with pytest.raises(tw.ArgumentError, match="'X' names the parameters 0"):
        tw.tune(program, trials=1, inputs={"X": A}, progress=None)
    with pytest.raises(tw.ArgumentError, match="there is no parameter 4"):
        tw.tune(program, trials=1, inputs={4: A}, progress=None)
    with pytest.raises(tw.ArgumentError, match="given twice") as caught:
        tw.tune(formula(("X", "Y", "Z", "W")), trials=1, inputs={0: A, "X": A}, progress=None)
    assert caught.value.code == "arguments/twice"


def test_a_module_of_functions_takes_no_positions() -> None:
    module = ir.IRModule({name: formula(SHARED[0]).with_attr("global_symbol", name) for name in ("f", "g")})
    with pytest.raises(tw.ArgumentError, match="the module has several functions") as caught:
        tw.tune(module, trials=1, inputs={0: A}, progress=None)
    assert caught.value.code == "arguments/position"
    kernels = tw.compile(module)
    np.testing.assert_array_equal(kernels["g"](A, B, C), WANT)


def test_a_peer_is_called_in_order() -> None:
    space = tw.space(formula(SHARED[4]), reference=lambda a, b, c: (a - 2 * b) * c)(lambda sch: None)
    with np.errstate(all="raise"):
        result = tw.tune(space, trials=1, progress=None)
    assert result.record is not None


@pytest.mark.parametrize("names", [SHARED[0], SHARED[4]])
def test_the_command_line(names: tuple[str, ...], tmp_path: Path) -> None:
    file = tmp_path / "spaces.py"
    file.write_text(
        "import tilewright as tw\nfrom tilewright import te\n"
        f"a, b, c = (te.placeholder((2, 3), name=name) for name in {names[:3]!r})\n"
        f"d = te.compute((2, 3), lambda i, j: (a[i, j] - 2.0 * b[i, j]) * c[i, j], name={names[3]!r})\n"
        "@tw.space(te.create_prim_func([a, b, c, d]), reference=lambda a, b, c: (a - 2 * b) * c)\n"
        "def space(sch):\n    pass\n"
    )
    command = ["-m", "tilewright", "tune", str(file), "--trials", "1", "--out", str(tmp_path)]
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (library,) = tmp_path.glob("*.so")
    np.testing.assert_array_equal(tw.load(library)(A, B, C), WANT)


def test_the_alias_layer(tmp_path: Path) -> None:
    from tilewright.compat import tvm as compat

    names = SHARED[4]
    a, b, c = (compat.te.placeholder((2, 3), name=name) for name in names[:3])
    d = compat.te.compute((2, 3), lambda i, j: (a[i, j] - 2.0 * b[i, j]) * c[i, j], name=names[3])
    program = compat.te.create_prim_func([a, b, c, d])
    arrays = [compat.nd.array(array) for array in (A, B, C, np.zeros((2, 3), "float32"))]
    compat.build(program, target="llvm")(*arrays)
    np.testing.assert_array_equal(arrays[3].numpy(), WANT)
    database = compat.meta_schedule.tune_tir(
        program, target="llvm -num-cores 1", work_dir=str(tmp_path), max_trials_global=2, num_trials_per_iter=2
    )
    assert database is not None


def test_messages_say_which_one() -> None:
    kernel = tw.compile(formula(("X", "X", "Y", "Z")))
    with pytest.raises(tw.ArgumentError, match=r"argument X \(parameter 1\): expected shape \(2, 3\)"):
        kernel(A, B[:1], C)
    with pytest.raises(tw.ArgumentError, match=r"argument X \(parameter 0\): expected float32 \(2, 3\), got"):
        kernel(None, B, C)
    with pytest.raises(tw.ArgumentError, match=r"argument Y: "):
        kernel(A, B, None)
    with pytest.raises(tw.ArgumentError, match=r"overlaps argument X \(parameter 1\)"):
        memory = np.zeros(9, "float32")
        kernel(A, memory[:6].reshape(2, 3), C, memory[3:].reshape(2, 3))


def test_elements_by_name_or_position() -> None:
    module = ir.IRModule({"main": formula(SHARED[4])})
    out = np.zeros((2, 3), "float32")
    values = _core.interpret_at(module, "main", A, B, C, out, points={3: [(1, 2)]})
    assert values == {3: [WANT[1, 2]]}
    with pytest.raises(tw.ArgumentError, match="several parameters of 'main' have the name 'X'"):
        _core.interpret_at(module, "main", A, B, C, out, points={"X": [(1, 2)]})
    with pytest.raises(tw.ArgumentError, match="no tensor parameter 4"):
        _core.interpret_at(module, "main", A, B, C, out, points={4: [(1, 2)]})


def test_a_product_of_two_of_one_name_is_scheduled_as_one() -> None:
    """The rules look at operands, not at their names."""

    def product(names: tuple[str, str]) -> str:
        a, b = te.placeholder((64, 64), name=names[0]), te.placeholder((64, 64), name=names[1])
        k = te.reduce_axis((0, 64), name="k")
        c = te.compute((64, 64), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
        return tw.compile(te.create_prim_func([a, b, c])).inspect("schedule")

    assert product(("A", "A")) == product(("A", "B")) != ""


def test_printing_stays_parseable() -> None:
    for names in SHARED:
        func = formula(names)
        again = tw.script.from_source(func.script())
        assert ir.structural_equal(again, func)
        for position, param in enumerate(func.params):
            assert func.buffer_map[param].name == names[position]


def test_labels_are_never_the_same() -> None:
    from tilewright.task.parameter_names import distinct

    for names in itertools.product(["A", "A#0", "A#1", "A#0'"], repeat=4):
        labels = distinct(names)
        assert len(set(labels)) == 4
        assert all(label == name for label, name in zip(labels, names, strict=True) if names.count(name) == 1)
