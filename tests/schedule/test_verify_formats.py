"""sch.verify() of programs that have been decomposed into formats: the same nonzeros, stored as the rules say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.sparse.test_decompose import M, N, mask_of, sddmm, spmm
from tests.sparse_programs import BSR, CASES, ELL, csf, function, mask

import tilewright as tw
from tilewright import _core, ir
from tilewright.errors import ResourceError
from tilewright.sparse import decompose_format, formats, templates
from tilewright.sparse.format_step import Elements
from tilewright.sparse.templates import NAMES
from tilewright.support.changed_nodes import with_fields
from tilewright.support.nodes import nodes_of
from tilewright.task import verification

PARAMETERS: dict[str, list[int]] = {
    **{"banded": [M, N], "bsr": [3], "dbsr": [3], "ell": [N], "hyb": [2, 1], "padded_csr": [4], "sell": [4]},
    **{"sr_bcrs": [4, 2], "strided": [1]},
}


RELATIONS = """
def f(a: T.handle, x: T.handle, w: T.handle, y: T.handle, pi: T.handle, qi: T.handle, pj: T.handle, qj: T.handle,
      nnz_i: T.int32, nnz_j: T.int32):
    R = T.sp.dense_fixed(3)
    I = T.sp.compressed_varied(R, (6, nnz_i), (pi, qi))
    J = T.sp.compressed_varied(I, (8, nnz_j), (pj, qj))
    I_all = T.sp.dense_fixed(6)
    J_all = T.sp.dense_fixed(8)
    K = T.sp.dense_fixed(2)
    F = T.sp.dense_fixed(3)
    A = T.sp.match_buffer(a, (R, I, J), "float32")
    X = T.sp.match_buffer(x, (J_all, K), "float32")
    W = T.sp.match_buffer(w, (R, K, F), "float32")
    Y = T.sp.match_buffer(y, (I_all, F), "float32")
    with T.sp.iteration([I_all, F], "SS", "zero") as [i, f]:
        Y[i, f] = T.float32(0)
    with T.sp.iteration([R, I, J, K, F], "RRRRS", "rgms") as [r, i, j, k, f]:
        Y[i, f] = Y[i, f] + A[r, i, j] * X[j, k] * W[r, k, f]
"""


def decomposed(func: ir.PrimFunc, name: str, parameters: list[int]) -> tw.Schedule:
    sch = tw.Schedule(func)
    sch.decompose_format("A", name, [M, N, *parameters])
    return sch


@pytest.mark.parametrize("name", [name for name in NAMES if name != "relational"])
@pytest.mark.parametrize("func", [spmm, sddmm], ids=["spmm", "sddmm"])
def test_each_format(name: str, func: ir.PrimFunc) -> None:
    sch = decomposed(func, name, PARAMETERS.get(name, []))
    assert sch.verify().instances == 3
    sch.lower_sparse_iter()
    found = sch.verify()
    assert (found.extent, found.instances) == ("full", 3)
    # All rows and columns of the format, for 5, 48 and 1 columns of the dense operand.
    assert func is not spmm or found.elements == M * (5 + 48 + 1)


@pytest.mark.parametrize(("name", "parameters"), [("ell", [1]), ("banded", [1, 2]), ("strided", [3])])
def test_formats_that_do_not_hold_every_structure(name: str, parameters: list[int]) -> None:
    sch = decomposed(sddmm, name, parameters)
    sch.lower_sparse_iter()
    assert sch.verify().elements > 3


def test_structures_of_the_user() -> None:
    row = mask_of("one dense row")
    given: dict[str, Any] = {
        "indptr": np.concatenate([[0], np.cumsum(row.sum(1))]).astype("int32"),
        "indices": np.nonzero(row)[1].astype("int32"),
    }
    for name, parameters in (("hyb", [2, 1]), ("sell", [4]), ("ell", [N])):
        sch = decomposed(spmm, name, parameters)
        sch.lower_sparse_iter()
        assert sch.verify(given).elements == M * (5 + 48 + 1)
    sch = decomposed(spmm, "ell", [2])
    with pytest.raises(tw.ArgumentError, match="along axis 'J' is") as caught:
        sch.verify(given)
    assert caught.value.code == "sparse/key" and caught.value.hint


def test_a_structure_that_the_format_is_too_small_for() -> None:
    sch = decomposed(spmm, "csr", [])
    given = {"m": M + 1, "indptr": np.r_[[0] * (M + 1), 1].astype("int32"), "indices": np.zeros(1, "int32")}
    with pytest.raises(tw.ArgumentError, match=rf"coordinates\[0\]\[0\] is {M}") as caught:
        sch.verify(given)
    assert caught.value.code == "sparse/index"


def test_steps_behind_it() -> None:
    """Layouts of a parameter that the format has brought along, and of one that was there."""
    sch = decomposed(sddmm, "ell", [N])
    sch.lower_sparse_iter()
    block = next(b for b in sch.get_child_blocks(sch.get_block("root")) if "ell0" in sch.get(b).name_hint)
    leaf = sch.get_child_blocks(block)[0] if sch.get_child_blocks(block) else block
    writes = [region.buffer.name for region in sch.get(leaf).writes]
    assert writes == ["A_ell"]
    sch.transform_layout(leaf, ("write", 0), lambda i, j: (j, i))
    sch.transform_layout(leaf, "X", lambda i, k: (k, i))
    assert sch.verify().extent == "full"


def test_two_tensors() -> None:
    sch = tw.Schedule(function(CASES["parts"].text))
    sch.decompose_format("A", "sell", [7, 6, 2])
    sch.decompose_format("B", "csf", [1, 7, 6])
    sch.lower_sparse_iter()
    assert sch.verify().extent == "full"


def test_tensors_in_other_formats() -> None:
    for text, name, parameters in ((BSR, "csf", [4, 3, 5, 4]), (ELL, "csc", [7, 6])):
        func = function(text)
        tensor = next(b.name for b in func.buffer_map.values() if any(a.indptr or a.indices for a in b.axes))
        sch = tw.Schedule(func)
        sch.decompose_format(tensor, name, parameters)
        assert sch.verify().extent == "full", name


@pytest.fixture
def doubled() -> Iterator[None]:
    """Formats whose first rule counts its nonzeros twice."""

    def twice(func: Any, buffer: str, name: str, parameters: list[int], count: int) -> tuple[ir.PrimFunc, list[str]]:
        made, names = templates.decomposed_by_name(func, buffer, name, parameters, count)
        again: Any = next(each for each in nodes_of(made.body, ir.SparseIteration) if each.name_hint == names[0])
        again = ir.SparseIteration(again.iter_vars, "again", again.annotations, again.init, again.body)
        realize: Any = made.body
        root = with_fields(realize.block, body=ir.SeqStmt([*realize.block.body.seq, again]))
        body = ir.BlockRealize([], realize.predicate, root)
        return ir.PrimFunc(made.params, made.buffer_map, made.ret_type, made.attrs, body, made.axes), names

    _core.set_format_templates(twice)
    yield
    _core.set_format_templates(templates.decomposed_by_name)


@pytest.mark.usefixtures("doubled")
def test_a_wrong_decomposition_is_found() -> None:
    sch = tw.Schedule(spmm)
    sch.decompose_format("A", "bsr", [M, N, 3])
    with pytest.raises(tw.ScheduleError, match=r"step 0 of the trace: .*decompose_format") as caught:
        sch.verify()
    assert caught.value.code == "schedule/verify"


def test_single_elements(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the scheduled program takes too long as a whole, elements are found in their formats."""

    def late(*_: Any) -> Any:
        raise ResourceError.of("interpret/timeout", "too long")

    monkeypatch.setattr(verification._Scheduled, "results", late)
    for func, name, parameters in ((spmm, "hyb", [2, 1]), (sddmm, "hyb", [2, 1]), (sddmm, "sell", [4])):
        sch = decomposed(func, name, parameters)
        sch.lower_sparse_iter()
        found = sch.verify()
        assert found.extent == "sampled" and found.elements >= 20


@pytest.mark.parametrize("structure", ["random", "empty", "empty rows", "dense row", "full"])
def test_elements_of_a_tensor(structure: str) -> None:
    """Coordinates and positions as axes say, against arrays of SciPy's kind and the dense tensor."""
    rng = np.random.default_rng(3)
    dense = np.stack([np.where(mask(rng, structure), rng.random((7, 6)), 0) for _ in range(3)])
    values, p1, q1, p2, q2 = csf(dense)
    func = function(CASES["mttkrp"].text)
    tensor = next(b for b in func.buffer_map.values() if len(b.axes) == 3)
    known = {tensor.data: values, tensor.axes[1].indptr.data: p1, tensor.axes[1].indices.data: q1}
    known |= {tensor.axes[2].indptr.data: p2, tensor.axes[2].indices.data: q2}
    analyzer = _core.Analyzer()
    analyzer.bind(tensor.axes[0].length, _core.const(3, "int32"))
    elements = Elements(tensor, known, analyzer)
    back = np.zeros_like(dense)
    back[tuple(elements.coordinates)] = values[elements.at]
    np.testing.assert_array_equal(back, dense)
    assert len(formats.csf(3, 7, 6)) == 1 and len(elements.at) == np.count_nonzero(dense)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "relational"])
@pytest.mark.parametrize("shape", [(12, 18), (13, 19)])
def test_schedules_of_programs_over_formats(name: str, shape: tuple[int, int]) -> None:
    """Without a step that converts them, structures are random: keys of blocks, marks of padding, diagonals."""
    m, n = shape
    given = {"banded": [2, 3], "ell": [5], "strided": [2]}.get(name, PARAMETERS.get(name, []))
    program = decompose_format(spmm, "A", templates.template_rules(name, [m, n, *given]))
    sch = tw.Schedule(program.function)
    sch.lower_sparse_iter()
    assert sch.verify().extent == "full"


def test_a_relational_format() -> None:
    sch = tw.Schedule(function(RELATIONS))
    assert len(sch.decompose_format("A", "relational", [3, 6, 8, 2])) == 3
    sch.lower_sparse_iter()
    assert sch.verify().extent == "full"
