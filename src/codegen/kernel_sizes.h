// Resources that a block of threads of each kernel needs, from a lowered module.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/stmt.h"

namespace tilewright::codegen {

struct KernelSizes {
  std::string kernel;  ///< by its name in the module
  int64_t threads = 1;
  int64_t barriers = 0;                     ///< in the text of the kernel
  std::optional<int64_t> shared_bytes = 0;  ///< nothing: symbolic sizes decide it
};

std::vector<KernelSizes> kernel_sizes(const Ref<Module>& lowered);

}  // namespace tilewright::codegen
