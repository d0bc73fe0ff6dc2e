"""Copies of offsets that select what a block iterates over: the domains of its axes are read before the block runs."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.sparse_programs import CASES, SPMM, STRUCTURES, function

import tilewright as tw
from tilewright import ir


def position(sch: tw.Schedule, block: str, name: str) -> int:
    reads = sch.get(sch.get_block(block)).reads
    return next(at for at, region in enumerate(reads) if region.buffer.name == name)


def read_at(sch: tw.Schedule) -> None:
    sch.read_at(sch.get_loops("spmm1")[0], "spmm1", position(sch, "spmm1", "p_data"), "global")


def cache_read(sch: tw.Schedule) -> None:
    sch.cache_read("spmm1", position(sch, "spmm1", "p_data"), "global")


def reindex(sch: tw.Schedule) -> None:
    sch.reindex("spmm1", ("read", position(sch, "spmm1", "p_data")))


def reindex_cache_read(sch: tw.Schedule) -> None:
    sch.reindex_cache_read("spmm1", position(sch, "spmm1", "p_data"), "global", lambda j, k: ())


def of_the_copy_that_was_made_before(sch: tw.Schedule) -> None:
    copied = sch.cache_read("spmm1", position(sch, "spmm1", "A"), "global")
    name = sch.get(copied).name_hint
    sch.cache_read(copied, position(sch, name, "p_data"), "global", consumer_blocks=[copied])


STEPS = (read_at, cache_read, reindex, reindex_cache_read, of_the_copy_that_was_made_before)


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
@pytest.mark.parametrize("target", ["interpreter", "native"])
def test_axes_keep_their_domains(step: Callable[[Any], None], target: str) -> None:
    sch = tw.Schedule(function(SPMM))
    sch.lower_sparse_iter()
    step(sch)
    ir.verify(sch.mod)
    block = sch.get(sch.get_block("spmm1"))
    domain = block.iter_vars[0].dom
    assert domain is not None and "p_data[" in str(domain) and "p_data_" not in str(domain)
    kernel = tw.compile(sch, target)
    for structure in STRUCTURES:
        args, output, want = CASES["spmm"].make(np.random.default_rng(5), structure)
        args = copy.deepcopy(args)
        kernel(*args)
        np.testing.assert_array_equal(args[output], want)
