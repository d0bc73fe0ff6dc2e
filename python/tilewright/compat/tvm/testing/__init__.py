"""tvm.testing: helpers of tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.compat.tvm.alias import missing
from tilewright.compat.tvm.arith import Analyzer
from tilewright.compat.tvm.ir import assert_structural_equal
from tilewright.compat.tvm.testing.targets import (
    device_enabled,
    enabled_targets,
    exclude_targets,
    has_cuda,
    known_failing_targets,
    parametrize_targets,
    requires_llvm_minimum_version,
    uses_gpu,
)
from tilewright.compat.tvm.tir.schedule.testing import assert_structural_equal_ignore_global_symbol
from tilewright.testing import before_after
from tilewright.testing.allclose import assert_allclose
from tilewright.testing.fixtures import fixture, main, parameter, parameters, pytest_generate_tests
from tilewright.testing.requires import Requirement, host_features, requires_package

_missing = missing("tvm.testing")

#: features that tests of TVM may need and Tilewright does not have; each has a mark "requires_..."
_UNSUPPORTED_FEATURES = frozenset(
    [
        "adreno_opencl_vulkan",
        "adreno_vulkan_opencl",
        "aprofile_aem_fvp",
        "arm_fp16",
        "cmsisnn",
        "corstone300",
        "cublas",
        "cudagraph",
        "cudnn",
        "cutlass",
        "ethosn",
        "ethosu",
        "hipblas",
        "libtorch",
        "matrixcore",
        "micro",
        "mps",
        "mrvl",
        "multi_gpu",
        "nccl",
        "nnapi",
        "nvptx",
        "openclml",
        "rpc",
        "tensorrt",
        "vitis_ai",
        "webgpu",
    ]
)


def __getattr__(name: str) -> Any:
    """Return a mark that skips tests of a feature that Tilewright does not have."""
    if name.removeprefix("requires_") in _UNSUPPORTED_FEATURES:
        return Requirement(name.removeprefix("requires_").replace("_", " "))
    return _missing(name)


requires_llvm = Requirement("llvm", available=True)
requires_cuda = Requirement("cuda", available=has_cuda)
requires_gpu = Requirement("gpu", available=has_cuda)
requires_opencl = Requirement("opencl")
requires_vulkan = Requirement("vulkan")
requires_metal = Requirement("metal")
requires_rocm = Requirement("rocm")
requires_hexagon = Requirement("hexagon")
requires_tensorcore = Requirement("tensor cores")
requires_x86 = Requirement("x86", available=bool(host_features() & {"sse2"}))
requires_x86_vnni = Requirement("VNNI", available=bool(host_features() & {"avx512vnni", "avxvnni"}))
requires_x86_avx512 = Requirement("AVX-512", available={"avx512f", "avx512bw"} <= host_features())
requires_x86_amx = Requirement("AMX", available="amx-int8" in host_features())
requires_arm_dot = Requirement("Arm dot products", available="dotprod" in host_features())
requires_aarch64_sve = Requirement("SVE", available="sve" in host_features())
requires_aarch64_sme = Requirement("SME", available="sme" in host_features())


def requires_cuda_compute_version(major_version: int, minor_version: int = 0) -> Requirement:
    """Return the mark of tests for Nvidia's GPUs of a generation."""
    return Requirement(f"CUDA {major_version}.{minor_version}")


def requires_nvcc_version(major_version: int, minor_version: int = 0, release_version: int = 0) -> Requirement:
    """Return the mark of tests that need Nvidia's compiler."""
    return Requirement(f"nvcc {major_version}.{minor_version}.{release_version}")


def skip_if_32bit(reason: str = "") -> Callable[[Any], Any]:
    """Return the mark of tests for 64-bit machines: Tilewright runs on no others."""
    return lambda test: test


def skip_if_wheel_test(test: Any) -> Any:
    """Return the mark of tests that do not run on a wheel of TVM."""
    return test


def slow(test: Any) -> Any:
    """Return the mark of slow tests; they run."""
    return test


def is_ampere_or_newer() -> bool:
    """Return whether there is such a GPU."""
    return False


class CompareBeforeAfter(before_after.CompareBeforeAfter):
    """A test that compares what a transformation makes of a program with what is expected."""

    @staticmethod
    def assert_same(got: Any, want: Any) -> None:
        """Raise an error if two programs differ by more than names."""
        assert_structural_equal_ignore_global_symbol(got, want)


def assert_prim_expr_equal(lhs: Any, rhs: Any) -> None:
    """Raise an error if two expressions are not provably equal."""
    if not Analyzer().can_prove_equal(lhs, rhs):
        raise ValueError(f"{lhs} is not known to equal {rhs}")


__all__ = [
    "CompareBeforeAfter",
    "assert_allclose",
    "assert_prim_expr_equal",
    "assert_structural_equal",
    "device_enabled",
    "enabled_targets",
    "exclude_targets",
    "fixture",
    "is_ampere_or_newer",
    "known_failing_targets",
    "main",
    "parameter",
    "parameters",
    "parametrize_targets",
    "pytest_generate_tests",
    "requires_aarch64_sme",
    "requires_aarch64_sve",
    "requires_arm_dot",
    "requires_cuda",
    "requires_cuda_compute_version",
    "requires_gpu",
    "requires_hexagon",
    "requires_llvm",
    "requires_llvm_minimum_version",
    "requires_metal",
    "requires_nvcc_version",
    "requires_opencl",
    "requires_package",
    "requires_rocm",
    "requires_tensorcore",
    "requires_vulkan",
    "requires_x86",
    "requires_x86_amx",
    "requires_x86_avx512",
    "requires_x86_vnni",
    "skip_if_32bit",
    "skip_if_wheel_test",
    "slow",
    "uses_gpu",
]
