"""Random sparse programs: lowered, scheduled and compiled, they compute what the interpreter does by coordinates."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.samples import seeds

from fuzz import sparse


@pytest.mark.parametrize("number", seeds(0, 12))
def test_random_sparse_programs(number: int) -> None:
    sparse.judge(number)


def test_the_generator_draws_what_it_says() -> None:
    texts = [sparse.draw(number).text for number in range(200)]
    for mark in (
        "dense_varied",
        "compressed_fixed",
        "compressed_varied",
        "sorted=False",
        "T.sp.fuse(",
        "T.init()",
        "default_value",
        "    if ",
        "T.min(",
        " - 1] <",
        ": T.int32",
    ):
        assert sum(mark in text for text in texts) > 3, mark


def test_the_judge_counts() -> None:
    counts: Counter[str] = Counter()
    for number in range(6):
        sparse.judge(number, counts)
    assert counts["sparse programs"] and counts["sparse_reorder"] + counts["sparse_fuse"]
    assert counts["structures refused"] and counts["structures accepted"]
