from tilewright.script import tir as T
from tilewright.testing import check, check_refused


@T.prim_func
def program(A: T.Buffer((32, 32)), B: T.Buffer((16, 16))):
    for i, j in T.grid(16, 16):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, 0:32])
            T.writes(B[vi, vj])
            B[vi, vj] = A[vi, T.Cast("int32", T.floor(T.Cast("float32", vj) * T.float32(1.5)))]


def declared(*ranges, kind="read"):
    return lambda sch: sch.annotate_buffer_access("B", 0, kind, *ranges)


def test_the_example_of_the_contract():
    sch = check(program, declared(lambda vi, vj: (vi, (vj, vj + 16))))
    script = sch.mod.script()
    assert "T.reads(A[vi, vj:vj + 16])" in script
    assert 'T.block_attr({"explicit_read_region": [0]})' in script
    assert "gen_new_ranges=lambda vi, vj: (vi, vi + 1, vj, vj + 16)" in "\n".join(sch.trace.as_python())


def test_a_second_time():
    def twice(sch):
        declared(lambda vi, vj: (vi, (vj, vj + 16)))(sch)
        declared(lambda vi, vj: (vi, (0, 32)))(sch)
        declared(lambda vi, vj: (vi, vj), kind="write")(sch)

    script = check(program, twice).mod.script()
    assert '"explicit_read_region": [0]' in script
    assert '"explicit_write_region": [0]' in script
    assert "T.reads(A[vi, 0:32])" in script


def test_requirements():
    check_refused(
        program,
        lambda sch: sch.annotate_buffer_access("B", 1, "read", lambda i, j: (i, j)),
        "annotate_buffer_access/P1",
    )
    check_refused(program, declared(lambda i, j: (i, j), kind="both"), "annotate_buffer_access/P2")
    check_refused(program, declared(lambda i, j: i), "annotate_buffer_access/P3")
    check_refused(program, declared(lambda i: (i, i)), "annotate_buffer_access/P3")
    check_refused(program, declared(lambda i, j: (i + 1, (0, 32))), "annotate_buffer_access/P4")
    check_refused(program, declared(lambda i, j: (i, j + 1), kind="write"), "annotate_buffer_access/P4")
