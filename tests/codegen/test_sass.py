"""Machine code of NVIDIA's GPUs: the instructions that intrinsics, vectors and asynchronous copies are there for."""

from __future__ import annotations

from typing import Any

import pytest

import tilewright as tw
from codegen.test_cuda import compiled
from codegen.test_mma import KINDS, scheduled
from codegen.test_shuffles import ALL, program
from codegen.test_vector_copies import program as vectors
from lower.test_gpu import tiled
from lower.test_shuffled_reductions import by_threads
from tilewright.kernel.device_code import find_disassembler

needs_disassembler = pytest.mark.skipif(
    find_disassembler() is None, reason="there is no nvdisasm: pip install nvidia-cuda-nvdisasm"
)


def in_the_background(kind: Any) -> tw.Schedule:
    """A product whose tiles are fetched two steps ahead."""
    sch = scheduled(32, 32, 96, *kind)
    loop = sch.get_loops(sch.get_block("C_o_update"))[3]
    for key, values in (("stage", [0, 0, 2]), ("order", [0, 1, 2]), ("async_stages", [0])):
        sch.annotate(loop, f"software_pipeline_{key}", values)
    return sch


OF_BYTES = next(kind for kind in KINDS if kind[0] == "int8")
EXPECTED = {
    "product": (lambda: scheduled(32, 64, 96, *KINDS[0]), ["HMMA.16816", "LDSM.16.M"]),
    "product of bytes": (lambda: scheduled(32, 64, 96, *OF_BYTES), ["IMMA.16832", "LDSM.16.M"]),
    "pipeline": (lambda: in_the_background(KINDS[0]), ["HMMA", "LDSM", "LDGSTS", "LDGDEPBAR", "DEPBAR"]),
    "reduction of a warp": (lambda: by_threads(2, 96, 1, 32), ["SHFL.DOWN"]),
    "reduction of warps": (lambda: by_threads(2, 512, 1, 128), ["SHFL.DOWN", "BAR.SYNC", "STS", "LDS"]),
    "shuffle": (lambda: program(f"R[lin] = T.tvm_warp_shuffle({ALL}, A[lin], L[lin], 32, 32)"), ["SHFL.IDX"]),
    "vectors": (lambda: vectors("A[v] + B[v]", "v", "float32", 4), ["LDG.E.128", "STG.E.128"]),
}


@needs_disassembler
@pytest.mark.parametrize("kind", EXPECTED)
def test_instructions(kind):
    make, instructions = EXPECTED[kind]
    text = compiled(make()).inspect("sass")
    parts = text.split("// sm_")[1:]
    assert [part.split()[0] for part in parts] == ["80", "90a"]
    for part in parts:
        for instruction in instructions:
            assert instruction in part, (instruction, part)


@needs_disassembler
def test_registers_are_used_by_every_instruction_of_a_product():
    """Operands come from ldmatrix, not from single elements of shared memory; sums stay in registers."""
    text = compiled(scheduled(32, 64, 96, *KINDS[0])).inspect("sass")
    assert "LDS." not in text and "LDL" not in text and "STL" not in text, text


def test_what_has_no_machine_code(monkeypatch):
    with pytest.raises(tw.ArgumentError) as raised:
        tw.compile(tiled(16, 16, 8), target="opencl").inspect("sass")
    assert raised.value.code == "kernel/inspect"
    kernel = compiled(tiled(16, 16, 8), "cuda -arch=sm_80")
    monkeypatch.setattr("tilewright.kernel.device_code.find_disassembler", lambda: None)
    with pytest.raises(tw.ResourceError) as raised:
        kernel.inspect("sass")
    assert raised.value.code == "kernel/no-disassembler" and "nvidia-cuda-nvdisasm" in str(raised.value)
    monkeypatch.setattr("tilewright.kernel.device_code.find_disassembler", lambda: "false")
    with pytest.raises(tw.ResourceError) as raised:
        kernel.inspect("sass")
    assert raised.value.code == "kernel/no-disassembler" and "sm_80" in str(raised.value)
