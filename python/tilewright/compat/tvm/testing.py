"""tvm.testing: helpers of tests."""

from __future__ import annotations

from tilewright.compat.tvm.alias import missing
from tilewright.compat.tvm.ir import assert_structural_equal
from tilewright.testing.allclose import assert_allclose
from tilewright.testing.fixtures import fixture, main, parameter, parameters, pytest_generate_tests
from tilewright.testing.requires import Requirement

__path__: list[str] = []
__getattr__ = missing("tvm.testing")

requires_llvm = Requirement("llvm", available=True)
requires_cuda = Requirement("cuda")
requires_gpu = Requirement("gpu")
requires_opencl = Requirement("opencl")
requires_vulkan = Requirement("vulkan")
requires_metal = Requirement("metal")
requires_rocm = Requirement("rocm")
requires_hexagon = Requirement("hexagon")
requires_tensorcore = Requirement("tensor cores")

__all__ = [
    "assert_allclose",
    "assert_structural_equal",
    "fixture",
    "main",
    "parameter",
    "parameters",
    "pytest_generate_tests",
    "requires_cuda",
    "requires_gpu",
    "requires_hexagon",
    "requires_llvm",
    "requires_metal",
    "requires_opencl",
    "requires_rocm",
    "requires_tensorcore",
    "requires_vulkan",
]
