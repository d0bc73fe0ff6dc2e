"""sch.decompose_format: choosing a format as a step of the trace, with sampled parameters."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from tests.sparse.test_decompose import K, M, N, mask_of, operands, spmm
from tests.sparse_programs import SPMM, function

import tilewright as tw
from tilewright import _core, ir, script
from tilewright.sparse import convert_structure, decompose_format, formats
from tilewright.sparse.templates import NAMES, decomposition_of, template_rules
from tilewright.testing import check_same

#: two parts, and rows of at most 2 ** 3 nonzeros in each
MOST = 8


def drawn(parts: int, widest: int) -> tuple[tw.Schedule, list[Any]]:
    """A schedule in which both parameters of hyb are drawn: positions among the candidates are given."""
    sch = tw.Schedule(spmm)
    first = sch.sample_categorical([1, 2], [0.5, 0.5], decision=parts)
    second = sch.sample_categorical([0, 1, 3], [0.3, 0.3, 0.4], decision=widest)
    return sch, sch.decompose_format("A", "hyb", [M, N, first, second], count=MOST)


def run(sch: tw.Schedule, what: str = "random") -> None:
    mask = mask_of(what)
    values, b, dense = operands(mask)
    program = decomposition_of(sch, spmm)
    coordinates = tuple(along.astype("int32") for along in np.nonzero(mask))
    converted = convert_structure(program.rules, mask.shape, coordinates)
    c = np.full((M, K), np.nan, "float32")
    indptr = np.concatenate([[0], np.cumsum(mask.sum(1))]).astype("int32")
    more = program.arguments(converted, converted.convert_values(values))
    tw.compile(sch)(b, c, indptr, coordinates[1], M, N, K, len(values), *more)
    np.testing.assert_array_equal(c, dense[:, 1:] @ b[1:])


def test_the_program_is_that_of_the_function() -> None:
    sch = tw.Schedule(spmm)
    (bsr,) = sch.decompose_format("A", "bsr", [M, N, 3])
    assert repr(bsr) == "Iteration(spmm_bsr)"
    check_same(sch.mod["main"], decompose_format(spmm, "A", formats.bsr(M, N, 3)).function)
    assert len(sch.get_sp_iters(bsr)) == 5
    _core.verify(sch.mod, "sparse")


def test_nothing_but_the_package_is_imported() -> None:
    """Formats are known by name after ``import tilewright`` alone, also where a trace is replayed."""
    program = f"""
import sys
import tilewright as tw
from tilewright import script

spmm = script.from_source({spmm.script()!r})
sch = tw.Schedule(spmm)
assert "tilewright.sparse" not in sys.modules
(bsr,) = sch.decompose_format("A", "bsr", [{M}, {N}, 3])
assert repr(bsr) == "Iteration(spmm_bsr)"
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("parts", [0, 1])
@pytest.mark.parametrize("widest", [0, 1, 2])
@pytest.mark.parametrize("what", ["random", "empty", "one dense row"])
def test_drawn_parameters_give_equally_many_handles(parts: int, widest: int, what: str) -> None:
    sch, iterations = drawn(parts, widest)
    assert len(iterations) == MOST and len({repr(each) for each in iterations}) == MOST
    for each in iterations:
        o, i, *_ = sch.get_sp_iters(each)
        sch.sparse_fuse(o, i)
    sch.lower_sparse_iter()
    run(sch, what)


def test_replay_with_other_decisions() -> None:
    sch, _ = drawn(0, 1)
    sch.lower_sparse_iter()
    trace = tw.Trace.from_json(sch.trace.as_json())
    again = tw.Schedule(spmm)
    trace.apply_to_schedule(again)
    check_same(again.mod, sch.mod)
    other, _ = drawn(1, 2)
    other.lower_sparse_iter()
    changed = trace.with_decision(trace.insts[0], 1, remove_postproc=False)
    changed = changed.with_decision(changed.insts[1], 2, remove_postproc=False)
    replayed = tw.Schedule(spmm)
    changed.apply_to_schedule(replayed)
    check_same(replayed.mod, other.mod)
    run(replayed)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "relational"])
def test_each_format_has_a_name(name: str) -> None:
    parameters = {
        **{"banded": [M, N], "bsr": [3], "dbsr": [3], "ell": [N], "hyb": [2, 1], "padded_csr": [4], "sell": [4]},
        **{"sr_bcrs": [4, 2], "strided": [1]},
    }
    sch = tw.Schedule(spmm)
    given = [M, N, *parameters.get(name, [])]
    assert len(sch.decompose_format("A", name, given)) == len(template_rules(name, given))
    sch.lower_sparse_iter()
    run(sch)


def refused(code: str, text: str, *args: Any, func: Any = spmm, **options: Any) -> None:
    sch = tw.Schedule(func)
    with pytest.raises(tw.ScheduleError, match=text) as caught:
        sch.decompose_format(*args, **options)
    assert caught.value.code == code and caught.value.hint


def test_refusals() -> None:
    two = ir.IRModule({"f": spmm, "g": function(SPMM)})
    refused("decompose_format/P1", "does not know which function", "A", "csr", [M, N], func=two)
    lowered = tw.Schedule(spmm)
    lowered.lower_sparse_iter()
    refused("decompose_format/P1", "has no sparse axes", "A", "csr", [M, N], func=lowered.mod)
    refused("decompose_format/P2", "no format is called 'other'", "A", "other", [M, N])
    refused("decompose_format/P2", "does not take", "A", "csr", [M, N, 3])
    refused("decompose_format/P2", "does not take", "A", "bsr", [M, N, 0])
    refused("decompose_format/P2", "not an integer", "A", "bsr", [M, N, None])
    refused("decompose_format/P2", "has 4 rules, but `count` is 3", "A", "hyb", [M, N, 2, 1], count=3)
    refused("decompose_format/P2", "no sparse buffer 'Z'", "Z", "csr", [M, N])
    with pytest.raises(tw.ArgumentError, match="has 0 steps decompose_format") as caught:
        decomposition_of(tw.Schedule(spmm), spmm)
    assert caught.value.code == "sparse/template"


@pytest.mark.parametrize("name", ["csr", "csc"])
def test_iterations_that_are_named_as_those_of_a_rule_have_handles_of_their_own(name: str) -> None:
    """An iteration over the tensor that is called as another one will be, and one that has nothing to do with it."""
    more = """    with T.sp.iteration([I, J], "SS", "spmm_csr") as [i, j]:
        A[i, j] = A[i, j] * T.float32(2)
    with T.sp.iteration([I, K], "SS", "after_csr") as [i, k]:
        C[i, k] = C[i, k] + T.float32(1)
"""
    sch = tw.Schedule(script.from_source(f"{spmm.script()}\n{more}"))
    iterations = sch.decompose_format("A", name, [M, N])
    assert len(iterations) == 2
    for number, each in enumerate(iterations):
        sch.annotate(each, "number", number)
    text = sch.mod["main"].script()
    assert text.index(f'"spmm_{name}")') < text.index('{"number": 0}') < text.index(f'"spmm_csr_{name}")')
    assert text.index(f'"spmm_csr_{name}")') < text.index('{"number": 1}') < text.index('"after_csr")')
