"""Instruction sets that are asked for by name: what they need comes with them, and code for them can be made."""

from __future__ import annotations

import pytest

import tilewright as tw
from tilewright.testing import everyday

PROGRAMS = [everyday.attention(2, 32, 16), everyday.quantize(16, 64), everyday.rotary(16, 2, 32)]


@pytest.mark.parametrize(
    ("target", "bits"),
    [
        ("llvm -mattr=+avx512f", 512),
        ("llvm -mcpu=haswell -mattr=+avx512f", 512),
        ("llvm -mcpu=haswell -mattr=+avx512vnni", 512),
        ("llvm -mcpu=x86-64 -mattr=+avx512f,+avx512vl,+avx512bw,+avx512dq", 512),
        ("llvm -mattr=+avx512fp16", 512),
        ("llvm -mcpu=haswell -mattr=+avx512vl,-evex512", 256),
        ("llvm -mcpu=sapphirerapids -mattr=-evex512", 256),
        ("llvm -mcpu=haswell -mattr=+avx512f,-avx2", 256),
    ],
)
def test_long_vectors_come_with_what_has_them(target: str, bits: int) -> None:
    assert tw.Target(target).vector_bits == bits
    for program in PROGRAMS:
        assert tw.compile(program, target).inspect("asm")
