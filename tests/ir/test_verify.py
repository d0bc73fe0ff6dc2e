"""The verifier from Python: what its errors show."""

import json

import pytest

import tilewright as tw
from tilewright import ir
from tilewright.script import from_source
from tilewright.script import tir as T


def program():
    @T.prim_func
    def copy(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi]

    return copy


def test_well_formed_programs_pass():
    ir.verify(program())
    ir.verify(ir.as_module(program()), "scheduled")


def test_errors_show_the_place_and_the_users_line():
    def break_reads(node):
        if isinstance(node, ir.Block) and node.name_hint == "B":
            fields = {name: getattr(node, name) for name in node.__match_args__}
            return ir.Block(**fields | {"reads": []})
        return None

    with pytest.raises(tw.ScriptError) as info:
        ir.verify(ir.rewrite(program(), break_reads))
    assert info.value.code == "verify/reads"
    text = str(info.value)
    assert "block 'B' reads buffer 'A', which its regions do not name" in text
    assert "B[vi] = A[vi]" in text and "^^^^^" in text and __file__ in text and "hint: correct T.reads" in text


def test_stages_have_names():
    with pytest.raises(tw.ScriptError, match="verify/stage") as info:
        ir.verify(program(), "lowered")
    assert "a BlockRealize in a lowered program" in str(info.value)
    with pytest.raises(tw.ArgumentError) as info:
        ir.verify(program(), "cooked")
    assert info.value.code == "verify/stage-name"


def test_an_init_knows_no_step_of_its_reduction():
    source = """
@T.prim_func
def f(A: T.Buffer((4, 8)), C: T.Buffer((4,))):
    for i, k in T.grid(4, 8):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = A[vi, vk]
            C[vi] = C[vi] + A[vi, vk]
"""
    func = from_source(source)  # TVM's scripts have such blocks, to show what schedules refuse
    with pytest.raises(tw.ScriptError, match="the init of block 'C' depends on its reduction axis 'vk'"):
        ir.verify(func)
    with pytest.raises(tw.ScriptError, match="verify/axis"):
        tw.compile(func)


def test_a_view_leaves_the_sizes_of_the_function_alone():
    @T.prim_func
    def rows(a: T.handle, b: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (4, n))
        B = T.match_buffer(b, (4, n))
        for i in range(4):
            with T.block("view"):
                vi = T.axis.spatial(4, i)
                T.reads(A[vi, 0:n])
                T.writes(B[vi, 0:n])
                V = T.match_buffer(A[vi, 0:n], (n,), offset_factor=1)
                for j in range(n):
                    with T.block("B"):
                        vj = T.axis.spatial(n, j)
                        B[vi, vj] = V[vj]
        for i, j in T.grid(4, n):
            with T.block("twice"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = B[vi, vj] * T.float32(2)

    ir.verify(rows)


def test_a_parameter_is_one_buffer():
    document = json.loads(ir.save_json(program()))
    func = next(node for node in document["nodes"] if node["class"] == "PrimFunc")
    func["buffer_map"][1][0] = func["buffer_map"][0][0]
    with pytest.raises(tw.ScriptError, match="matched to two buffers"):
        ir.verify(ir.load_json(json.dumps(document)))


@pytest.mark.parametrize(
    ("elements", "dtype", "reason"), [(9, "float32", "has 8 of the 9"), (8, "float64", "not float64")]
)
def test_memory_that_is_passed_on_is_what_the_callee_takes(elements: int, dtype: str, reason: str) -> None:
    def module(elements: int, dtype: str) -> ir.Module:
        return tw.script.from_source(f"""
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def callee(B: T.Buffer(({elements},), "{dtype}")):
        B[{elements - 1}] = B[0] + T.{dtype}(1)

    @T.prim_func
    def main(A: T.Buffer((8,), "float32")):
        Module.callee(A.data)
""")

    with pytest.raises(tw.ScriptError, match=reason) as error:
        module(elements, dtype)
    assert error.value.code == "verify/call"
    tw.compile(module(8, "float32"))
    tw.compile(module(7, "float32"))


@pytest.mark.parametrize("statement", ["if {}:", "while {}:"])
def test_lanes_do_not_decide_what_runs(statement: str) -> None:
    condition = "A[0:8] > T.broadcast(T.float32(0), 8)"
    with pytest.raises(tw.ScriptError) as error:
        tw.script.from_source(f"""
@T.prim_func
def main(A: T.Buffer((8,), "float32")):
    {statement.format(condition)}
        A[0] = T.float32(0)
""")
    assert error.value.code == "ir/not-bool" and error.value.line == 4
