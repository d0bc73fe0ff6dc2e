"""Products by mma.m16n8k8, as the published rules draw them: every pass keeps the result, and NVRTC compiles them."""

from __future__ import annotations

import pytest

import tilewright as tw
from codegen.test_cuda import compiled
from lower.test_gpu import matmul
from soak import gpu_kernels
from tilewright import _core
from tilewright.script import from_source

FAMILY = "m16n8k8 64x64x48"


def drawn(count: int) -> list[tw.Schedule]:
    found = [sch for sch in gpu_kernels.draws(FAMILY, gpu_kernels.RULE_SETS[-1], 0, 12) if "m16n8k8" in str(sch.trace)]
    assert len(found) >= count
    return found[:count]


@pytest.mark.parametrize("number", range(3))
def test_drawn_products(number):
    sch = drawn(number + 1)[number]
    stages = [(name, module) for name, module in _core.lower_stages(sch.mod, "cuda")]
    before = None
    for name, module in stages:
        # As long as there are blocks, the interpreter goes by the description.
        text = module.script()
        if text == before or ("T.block(" in text and name != "input"):
            continue
        before = text
        arrays = gpu_kernels.arguments_of(FAMILY, number)
        _core.interpret(module, "main", *arrays)
        try:
            gpu_kernels.check_result(FAMILY, arrays)
        except AssertionError as error:
            raise AssertionError(f"after {name}\n{text}") from error
    kernel = compiled(sch, "cuda -max_shared_memory_per_block=98304")
    ptx = kernel.inspect("ptx")
    assert "mma.sync.aligned.m16n8k8.row.col" in ptx and "ldmatrix.sync.aligned.m8n8.x4" in ptx, ptx
    for use in kernel.report["kernels"]:
        assert use["stack"] == 0, use  # matrices are registers


def test_matrices_that_are_no_whole_tiles():
    program = matmul(16, 8, 8).script().replace("float32", "float16")
    sch = tw.Schedule(from_source(program))
    copy = sch.cache_write("C", 0, "m16n8k8.matrixA")
    sch.bind(sch.get_loops(copy)[0], "threadIdx.x")
    sch.bind(sch.get_loops("C")[0], "threadIdx.x")
    with pytest.raises(tw.ScriptError) as raised:
        tw.compile(sch, target="cuda")
    assert raised.value.code == "lower/mma-registers" and "32 x 8" in str(raised.value)
