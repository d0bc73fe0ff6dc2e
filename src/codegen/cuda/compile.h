// From CUDA C++ to code of NVIDIA's devices: by NVRTC where that library is, else by the program nvcc.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/result.h"

namespace tilewright::codegen {

/// Something that the driver loads: a cubin, a fatbin (of several architectures), or PTX, which ends with 0.
struct DeviceBinary {
  std::string arch;  ///< "sm_80"; of PTX "compute_80"; of a fatbin all of them
  std::string bytes;
};

/// Resources of a multiprocessor that a kernel uses, as the assembler reports them.
struct KernelUse {
  std::string kernel, arch;
  int64_t registers = 0;                      ///< registers of a thread
  int64_t spill_stores = 0, spill_loads = 0;  ///< bytes of a thread
  int64_t stack = 0;                          ///< bytes of a thread
  int64_t shared_bytes = 0;                   ///< shared memory of a block, as declared in the source
};

struct CudaProgram {
  std::vector<DeviceBinary> binaries;  ///< in the order in which to try them; none where there is no compiler
  std::vector<KernelUse> uses;
  std::vector<std::string> warnings;  ///< lines of the compiler
};

/// The architectures "sm_80", "sm_90a", ... and PTX of the first one that later devices run, too. ScriptError
/// "codegen/device-compiler" says why the compiler refuses the text.
///
/// TILEWRIGHT_NVRTC in the environment names the folder of NVRTC; otherwise the package nvidia-cuda-nvrtc is looked for
/// beside this one, and then what the dynamic linker finds.
Result<CudaProgram> compile_cuda(const std::string& text, const std::vector<std::string>& archs);

}  // namespace tilewright::codegen
