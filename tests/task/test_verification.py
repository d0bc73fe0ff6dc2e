"""What a comparison of a scheduled program with the original one says."""

from __future__ import annotations

import time

import tilewright as tw
from tilewright.task import verification


def test_the_sampled_result_that_is_named_is_the_wrong_one() -> None:
    def function(value: str) -> tw.ir.PrimFunc:
        return tw.script.from_source(f"""
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            B[v] = {value}
""")

    right, wrong = (
        function("A[v] * T.float32(3)"),
        function("T.Select(v == 5, T.float32(100), (A[v] + T.float32(1)) * T.float32(3) - T.float32(3))"),
    )
    until = time.monotonic() + 60
    instance = verification._run_original(verification._call(right, 0, {}, []), until).at_points()
    compared = verification._compare(instance, tw.ir.IRModule({"main": wrong}), "main", until, [])
    assert compared.problem is not None and "of which [5] differs" in compared.problem
