// Kernels for CUDA that are refused when they have been compiled, before they are measured.
#pragma once

#include "codegen/codegen.h"
#include "ir/stmt.h"
#include "support/result.h"

namespace tilewright::search {

/// Refuses a candidate if, on each architecture that it was compiled for, one of its kernels spills more than
/// kMostSpilledBytes of registers per thread ("measure/spills"), or needs more than a multiprocessor has
/// ("measure/occupancy"). Does not judge kernels without a compiler's report, or of unknown architectures.
Status check_device_limits(const Ref<Module>& lowered, const codegen::CudaProgram& program);

/// A quarter of the registers that a thread can have, 255 of 4 bytes.
inline constexpr int64_t kMostSpilledBytes = 256;

}  // namespace tilewright::search
