"""What provably leaves buffers, domains or declared regions is refused, by tw.ir.verify and by tw.compile, with the
user's line; what cannot be proved runs."""

import numpy as np
import pytest

import tilewright as tw
from tilewright import ir, script, te
from tilewright.script import tir as T
from tilewright.testing import check, check_refused

HEADER = "from tilewright.script import tir as T\n\n@T.prim_func\n"


def program(signature, body):
    lines = "".join(f"    {line}\n" for line in body.strip("\n").split("\n"))
    return script.from_source(f"{HEADER}def main({signature}):\n{lines}")


def block(body, extent=8, **_):
    inner = "\n".join("        " + line for line in body.split("\n"))
    return f'for i in range({extent}):\n    with T.block("S"):\n        vi = T.axis.spatial({extent}, i)\n{inner}'


def refused(func, code):
    with pytest.raises(tw.ScriptError) as info:
        ir.verify(func)
    assert info.value.code == code
    with pytest.raises(tw.ScriptError) as compiled:
        tw.compile(func, schedule="as written")
    assert compiled.value.code == code
    return str(info.value)


A8 = 'A: T.Buffer((8,)), I: T.Buffer((8,), "int32"), B: T.Buffer((8,)), n: T.int32'

OUTSIDE = {
    "store": block("B[vi] = A[vi]", 16),
    "constant": "B[16] = T.float32(1)",
    "negative": block("B[vi - 1] = A[vi]"),
    "read": block("B[vi] = A[vi + 1]"),
    "guard too late": block("if vi < 9:\n    B[vi + 1] = A[vi]"),
    "padding too short": block("B[vi] = T.if_then_else(vi >= 1, A[vi - 2], T.float32(0))"),
    "both of a select": block("B[vi] = T.Select(vi >= 1, A[vi - 1], T.float32(0))"),
    "tiles": 'for i, j in T.grid(3, 3):\n    with T.block("S"):\n        vi = T.axis.spatial(9, i * 3 + j)\n'
    "        B[vi] = A[0]",
    "vector": "B[T.ramp(4, 2, 4)] = T.broadcast(T.float32(0), 4)",
    "binding": block("x: T.int32 = vi * 2\nB[x] = A[vi]"),
    "in the init": block("with T.init():\n    B[vi + 1] = T.float32(0)\nB[vi] = B[vi] + A[vi]"),
    "dead part of a condition": block("if vi > 3 or A[vi] > T.float32(0):\n    B[vi + 1] = A[vi]"),
}
INSIDE = {
    "padded": block("B[vi] = T.if_then_else(vi >= 1 and vi < 7, A[vi + 1], T.float32(0))"),
    "guarded": block("if vi < 7:\n    B[vi + 1] = A[vi]"),
    "not": block("if not vi == 7:\n    B[vi + 1] = A[vi]"),
    "else": block("if vi >= 7:\n    B[vi] = A[vi]\nelse:\n    B[vi + 1] = A[vi]"),
    "short circuit": block("if vi < 7 and A[vi + 1] > T.float32(0):\n    B[vi] = A[vi]"),
    "tiles": 'for i, j in T.grid(3, 3):\n    with T.block("S"):\n        vi = T.axis.spatial(8, i * 3 + j)\n'
    "        T.where(i * 3 + j < 8)\n        B[vi] = A[vi]",
    "data": block("B[I[vi]] = A[vi]"),
    "data dependent guard": block("if A[vi] > T.float32(0):\n    B[vi + 1] = A[vi]"),
    "size": "for i in range(n):\n    B[i + 16] = T.float32(0)",
    "empty": "for i in range(0):\n    B[i + 16] = T.float32(0)",
    "asserted": "assert n < 0, 'no'\nif n < 0:\n    B[16] = T.float32(0)",
    "mirrored": block("B[7 - vi] = A[vi]"),
    "wrapped": block("B[vi * 3 % 8] = A[(vi + 5) % 8]"),
    "triangle": "for i in range(8):\n    for j in range(i):\n        B[j + 1] = A[i - j]",
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_provably_out_of_bounds(name):
    text = refused(program(A8, OUTSIDE[name]), "verify/bounds")
    assert "^^^" in text and "of dimension 0, which has 8 elements" in text


@pytest.mark.parametrize("name", INSIDE)
def test_not_provably_out_of_bounds(name):
    ir.verify(program(A8, INSIDE[name]))
    tw.compile(program(A8, INSIDE[name]), schedule="as written")


def test_the_users_line_and_the_iteration():
    @T.prim_func
    def short(A: T.Buffer((4, 5)), B: T.Buffer((4, 8))):
        for i, j in T.grid(4, 8):
            with T.block("S"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj]

    text = refused(short, "verify/bounds")
    assert "block 'S' reads 'A' at index 7 of dimension 1, which has 5 elements, where i = 0, j = 7" in text
    assert "B[vi, vj] = A[vi, vj]" in text and __file__ in text and "hint: " in text


def test_formulas_that_read_too_far():
    A = te.placeholder((4, 5), name="A")
    B = te.compute((4,), lambda i: A[i, 7], name="B")
    with pytest.raises(tw.ScriptError) as info:
        tw.compile(te.create_prim_func([A, B]), schedule="as written")
    assert info.value.code == "verify/bounds" and "index 7 of dimension 1, which has 5" in str(info.value)


def test_a_domain_smaller_than_its_loop():
    @T.prim_func
    def tail(A: T.Buffer((8,)), B: T.Buffer((8,))):
        for i in range(8):
            with T.block("S"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi]

    text = refused(tail, "verify/axis-bounds")
    assert "axis 'vi' of block 'S' has the domain [0, 4) and is bound to 7, where i = 7" in text


@pytest.mark.parametrize("kinds", ["SS", "SR"])
def test_an_init_with_a_spatial_axis_that_selects_nothing(kinds):
    func = script.from_source(f"""{HEADER}def main(A: T.Buffer((4, 4)), B: T.Buffer((4,))):
    for i, j in T.grid(4, 4):
        with T.block("S"):
            vi, vj = T.axis.remap("{kinds}", [i, j])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vj]
""")
    if kinds == "SS":
        text = refused(func, "verify/init")
        assert "spatial axis 'vj' of extent 4" in text and "reduction axis" in text
    else:
        a, b = np.ones((4, 4), "float32"), np.zeros(4, "float32")
        tw.compile(func, schedule="as written")(a, b)
        assert b.tolist() == [4, 4, 4, 4]


def test_an_init_of_an_array_without_elements():
    func = script.from_source(f"""{HEADER}def main(A: T.Buffer((4, 4)), B: T.Buffer((0,))):
    for e, i, j in T.grid(0, 4, 4):
        with T.block("S"):
            ve, vi, vj = T.axis.remap("SSR", [e, i, j])
            with T.init():
                B[0] = T.float32(0)
            B[0] = B[0] + A[vi, vj]
""")
    tw.compile(func, schedule="as written")(np.ones((4, 4), "float32"), np.zeros(0, "float32"))


# ---- declared regions ------------------------------------------------------------------------------------------------

DECLARED = {
    "t[63 - vi]": ("T.reads(t[vi])", "verify/reads"),
    "t[I[vi]]": ("T.reads(t[vi], I[vi])", "verify/reads"),
    "t[(vi + 1) % 64]": ("T.reads(t[vi])", "verify/reads"),
    "t[T.if_then_else(vi < 63, vi + 1, 0)]": ("T.reads(t[vi])", "verify/reads"),
    "t[vi]": ("T.reads(t[vi], I[vi])", None),
    "t[I[vi] % 64]": ("T.reads(t[0:64], I[vi])", None),
    "t[T.min(I[vi], 3)]": ("T.reads(t[0:64], I[vi])", None),
    "t[I[vi] % 4]": ("T.reads(t[0:4], I[vi])", None),
    "t[I[vi] % 8]": ("T.reads(t[0:4], I[vi])", "verify/reads"),
    "t[vi // 2]": ("T.reads(t[vi // 4 * 2:vi // 4 * 2 + 2])", None),
}


@pytest.mark.parametrize("access", DECLARED)
def test_declared_regions_are_compared_with_accesses(access):
    regions, code = DECLARED[access]
    func = script.from_source(f"""{HEADER}def main(A: T.Buffer((64,)), I: T.Buffer((64,), "int32"), C: T.Buffer((64,))):
    t = T.alloc_buffer((64,))
    for i in range(64):
        with T.block("t"):
            vi = T.axis.spatial(64, i)
            t[vi] = A[vi]
    for i in range(64):
        with T.block("C"):
            vi = T.axis.spatial(64, i)
            {regions}
            T.writes(C[vi])
            C[vi] = {access}
""")

    def fused(sch):
        sch.compute_at(sch.get_block("t"), sch.get_loops(sch.get_block("C"))[0])

    if code:
        assert "^^^" in refused(func, code)
        error = check_refused(func, fused, "compute_at/P6")
        assert "reads more of 't' than it declares" in str(error)
    else:
        ir.verify(func)
    if access == "t[vi]":
        check(func, fused)


def test_written_regions_are_compared_too():
    func = program(A8, block("T.reads(A[vi])\nT.writes(B[vi])\nB[7 - vi] = A[vi]"))
    text = refused(func, "verify/writes")
    assert (
        "block 'S' writes buffer 'B', where i = 7, outside of the regions it declares" in text or "where i = 0" in text
    )
    refused(program(A8, block("T.reads(A[vi], I[vi])\nT.writes(B[vi])\nB[I[vi]] = A[vi]")), "verify/writes")


def loops_of(sch, name):
    return sch.get_loops(sch.get_block(name))


RELYING = {
    "compute_at": lambda sch: sch.compute_at(sch.get_block("set"), loops_of(sch, "use")[1]),
    "reverse_compute_at": lambda sch: sch.reverse_compute_at(sch.get_block("use"), loops_of(sch, "set")[1]),
    "compute_inline": lambda sch: sch.compute_inline(sch.get_block("set")),
    "cache_read": lambda sch: sch.cache_read(sch.get_block("use"), 0, "global"),
    "cache_write": lambda sch: sch.cache_write(sch.get_block("set"), 0, "global"),
    "parallel": lambda sch: sch.parallel(loops_of(sch, "set")[1]),
    "parallel rounds": lambda sch: sch.parallel(loops_of(sch, "use")[0]),
    "vectorize": lambda sch: sch.vectorize(loops_of(sch, "set")[1]),
    "reorder": lambda sch: sch.reorder(*reversed(sch.split(loops_of(sch, "set")[1], [2, 4]))),
}


def test_accesses_that_data_decide_about_run_but_nothing_relies_on_their_regions():
    """Data may keep an index inside: such a program compiles, as written. Steps that need regions refuse it."""

    @T.prim_func
    def func(A: T.Buffer((8,), "int32"), I: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
        t = T.alloc_buffer((8,), "int32")
        for o in range(3):
            for i in range(8):
                with T.block("set"):
                    vi = T.axis.spatial(8, i)
                    T.reads(A[vi], I[vi])
                    T.writes(t[vi])
                    t[vi] = A[vi]
                    if I[vi] > 3:
                        t[I[vi]] = A[vi] + 100
            for i in range(8):
                with T.block("use"):
                    vi = T.axis.spatial(8, i)
                    T.reads(t[vi], I[vi])
                    T.writes(C[vi])
                    C[vi] = t[vi] + T.if_then_else(I[vi] < 6, t[I[vi]], 0)

    ir.verify(func)
    a, index = np.arange(8, dtype="int32"), np.array([7, 0, 5, 4, 3, 6, 1, 2], "int32")
    t = np.zeros(8, "int32")
    for i in range(8):
        t[i] = a[i]
        if index[i] > 3:
            t[index[i]] = a[i] + 100
    for target in ("interpreter", "native"):
        c = np.zeros(8, "int32")
        tw.compile(func, target=target, schedule="as written")(a, index, c)
        assert c.tolist() == (t + np.where(index < 6, t[index], 0)).tolist()
    for step in RELYING.values():
        with pytest.raises(tw.ScheduleError, match="more of 't' than it declares"):
            step(tw.Schedule(func))


def test_dimensions_that_data_selects_are_judged_apart_from_the_others():
    @T.prim_func
    def gather(I: T.Buffer((8,), "int32"), A: T.Buffer((8, 4), "float32"), B: T.Buffer((12,), "float32")):
        for i in range(12):
            with T.block("B"):
                v = T.axis.spatial(12, i)
                T.reads(I[0:8], A[T.min(v * v % 8, v // 2) : T.max(v * v % 8, v // 2) + 1, 0:4])
                T.writes(B[v])
                B[v] = A[v * v % 8, v % 4] + A[v // 2, I[v % 8] % 4]

    tw.ir.verify(gather)


def test_regions_between_elements_that_data_selects_are_whole_dimensions():
    @T.prim_func
    def gather(I: T.Buffer((8,), "int32"), A: T.Buffer((12,), "float32"), B: T.Buffer((12,), "float32")):
        for i in range(2, 12):
            with T.block("B"):
                v = T.axis.spatial(12, i - 2)
                B[v] = A[v] + A[I[v // 2 * 2 % 8] % 12] * A[I[v * v % 8] % 12]

    assert "T.reads(A[0:12]," in gather.script()
    tw.lower(gather)


@pytest.mark.parametrize(
    ("body", "code", "line"),
    [
        (block("B[vi] = A[vi]", 16), "verify/bounds", "B[vi] = A[vi]"),
        (
            'for i in range(16):\n    with T.block("S"):\n        vi = T.axis.spatial(8, i)\n        B[vi] = A[vi]',
            "verify/axis-bounds",
            'with T.block("S")',
        ),
    ],
)
def test_the_program_is_shown_where_its_text_is_not_kept(body, code, line):
    with pytest.raises(tw.ScriptError) as info:
        tw.compile(program(A8, body), schedule="as written")
    text = str(info.value)
    assert info.value.code == code and "in the program:" in text and line in text and "^^^" in text


def test_the_users_own_line_is_shown_once():
    @T.prim_func
    def outside(A: T.Buffer((8,)), B: T.Buffer((8,))):
        for i in range(16):
            with T.block("S"):
                vi = T.axis.spatial(16, i)
                B[vi] = A[vi % 8]

    with pytest.raises(tw.ScriptError) as info:
        tw.compile(outside, schedule="as written")
    assert str(info.value).count("B[vi] = A[vi % 8]") == 1 and "in the program" not in str(info.value)


def test_an_init_runs_also_where_its_reduction_has_no_step():
    func = program(
        "a: T.handle, B: T.Buffer((4,), 'float32')",
        """
n = T.int32()
A = T.match_buffer(a, (4, n), "float32")
for i, k in T.grid(4, n):
    with T.block("S"):
        vi, vk = T.axis.remap("SR", [i, k])
        T.reads(A[vi, vk])
        T.writes(B[0])
        with T.init():
            B[vi] = T.float32(0)
        B[vi] = B[vi] + A[vi, vk]
""",
    )
    assert "writes buffer 'B'" in refused(func, "verify/writes")


@pytest.mark.parametrize("region", ["B[vi:vk]", "B[vi:vi]", "B[vi:vi + vk]", "B[vi:vi + 1 - vk]"])
def test_regions_that_may_be_empty(region):
    reduces = f"""
for i, k in T.grid(8, 8):
    with T.block("S"):
        vi, vk = T.axis.remap("SR", [i, k])
        T.reads(A[vk])
        T.writes({region})
        B[vi] = B[vi] + A[vk]"""
    assert "outside of the regions it declares" in refused(program(A8, reduces), "verify/reads")


def test_an_init_writes_what_it_stores_to_where_regions_speak_of_reduction_axes():
    @T.prim_func
    def func(A: T.Buffer((3,), "int32"), B: T.Buffer((4,), "int32")):
        for i, k in T.grid(4, 3):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                T.reads(A[vk])
                T.writes(B[T.max(vi - vk, 0) : vi + 1])
                with T.init():
                    B[vi] = 1
                B[vi] = B[vi] * A[vk]

    assert tw.compile(func)(np.array([2, 3, 5], "int32")).tolist() == [30] * 4
    check_refused(func, lambda sch: sch.blockize(sch.get_loops("B")[1]), "blockize/P4")
    check_refused(func, lambda sch: sch.decompose_reduction("B", sch.get_loops("B")[1]), "decompose_reduction/P1")


def test_accesses_in_empty_loops_need_no_region():
    """Regions are unions of what happens: rows without columns are read nowhere."""
    func = script.from_source("""@T.prim_func
def main(p: T.Buffer((2,), "int32"), B: T.Buffer((6, 0)), C: T.Buffer((6, 0))):
    for i, j in T.grid(6, 0):
        with T.block("C"):
            v, w = T.axis.remap("SS", [i, j])
            for k in range(2):
                with T.block("sum"):
                    r = T.axis.reduce(2, k)
                    T.reads(p[0:2], B[p[0], p[1]], C[v, w])
                    T.writes(C[v, w])
                    C[v, w] = C[v, w] + B[p[r] + v, w] * B[p[0], p[1]]
""")
    ir.verify(func)
    with pytest.raises(tw.ScriptError, match="not proved to be in bounds") as error:
        ir.verify(script.from_source(func.script().replace("(6, 0)", "(6, 2)")))
    assert error.value.code == "verify/reads"
