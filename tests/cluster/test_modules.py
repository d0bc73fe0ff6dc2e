"""The functions of a module on a cluster: all of them are searched at the same time."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.testing import workloads

from .machines import Machines

SHAPES = {"a": (32, 32, 32), "b": (16, 32, 48), "c": (48, 16, 32)}


@pytest.fixture
def products() -> Any:
    return tw.ir.IRModule(
        {name: workloads.matmul(*shape).with_attr("global_symbol", name) for name, shape in SHAPES.items()}
    )


def test_functions_use_the_workers_together(
    machines: Machines, products: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    machines.worker("--measure", "1", "--build", "1")
    result = tw.tune(products, trials=4, batch=2, progress="plain", cluster=machines.address)
    assert isinstance(result, tw.ModuleResult) and list(result) == list(SHAPES)
    for name, (m, n, k) in SHAPES.items():
        found = result[name]
        assert found.progress.trials == 4 and found.stop_reason == "trials" and found.record is not None
        x, y = (np.random.default_rng(0).random(shape, dtype=np.float32) for shape in ((m, k), (k, n)))
        np.testing.assert_allclose(found.kernel(x, y), x @ y, rtol=1e-5)
    lines = capsys.readouterr().out.splitlines()
    begun = [number for number, line in enumerate(lines) if line.startswith("tuning ")]
    ended = [number for number, line in enumerate(lines) if re.match(r"[abc]: trial 4/4 \| ", line)]
    assert len(begun) == 3 and len(ended) == 3 and max(begun) < min(ended), lines


def test_one_that_fails_leaves_the_others(machines: Machines, products: Any) -> None:
    machines.worker("--measure", "1", "--build", "1")
    open_size = tw.script.from_source("""
@T.prim_func
def d(a: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    for i in range(n):
        with T.block("A"):
            vi = T.axis.spatial(n, i)
            A[vi] = A[vi] * T.float32(2)
""")
    some = tw.ir.IRModule({"d": open_size, "a": products["a"]})
    with pytest.warns(UserWarning, match="'d' was not tuned"):
        result = tw.tune(some, trials=2, batch=2, progress=None, cluster=machines.address)
    assert list(result) == ["a"] and "no usual value" in result.untuned["d"]
