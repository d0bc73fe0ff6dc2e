"""The C header of the kernel interface in the hands of its users."""

import os
import subprocess
from pathlib import Path

import pytest

import tilewright as tw

PACKAGE = Path(tw.__file__).parent

# The layout of the public header, under its guard, with a part that ours leaves out.
PUBLIC_DLPACK = """
#ifndef DLPACK_DLPACK_H_
#define DLPACK_DLPACK_H_
#include <stdint.h>
typedef enum { kDLCPU = 1, kDLCUDA = 2, kDLCUDAHost = 3 } DLDeviceType;
typedef struct { DLDeviceType device_type; int32_t device_id; } DLDevice;
typedef enum { kDLInt = 0, kDLUInt = 1, kDLFloat = 2 } DLDataTypeCode;
typedef struct { uint8_t code; uint8_t bits; uint16_t lanes; } DLDataType;
typedef struct {
  void* data; DLDevice device; int32_t ndim; DLDataType dtype; int64_t* shape; int64_t* strides; uint64_t byte_offset;
} DLTensor;
#define ONLY_IN_THE_PUBLIC_HEADER 1
#endif
"""

PROGRAM = """
int main(void) {
  float value = 2;
  DLTensor tensor = {&value, {kDLCPU, 0}, 0, {kDLFloat, 32, 1}, 0, 0, 0};
  const DLTensor* tensors[1] = {&tensor};
  tw_kernel kernel = 0;
  tw_ctx ctx;
  tw_ctx_init(&ctx);
  return tensors[0]->ndim + (kernel != 0) + tw_is_argument_error(TW_OK) + (*tw_last_error() != 0);
}
"""


def build_and_run(folder, compiler, language, *includes):
    suffix = ".c" if language.startswith("c1") else ".cc"
    source = folder / f"program{suffix}"
    source.write_text("".join(f'#include "{name}"\n' for name in includes) + PROGRAM)
    (folder / "dlpack.h").write_text(PUBLIC_DLPACK)
    program = folder / "program"
    flags = [f"-std={language}", "-Wall", "-Wextra", "-pedantic", "-Werror", f"-I{PACKAGE / 'include'}"]
    libraries = [PACKAGE / "libtilewright_runtime.a", "-lpthread"]
    subprocess.run([compiler, *flags, source, *libraries, "-o", program], check=True)
    subprocess.run([program], check=True)


@pytest.mark.parametrize("language", ["c11", "c17", "c++11", "c++20"])
def test_serves_c_and_cpp_without_warnings(tmp_path, language):
    compiler = os.environ.get("CC", "cc") if language.startswith("c1") else os.environ.get("CXX", "c++")
    build_and_run(tmp_path, compiler, language, "runtime/abi.h")


@pytest.mark.parametrize("order", [("dlpack.h", "runtime/abi.h"), ("runtime/abi.h", "dlpack.h")])
def test_lives_beside_the_public_dlpack_header(tmp_path, order):
    build_and_run(tmp_path, os.environ.get("CC", "cc"), "c11", *order)
