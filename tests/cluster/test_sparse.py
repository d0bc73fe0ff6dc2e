"""Searches of sparse programs on a cluster: structures are inputs that travel, formats are programs of their own."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.sparse.test_tune_formats import M, N, buckets, check, matrix_of, searched

import tilewright as tw
from fuzz.format_rules import SPMV as spmv

from .machines import Machines


@pytest.mark.parametrize("what", ["random", "empty"])
def test_formats_are_searched_on_workers(machines: Machines, tmp_path: Path, what: str) -> None:
    """Each format with its structure, by the workers alone; the kernels are right here."""
    machines.worker("--measure", "1", "--build", "1")
    matrix = matrix_of(what)
    result = searched(buckets, matrix, trials=8, cluster=machines.address, database=tmp_path / "t.db")
    assert {choice.parameters for choice in result.choices} == {(M, N, 1, widest, 0) for widest in range(3)}
    assert all(choice.result is not None and choice.result.hosts.rows for choice in result.choices)
    check(result, matrix)


def test_sizes_alone(machines: Machines) -> None:
    """Workers generate a structure of these sizes as a local search does."""
    machines.worker("--measure", "1", "--build", "1")

    def space(sch: tw.Schedule) -> None:
        sch.lower_sparse_iter()
        sch.parallel(sch.get_loops("spmv0")[0])

    sizes = {"m": M, "n": N, "nnz": 300}
    result = tw.tune(spmv, space=space, trials=1, sizes=sizes, progress=None, cluster=machines.address)
    assert result.record is not None and result.record.host
