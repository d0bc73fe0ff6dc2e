"""When two programs are the same for a database."""

from __future__ import annotations

import numpy as np
import pytest
from tests.search.programs import AddOne, Product

import tilewright as tw
from tilewright.meta_schedule import MemoryDatabase
from tilewright.meta_schedule.module_equality import find_anchor_block, module_equality_of, module_hash
from tilewright.script import ir as I
from tilewright.script import tir as T


def with_constant(values: np.ndarray) -> tw.ir.IRModule:

    @T.prim_func
    def main(A: T.Buffer((4,), "float32")):
        K = T.allocate_const(values, "float32", [4])
        Kb = T.Buffer((4,), "float32", data=K)
        for i in range(4):
            with T.block("A"):
                vi = T.axis.spatial(4, i)
                A[vi] = Kb[vi]

    return tw.ir.IRModule({"main": main})


@I.ir_module
class ProductWithEpilogue:
    @T.prim_func
    def main(A: T.Buffer((32, 32), "float32"), B: T.Buffer((32, 32), "float32"), D: T.Buffer((32, 32), "float32")):
        T.func_attr({"tir.noalias": True})
        C = T.alloc_buffer((32, 32), "float32")
        for i, j, k in T.grid(32, 32, 32):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
        for i, j in T.grid(32, 32):
            with T.block("D"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vi, vj] = C[vi, vj] + T.float32(1)


@I.ir_module
class SmallSumThenProduct:
    @T.prim_func
    def main(A: T.Buffer((32, 32), "float32"), S: T.Buffer((32,), "float32"), D: T.Buffer((32, 32), "float32")):
        for i, k in T.grid(32, 32):
            with T.block("S"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    S[vi] = T.float32(0)
                S[vi] = S[vi] + A[vi, vk]
        for i, j, k in T.grid(32, 32, 32):
            with T.block("D"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    D[vi, vj] = T.float32(0)
                D[vi, vj] = D[vi, vj] + A[vi, vk] * S[vj]


def same(mode: str, lhs: tw.ir.IRModule, rhs: tw.ir.IRModule) -> bool:
    equality = module_equality_of(mode)
    equal = equality.equal(lhs, rhs)
    assert not equal or equality.hash(lhs) == equality.hash(rhs)
    assert equality.equal(rhs, lhs) == equal
    return equal


def test_constants():
    ones, twos = with_constant(np.ones(4, "float32")), with_constant(np.full(4, 2, "float32"))
    assert same("structural", ones, ones) and not same("structural", ones, twos)
    assert same("ignore-ndarray", ones, twos) and same("anchor-block", ones, twos)
    assert not same("ignore-ndarray", ones, AddOne)
    database = MemoryDatabase("ignore-ndarray")
    assert database.commit_workload(ones) is database.commit_workload(twos)
    assert database.module_equality == "ignore-ndarray"


def test_anchor_blocks():
    assert not same("structural", Product, ProductWithEpilogue)
    assert not same("ignore-ndarray", Product, ProductWithEpilogue)
    assert same("anchor-block", Product, ProductWithEpilogue)
    assert not same("anchor-block", Product, AddOne)
    assert not same("anchor-block", Product, SmallSumThenProduct)
    assert find_anchor_block(SmallSumThenProduct).name_hint == "D"
    assert find_anchor_block(AddOne) is None


def test_unknown():
    with pytest.raises(tw.ArgumentError) as error:
        MemoryDatabase("by-feeling")
    assert error.value.code == "database/module-equality"


def test_unknown_ways_to_compare_are_refused():
    with pytest.raises(tw.ArgumentError, match="known: structural, ignore-ndarray, anchor-block") as error:
        module_hash(tw.ir.IRModule({"main": with_constant(np.zeros(4, "float32")).functions["main"]}), "by eye")
    assert error.value.code == "search/equality"
