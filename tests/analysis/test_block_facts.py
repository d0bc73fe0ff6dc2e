"""What a block surely writes, whether it accumulates in any order, and whose memory it touches: steps that would change
results are refused, and those that would not are accepted."""

import numpy as np
import pytest

import tilewright as tw
from tilewright import ir, script
from tilewright.script import tir as T
from tilewright.testing import check, check_refused

HEADER = "from tilewright.script import tir as T\n\n@T.prim_func\n"


def program(text):
    return script.from_source(HEADER + text)


def chain(first, second="C[vi] = B[vi]"):
    """B, set to 0 by `zero`, then written by `first` and read by `second`."""
    lines = """def main(A: T.Buffer((16,)), I: T.Buffer((16,), "int32"), C: T.Buffer((16,))):
    B = T.alloc_buffer((16,))
    for i in range(16):
        with T.block("zero"):
            vi = T.axis.spatial(16, i)
            B[vi] = T.float32(0)
    for i in range(16):
        with T.block("first"):
            vi = T.axis.spatial(16, i)
"""
    lines += "".join(f"            {line}\n" for line in first.split("\n"))
    lines += '    for i in range(16):\n        with T.block("second"):\n            vi = T.axis.spatial(16, i)\n'
    lines += "".join(f"            {line}\n" for line in second.split("\n"))
    return program(lines)


PARTIAL = {
    "condition": "if A[vi] > T.float32(0):\n    B[vi] = A[vi]",
    "loop": "for j in range(I[vi] + 4):\n    B[vi] = A[vi]",
    "affine": "if vi < 10:\n    B[vi] = A[vi]",
    "while": "while B[vi] < A[vi]:\n    B[vi] = B[vi] + T.float32(1)",
    "branches": "if A[vi] > T.float32(0):\n    B[vi] = A[vi]\nelse:\n    C[vi] = A[vi]",
    "declared": "T.reads(A[vi])\nT.writes(B[0:16])\nB[vi] = A[vi]",
}
WHOLE = {
    "plain": "B[vi] = A[vi]",
    "both": "if A[vi] > T.float32(0):\n    B[vi] = A[vi]\nelse:\n    B[vi] = T.float32(1)",
    "repeated": "for j in range(3):\n    B[vi] = A[vi]",
    "bound": "x: T.int32 = vi\nB[x] = A[x]",
    "then": "if A[vi] > T.float32(0):\n    B[vi] = A[vi]\nB[vi] = A[vi]",
}


@pytest.mark.parametrize("name", PARTIAL)
def test_a_store_that_may_not_happen_leaves_a_value_behind(name):
    before = chain(PARTIAL[name])
    first = lambda sch: sch.get_block("first")  # noqa: E731
    for code, step in {
        "cache_write/P3": lambda sch: sch.cache_write(first(sch), 0, "global"),
        "compute_at/P1": lambda sch: sch.compute_at(first(sch), sch.get_loops(sch.get_block("second"))[0]),
        "compute_inline/P1": lambda sch: sch.compute_inline(first(sch)),
    }.items():
        check_refused(before, step, code)


@pytest.mark.parametrize("name", WHOLE)
def test_a_store_that_surely_happens(name):
    text = """def main(A: T.Buffer((16,)), C: T.Buffer((16,))):
    B = T.alloc_buffer((16,))
    for i in range(16):
        with T.block("first"):
            vi = T.axis.spatial(16, i)
{}
    for i in range(16):
        with T.block("second"):
            vi = T.axis.spatial(16, i)
            C[vi] = B[vi]
""".format("\n".join("            " + line for line in WHOLE[name].split("\n")))

    def fused(sch):
        loop = sch.get_loops(sch.get_block("second"))[0]
        sch.compute_at(sch.get_block("first"), loop)
        sch.parallel(loop)

    check(program(text), fused)
    check(program(text), lambda sch: sch.cache_write(sch.get_block("first"), 0, "global"))


@pytest.mark.parametrize("index", ["vi", "15 - vi"])
def test_a_partial_store_needs_what_was_there_before(index):
    """Iterations are independent only if what one may keep is what the same one has set."""
    before = program(f"""def main(A: T.Buffer((16,)), B: T.Buffer((16,))):
    for i in range(16):
        with T.block("zero"):
            vi = T.axis.spatial(16, i)
            B[vi] = T.float32(0)
        with T.block("first"):
            vi = T.axis.spatial(16, i)
            if A[vi] > T.float32(0):
                B[{index}] = A[vi]
""")

    def parallel(sch):
        sch.parallel(sch.get_loops(sch.get_block("zero"))[0])

    if index == "vi":
        check(before, parallel)
    else:
        check_refused(before, parallel, "parallel/P5")


def reduction(body):
    return program(f"""def main(A: T.Buffer((4, 6, 5)), C: T.Buffer((4,))):
    for i, j, k in T.grid(4, 6, 5):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SRR", [i, j, k])
            with T.init():
                C[vi] = T.float32(1)
{chr(10).join("            " + line for line in body.split(chr(10)))}
""")


ORDERED = {
    "condition": "if C[vi] < T.float32(10):\n    C[vi] = C[vi] + A[vi, vj, vk]",
    "binding": "x: T.float32 = T.max(C[vi], A[vi, vj, vk])\nC[vi] = C[vi] + x",
    "overwritten": "if A[vi, vj, vk] > T.float32(1):\n    C[vi] = A[vi, vj, vk]",
    "two operators": "C[vi] = C[vi] + A[vi, vj, vk]\nC[vi] = C[vi] * A[vi, vj, vk]",
}
COMMUTATIVE = {
    "sum": "C[vi] = C[vi] + A[vi, vj, vk]",
    "difference": "C[vi] = C[vi] - A[vi, vj, vk]",
    "max": "C[vi] = T.max(C[vi], A[vi, vj, vk])",
    "filtered": "if A[vi, vj, vk] > T.float32(1):\n    C[vi] = C[vi] + A[vi, vj, vk]",
    "bound": "x: T.float32 = A[vi, vj, vk]\nC[vi] = C[vi] + x * x",
    "two steps": "C[vi] = C[vi] + A[vi, vj, vk]\nC[vi] = C[vi] - T.float32(1)",
}


def swap(sch):
    _, j, k = sch.get_loops(sch.get_block("C"))
    sch.reorder(k, j)


@pytest.mark.parametrize("name", ORDERED)
def test_reductions_whose_order_matters(name):
    error = check_refused(reduction(ORDERED[name]), swap, "reorder/P5" if name != "overwritten" else "reorder/P4")
    assert "block 'C'" in str(error)


@pytest.mark.parametrize("name", COMMUTATIVE)
def test_reductions_in_any_order(name):
    check(reduction(COMMUTATIVE[name]), swap)


def test_a_view_shares_the_memory_of_its_source():
    """The second loop reads t through V, so the iterations of the first one have no t of their own."""
    before = program("""def main(A: T.Buffer((16,)), C: T.Buffer((16,))):
    t = T.alloc_buffer((4,))
    with T.block("outer"):
        T.reads(A[0:16])
        T.writes(C[0:16], t[0:4])
        V = T.match_buffer(t[0:4], (4,))
        for i in range(4):
            for j in range(4):
                with T.block("set"):
                    vj = T.axis.spatial(4, j)
                    t[vj] = A[vj]
            for j in range(4):
                with T.block("use"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi * 4 + vj] = t[vj]
        for j in range(4):
            with T.block("last"):
                vj = T.axis.spatial(4, j)
                C[vj] = V[vj]
""")
    error = check_refused(before, lambda sch: sch.parallel(sch.get_loops(sch.get_block("set"))[0]), "parallel/P4")
    assert "may write the same elements of 't'" in str(error)
    # The block that reads V comes after the one that writes t.
    sch = tw.Schedule(before)
    assert [sch.get(block).name_hint for block in sch.get_consumers(sch.get_block("set"))] == ["use", "last"]
    check_refused(before, lambda sch: sch.cache_write(sch.get_block("use"), 0, "global"), "cache_write/P3")


# ---- opaque blocks ---------------------------------------------------------------------------------------------------


def tiles(read='"r"', write='"w"', regions="T.reads(B[vi * 4:vi * 4 + 4])\n            T.writes(C[vi * 4:vi * 4 + 4])"):
    """C copied from B by a function that knows pointers only."""
    return program(f"""def main(A: T.Buffer((16,)), C: T.Buffer((16,))):
    B = T.alloc_buffer((16,))
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi] + T.float32(1)
    for i in range(4):
        with T.block("copy"):
            vi = T.axis.spatial(4, i)
            {regions}
            b = T.match_buffer(B[vi * 4:vi * 4 + 4], (4,), offset_factor=4)
            c = T.match_buffer(C[vi * 4:vi * 4 + 4], (4,), offset_factor=4)
            T.call_extern("handle", "memcpy", c.access_ptr({write}), b.access_ptr({read}), T.uint64(16))
""")


def run_as_written_and(sch, before):
    """Both programs by the compiler: the interpreter knows no functions from outside."""
    results = []
    for each in (before, sch):
        a, c = np.arange(16, dtype="float32"), np.zeros(16, "float32")
        tw.compile(each, schedule="as written")(a, c)
        results.append(c.tolist())
    assert results[0] == results[1] == list(range(1, 17))


def test_an_opaque_block_answers_by_its_contract():
    before = tiles()
    sch = tw.Schedule(before)
    loop = sch.get_loops(sch.get_block("copy"))[0]
    sch.compute_at(sch.get_block("B"), loop)
    sch.parallel(loop)
    run_as_written_and(sch, before)
    other = tw.Schedule(before)
    outer, inner = other.split(other.get_loops(other.get_block("copy"))[0], [2, 2])
    other.reorder(inner, outer)
    run_as_written_and(other, before)


@pytest.mark.parametrize(
    ("contract", "why"),
    [
        ({"regions": "T.reads()\n            T.writes(C[vi * 4:vi * 4 + 4])"}, "it reads more of 'B' than it declares"),
        (
            {"regions": "T.reads(B[vi * 4:vi * 4 + 2])\n            T.writes(C[vi * 4:vi * 4 + 4])"},
            "it reads more of 'B' than it declares",
        ),
        (
            {"regions": "T.reads(B[vi * 4:vi * 4 + 4])\n            T.writes(C[vi * 4:vi * 4 + 3])"},
            "it writes more of 'C' than it declares",
        ),
        ({"write": '"rw"'}, "it reads more of 'C' than it declares"),
        ({"read": '"rw"'}, "it writes more of 'B' than it declares"),
    ],
)
def test_a_contract_is_compared_with_what_the_pointers_show(contract, why):
    error = check_refused(
        tiles(**contract), lambda sch: sch.parallel(sch.get_loops(sch.get_block("copy"))[0]), "parallel/P2"
    )
    assert why in str(error)


def test_what_an_opaque_block_replaces_needs_no_value_before():
    """A block that only writes through its pointer is complete, one that may read updates."""
    complete = tw.Schedule(tiles())
    complete.cache_read(complete.get_block("copy"), 0, "global")
    both = "T.reads(B[vi * 4:vi * 4 + 4], C[vi * 4:vi * 4 + 4])\n            T.writes(C[vi * 4:vi * 4 + 4])"
    error = check_refused(
        tiles(write='"rw"', regions=both),
        lambda sch: sch.cache_write(sch.get_block("copy"), 0, "global"),
        "cache_write/P3",
    )
    assert "it updates elements that have a value before" in str(error)


# ---- what the random test found --------------------------------------------------------------------------------------


def test_reads_of_other_elements_are_regions_of_a_reduction_too():
    before = program("""def main(A: T.Buffer((16,)), C: T.Buffer((16,))):
    for i, k in T.grid(13, 4):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi + 2] = T.float32(0)
            C[vi + 2] = C[vi] - C[vi + 2] + A[vi + vk]
""")
    ir.verify(before)
    [block] = [node for node in nodes_of(before) if isinstance(node, ir.Block) and node.name_hint == "C"]
    assert [region.buffer.name for region in block.reads] == ["C", "A"]
    check_refused(before, lambda sch: sch.parallel(sch.get_loops(sch.get_block("C"))[0]), "parallel/P2")


def nodes_of(func):
    found = []
    ir.visit(func, found.append)
    return found


def test_a_buffer_filled_by_a_nested_block_is_private_to_parallel_iterations():
    before = program("""def main(A: T.Buffer((4, 8)), C: T.Buffer((3, 4, 8))):
    t = T.alloc_buffer((8,))
    for o in range(3):
        for i in T.parallel(4):
            with T.block("fill"):
                T.reads(A[0, 0:8])
                T.writes(t[0:8])
                for j in range(8):
                    with T.block("one"):
                        vj = T.axis.spatial(8, j)
                        t[vj] = A[0, vj]
            for j in range(8):
                with T.block("use"):
                    vo, vi, vj = T.axis.remap("SSS", [o, i, j])
                    C[vo, vi, vj] = t[7 - vj] * A[vi, vj]
""")
    a = np.arange(32, dtype="float32").reshape(4, 8)
    for target in ("interpreter", "native"):
        c = np.zeros((3, 4, 8), "float32")
        tw.compile(before, target=target, schedule="as written")(a, c)
        assert (c == a[0, ::-1] * a).all()


@pytest.mark.parametrize("rounds", [1, 3])
def test_buffers_are_private_to_parallel_iterations_where_lowering_puts_them_there(rounds):
    """Nothing proves that stores through a view set all of t: below a serial loop, lowering leaves it outside."""
    before = program(f"""def main(A: T.Buffer((8,)), C: T.Buffer(({rounds}, 4, 8))):
    t = T.alloc_buffer((8,))
    for o in range({rounds}):
        for i in range(4):
            for j in range(8):
                with T.block("set"):
                    vj = T.axis.spatial(8, j)
                    V = T.match_buffer(t[vj], (1,), offset_factor=1)
                    V[0] = A[vj]
            for j in range(8):
                with T.block("use"):
                    vo, vi, vj = T.axis.remap("SSS", [o, i, j])
                    C[vo, vi, vj] = t[7 - vj] * T.float32(2)
""")

    def parallel(sch):
        sch.parallel(sch.get_loops(sch.get_block("set"))[1])

    if rounds == 1:
        check(before, parallel)
    else:
        check_refused(before, parallel, "parallel/P4")


@pytest.mark.parametrize(("divisor", "is_sure"), [("n", False), ("7", True)])
def test_an_operand_that_a_result_may_skip_keeps_its_place(divisor, is_sure):
    """Where one iteration makes C[0] false, those after it divide by no n of zero."""
    before = program(f"""def main(a: T.handle, C: T.Buffer((1,), "bool")):
    n = T.int32()
    A = T.match_buffer(a, (n,), "int32")
    for i, j, k in T.grid(1, 6, 5):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SRR", [i, j, k])
            with T.init():
                C[vi] = T.bool(True)
            C[vi] = C[vi] and (vj * 5 + vk) % {divisor} < 4
""")
    if is_sure:
        check(before, swap)
    else:
        check_refused(before, swap, "reorder/P5")


@pytest.mark.parametrize(("read", "is_own"), [("C[1, vi]", False), ("C[vi, 2]", True)])
def test_a_block_that_declares_more_than_it_writes_reads_what_other_instances_write(read, is_own):
    """Its rows are its own, though it declares all of C: that it reads C[1] is not covered by that."""
    before = program(f"""def main(C: T.Buffer((4, 4))):
    for i in range(4):
        with T.block("C"):
            vi = T.axis.spatial(4, i)
            T.reads(C[0:4, 0:4])
            T.writes(C[0:4, 0:4])
            for j in range(4):
                C[vi, j] = T.max(C[vi, j], {read} + T.float32(1))
""")

    def parallel(sch):
        sch.parallel(sch.get_loops(sch.get_block("C"))[0])

    if is_own:
        check(before, parallel)
    else:
        error = check_refused(before, parallel, "parallel/P2")
        assert "different elements" in str(error)


def test_regions_do_not_speak_of_what_the_block_allocates() -> None:
    """Around the block, nobody knows the value of an index that it keeps in a buffer of its own."""

    @T.prim_func
    def first(x: T.Buffer((8,), "int32"), y: T.Buffer((4,), "int32")):
        for i in range(4):
            with T.block("first"):
                vi = T.axis.spatial(4, i)
                at = T.alloc_buffer((1,), "int32")
                at[0] = vi
                while x[at[0]] < 0:
                    at[0] = at[0] + 1
                y[vi] = at[0]

    block = (sch := tw.Schedule(first)).get(sch.get_block("first"))
    assert [(r.buffer.name, str(r.region[0].min), str(r.region[0].extent)) for r in block.reads] == [("x", "0", "8")]


SEGMENTS = """
def f(P: T.Buffer((5,), "int32"), a: T.handle):
    z = T.int32(is_size_var=True)
    A = T.match_buffer(a, (z,), "int32")
    for i in range(4):
        with T.block("rows"):
            vi = T.axis.spatial(4, i)
            T.assume_buffer_domain(P, [0, z + 1], order="nondecreasing")
            for j in range(P[vi + 1] - P[vi]):
                with T.block("row"):
                    vj = T.axis.spatial(P[vi + 1] - P[vi], j)
                    A[P[vi] + vj] = A[P[vi] + vj] + vi
"""


def test_segments_between_ascending_offsets_are_apart() -> None:
    sch = tw.Schedule(program(SEGMENTS))
    sch.parallel(sch.get_loops("rows")[0])
    arrays = np.array([0, 2, 2, 5, 6], "int32"), np.zeros(6, "int32")
    tw.compile(sch.mod, target="interpreter")(*arrays)
    assert arrays[1].tolist() == [0, 0, 2, 2, 2, 3]


@pytest.mark.parametrize(
    "change",
    [
        (', order="nondecreasing"', ""),
        ("range(P[vi + 1] - P[vi])", "range(P[vi + 1] - P[vi] + 1)"),
        ("A[P[vi] + vj]", "A[P[vi] - vj]"),
        ("A[P[vi] + vj]", "A[P[3 - vi] + vj]"),
    ],
)
def test_other_segments_may_overlap(change: tuple[str, str]) -> None:
    text = SEGMENTS.replace(*change).replace("T.axis.spatial(P[vi + 1] - P[vi], j)", "T.axis.spatial(z + 1, j)")
    assert text != SEGMENTS
    sch = tw.Schedule(program(text))
    with pytest.raises(tw.ScheduleError, match="may write the same elements"):
        sch.parallel(sch.get_loops("rows")[0])


def test_a_declaration_that_is_repeated_inside_is_checked_once() -> None:
    """The interpreter reports the outer one; the inner one holds then, since nothing in between writes the buffer."""
    text = SEGMENTS.replace(
        "    for i in", '    T.assume_buffer_domain(P, [0, z + 1], order="nondecreasing")\n    for i in', 1
    )
    for offsets, fails in (([0, 2, 1, 5, 6], True), ([0, 2, 2, 5, 6], False)):
        kernel = tw.compile(program(text), target="interpreter")
        if not fails:
            kernel(np.array(offsets, "int32"), np.zeros(6, "int32"))
            continue
        with pytest.raises(tw.Error, match="nondecreasing"):
            kernel(np.array(offsets, "int32"), np.zeros(6, "int32"))
