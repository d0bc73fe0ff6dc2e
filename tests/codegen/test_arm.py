"""Kernels for 64-bit Arm, from the compiler to a run in an emulator of user programs."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.script import tir as T
from tilewright.tensor_intrin import arm_cpu

ROOT = Path(__file__).resolve().parents[2]
COMPILER, EMULATOR = "aarch64-linux-gnu-gcc", "qemu-aarch64-static"
TARGET = "llvm -mtriple=aarch64-linux-gnu -mattr=+neon,+dotprod -num-cores=2"
needs_emulator = pytest.mark.skipif(
    not (shutil.which(COMPILER) and shutil.which(EMULATOR)),
    reason="scripts/setup --tests installs compiler and emulator",
)

M, N, K = 12, 16, 24


def product(dtype: str, result: str) -> Any:
    @T.prim_func
    def product(A: T.Buffer((M, K), dtype), W: T.Buffer((N, K), dtype), C: T.Buffer((M, N), result)):
        for i, j, k in T.grid(M, N, K):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.Cast(result, 0)
                C[vi, vj] = C[vi, vj] + T.Cast(result, A[vi, vk]) * T.Cast(result, W[vj, vk])

    return product


def by_instruction(dtype: str, result: str, intrin: str) -> tw.Schedule:
    sch = tw.Schedule(product(dtype, result))
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    j, rows = sch.split(j, factors=[None, 4])
    k, group = sch.split(k, factors=[None, 4])
    sch.reorder(i, j, k, rows, group)
    sch.decompose_reduction(block, k)
    sch.tensorize(rows, intrin)
    sch.parallel(i)
    return sch


@T.prim_func
def plain(X: T.Buffer((37,), "float32"), Y: T.Buffer((37,), "float32")):
    for i in T.vectorized(37):
        Y[i] = T.max(T.exp(X[i]) * T.float32(2) - X[i], T.float32(1.5))


MAIN = r"""
#include <stdio.h>
#include "product.h"
static TYPE a[12 * 24], w[16 * 24];
static SUM c[12 * 16];
int main(void) {
  const int extremes[4] = {LOW, HIGH, LOW + 1, HIGH - 1};
  for (int i = 0; i < 12 * 24; ++i) a[i] = (TYPE)(i % 3 ? extremes[i % 4] : i * 37);
  for (int i = 0; i < 16 * 24; ++i) w[i] = (TYPE)(i % 5 ? extremes[(i / 4) % 4] : i * 91);
  if (product_arrays(a, w, c) != 0) { printf("%s\n", product_last_error()); return 1; }
  for (int i = 0; i < 12; ++i)
    for (int j = 0; j < 16; ++j) {
      SUM sum = 0;
      for (int k = 0; k < 24; ++k) sum += (SUM)a[i * 24 + k] * (SUM)w[j * 24 + k];
      if (sum != c[i * 16 + j]) { printf("C[%d, %d] differs\n", i, j); return 2; }
    }
  printf("right\n");
  return 0;
}
"""
LIMITS = {"int8": ("int8_t", "int32_t", -128, 127), "uint8": ("uint8_t", "uint32_t", 0, 255)}


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The runtime that the object of a kernel is linked with, compiled for Arm."""
    folder = tmp_path_factory.mktemp("runtime")
    sources = [*(ROOT / "src/runtime").glob("*.c"), *(ROOT / "src/support").glob("*.c")]
    flags = ["-O1", "-c", "-std=gnu11", "-I", str(ROOT / "src")]
    subprocess.run([COMPILER, *flags, *map(str, sources)], check=True, cwd=folder)
    return [str(path) for path in folder.glob("*.o")]


def run(
    kernel: Any, main: str, runtime: list[str], folder: Path, *flags: str, cpu: str = "max"
) -> subprocess.CompletedProcess[str]:
    exported = kernel.export(folder)
    assert exported.library is None
    (folder / "main.c").write_text(main)
    files = [str(folder / "main.c"), str(exported.object), *runtime]
    command = [
        COMPILER,
        "-static",
        "-O1",
        *flags,
        f"-I{folder}",
        *files,
        "-lm",
        "-lpthread",
        "-o",
        str(folder / "main"),
    ]
    subprocess.run(command, check=True)
    return subprocess.run([EMULATOR, "-cpu", cpu, str(folder / "main")], capture_output=True, text=True, timeout=60)


@needs_emulator
@pytest.mark.parametrize(
    ("dtype", "result", "intrin", "instruction"),
    [
        ("int8", "int32", arm_cpu.ARM_DOT_4x4_i8_SDOT_INTRIN, "sdot"),
        ("int8", "int32", arm_cpu.ARM_DOT_4x4_i8_NEON_INTRIN, "smull"),
        ("uint8", "uint32", arm_cpu.ARM_DOT_4x4_u8_UDOT_INTRIN, "udot"),
    ],
)
def test_products_of_bytes(
    dtype: str, result: str, intrin: str, instruction: str, runtime: list[str], tmp_path: Path
) -> None:
    """At the extremes of the types, by instructions that are there in the assembly."""
    kernel: Any = tw.compile(by_instruction(dtype, result, intrin), target=TARGET, schedule="as written")
    assert f"\t{instruction}\t" in kernel.inspect("asm")
    element, total, low, high = LIMITS[dtype]
    flags = [f"-DTYPE={element}", f"-DSUM={total}", f"-DLOW={low}", f"-DHIGH={high}"]
    done = run(kernel, MAIN, runtime, tmp_path, *flags)
    assert (done.returncode, done.stdout) == (0, "right\n")


@needs_emulator
def test_an_older_processor_is_told_what_it_lacks(runtime: list[str], tmp_path: Path) -> None:
    kernel: Any = tw.compile(
        by_instruction("int8", "int32", arm_cpu.ARM_DOT_4x4_i8_SDOT_INTRIN), target=TARGET, schedule="as written"
    )
    flags = ["-DTYPE=int8_t", "-DSUM=int32_t", "-DLOW=-128", "-DHIGH=127"]
    done = run(kernel, MAIN, runtime, tmp_path, *flags, cpu="cortex-a53")
    assert done.returncode == 1
    assert "dotprod" in done.stdout


@needs_emulator
def test_a_vector_kernel(runtime: list[str], tmp_path: Path) -> None:
    """With the elementary functions of the compiler; four lanes at a time, and the rest."""
    kernel: Any = tw.compile(plain, target=TARGET, schedule="as written")
    assert "fmla\tv" in kernel.inspect("asm")
    main = r"""
#include <stdio.h>
#include "plain.h"
int main(void) {
  float x[37], y[37];
  for (int i = 0; i < 37; ++i) x[i] = (float)(i - 20) / 4;
  if (plain_arrays(x, y) != 0) return 1;
  for (int i = 0; i < 37; ++i) printf("%.9g\n", y[i]);
  return 0;
}
"""
    done = run(kernel, main, runtime, tmp_path)
    x = (np.arange(37, dtype="float32") - 20) / 4
    want = np.maximum(np.exp(x.astype("float64")) * 2 - x, 1.5)
    np.testing.assert_allclose(np.array(done.stdout.split(), "float64"), want, rtol=1e-6)


def test_calls_are_refused_here() -> None:
    kernel: Any = tw.compile(plain, target=TARGET, schedule="as written")
    x = np.zeros(37, "float32")
    with pytest.raises(tw.Error, match="code for aarch64-linux-gnu") as error:
        kernel(x, x.copy())
    assert error.value.code == "call/platform"
    # What another kernel has complained of before is not told again.
    native: Any = tw.compile(plain, schedule="as written")
    with pytest.raises(tw.ArgumentError, match="expected shape"):
        native(x, x[:1])
    with pytest.raises(tw.Error, match="code for aarch64-linux-gnu"):
        kernel(x, x.copy())


def test_nothing_is_tuned_for_it_here() -> None:
    with pytest.raises(tw.ResourceError, match="kernels for aarch64-linux-gnu cannot be run on this machine") as error:
        tw.tune(plain, trials=1, target=TARGET, progress=None)
    assert error.value.code == "measure/platform" and "on a machine of that kind" in error.value.hint


def test_instructions_that_the_target_lacks() -> None:
    sch = by_instruction("int8", "int32", arm_cpu.ARM_DOT_4x4_i8_SDOT_INTRIN)
    with pytest.raises(tw.ScriptError, match="needs dotprod"):
        tw.compile(sch, target="llvm -mtriple=aarch64-linux-gnu")
