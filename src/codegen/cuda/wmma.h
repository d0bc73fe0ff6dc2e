// Instructions of tensor cores on fragments, as functions of CUDA C++ around inline assembly: wmma.load, wmma.mma,
// wmma.store of PTX. Their C++ interface would need a header that NVRTC does not have.
#pragma once

#include <string>
#include <utility>

#include "codegen/c_writer/c_writer.h"

namespace tilewright::codegen {

/// Registers of 32 bits that a thread has of a fragment; 0 where there is none of this shape and type.
int64_t wmma_registers(const FragmentShape& shape);
/// "float" of sums of float32; else "unsigned int".
std::string wmma_type(const FragmentShape& shape);
std::pair<std::string, std::string> wmma_function(const FragmentStep& step);

}  // namespace tilewright::codegen
