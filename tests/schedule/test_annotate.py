import pytest

import tilewright as tw
from tilewright import ir
from tilewright.script import tir as T
from tilewright.testing import check, check_refused, workloads


def loop_of(sch):
    return sch.get_loops(sch.get_block("B"))[0]


@pytest.mark.parametrize(
    "value",
    [
        3,
        -1,
        1 << 40,
        True,
        0.5,
        0.1,
        'text with "quotes" and \\ and \n',
        [1, [2, "x"], []],
        {"b": 1, "a": {"c": [0.25]}},
    ],
)
def test_values_round_trip(value):
    sch = check(workloads.transpose(4, 6), lambda sch: sch.annotate(loop_of(sch), "key", value))
    check(workloads.transpose(4, 6), lambda sch: sch.annotate("B", "key", value))
    assert 'annotations={"key"' in sch.mod.script()


def test_a_sampled_value_is_recorded_as_such():
    def annotate(sch):
        v = sch.sample_categorical([16, 64], [0.5, 0.5], decision=1)
        sch.annotate(sch.get_block("B"), "unroll", v)
        assert int(sch.get(sch.get_block("B")).annotations["unroll"]) == 64

    sch = check(workloads.transpose(4, 6), annotate)
    assert "ann_val=v0" in "\n".join(sch.trace.as_python())


def test_refusals():
    transpose = workloads.transpose(4, 6)

    def again(sch):
        sch.annotate(loop_of(sch), "key", 1)
        sch.annotate(loop_of(sch), "key", 1)

    check(transpose, again)

    def twice(sch):
        sch.annotate(loop_of(sch), "key", 1)
        sch.annotate(loop_of(sch), "key", 2)

    assert 'sch.unannotate(..., "key")' in str(check_refused(transpose, twice, "annotate/P1"))
    check_refused(transpose, lambda sch: sch.annotate(loop_of(sch), "key", None), "annotate/P2")
    check_refused(transpose, lambda sch: sch.unannotate(loop_of(sch), "key"), "unannotate/P1")

    def annotate_and_back(sch):
        sch.annotate(loop_of(sch), "key", 1)
        sch.unannotate(loop_of(sch), "key")

    check(transpose, annotate_and_back, transpose)


def test_what_is_no_value():
    sch = tw.Schedule(workloads.transpose(4, 6))
    with pytest.raises(tw.ArgumentError, match="takes AnnotationValue, not a 'object'"):
        sch.annotate(loop_of(sch), "key", object())


@T.prim_func
def open_size(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n,), "float32")
    for i in range(n):
        with T.block("B"):
            vi = T.axis.spatial(n, i)
            B[vi] = A[vi]


def test_expressions_and_statements_are_no_values():
    """Another copy of the program has variables of its own, so the trace would replay to another program."""
    (n,) = open_size.buffer_map[open_size.params[0]].shape
    buffer = open_size.buffer_map[open_size.params[0]]
    one = T.exp(T.float32(1))
    for value in (n, n * 2 + 1, T.max(n, 3), [1, n], {"a": [n]}, ir.Var("x", "int32"), one, buffer, open_size.body):
        error = check_refused(
            open_size, lambda sch, value=value: sch.annotate(loop_of(sch), "key", value), "annotate/P2"
        )
        assert error.hint
    for value in (T.int64(3), T.int64(2**40), T.float32(0.5), T.bool(True)):
        check(open_size, lambda sch, value=value: sch.annotate(loop_of(sch), "key", value))
