"""sch.enter_postproc: the mark that traces can be cut at."""

import tilewright as tw
from tilewright.testing import check, check_same, workloads


def marked(sch):
    i, j = sch.get_loops("B")
    sch.split(j, sch.sample_perfect_tile(j, n=2, decision=[3, 2]))
    assert sch.enter_postproc() is None
    sch.parallel(i)
    sch.enter_postproc()


def test_the_program_stays():
    transpose = workloads.transpose(4, 6)
    sch = check(transpose, marked)
    assert sch.trace.as_python()[4:] == [
        "sch.enter_postproc()",
        "sch.parallel(loop=l1)",
        "sch.enter_postproc()",
    ]


def test_traces_without_what_comes_after():
    transpose = workloads.transpose(4, 6)
    whole, before = tw.Schedule(transpose, seed=0), tw.Schedule(transpose, seed=0)
    marked(whole)
    _, j = before.get_loops("B")
    before.split(j, before.sample_perfect_tile(j, n=2, decision=[3, 2]))
    trace = whole.trace
    assert trace.as_python(remove_postproc=True) == before.trace.as_python() == trace.as_python()[:4]
    assert trace.as_json(remove_postproc=True) == before.trace.as_json()
    assert len(trace.simplified(remove_postproc=True)) == 4 and len(trace.simplified()) == 7
    (draw,) = trace.decisions
    assert len(trace.with_decision(draw, [4, 1], remove_postproc=True)) == 4
    replayed = tw.Schedule(transpose)
    trace.apply_to_schedule(replayed, remove_postproc=True)
    check_same(replayed.mod, before.mod)
    assert before.trace.as_json(remove_postproc=True) == before.trace.as_json()
