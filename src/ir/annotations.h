// Names of annotations that more than one layer knows.
#pragma once

#include "ir/stmt.h"

namespace tilewright {

/// Loop annotation: the number of copies of the body per iteration of the machine code's loop. 1 disables unrolling.
inline constexpr const char* kUnrollHint = "unroll_hint";

/// Block annotation: the init may also run for elements whose reduction has no step. Without it, such elements keep
/// their previous value.
inline constexpr const char* kInitWithoutSteps = "init_without_steps";
inline bool has_init_without_steps(const Block& block) { return block.annotations.has(kInitWithoutSteps); }

/// Annotation of a parallel loop from 0: a List of the data variable of a buffer of offsets, and its number of
/// elements. The cost of iteration i is estimated as offsets[i + 1] - offsets[i] + 1, and each thread gets a chunk of
/// iterations of about the same total cost.
inline constexpr const char* kBalancedBy = "balanced_by";

/// Block annotation: each store of the block is an update such as C[i] = C[i] + x, and is executed as an atomic
/// operation (ir/atomic_operation.h). Loops over several updates of one element may then run in parallel.
inline constexpr const char* kAtomic = "atomic";
inline bool is_atomic_block(const Block& block) {
  const NodeRef value = block.annotations.get(kAtomic);
  return value.is<IntImm>() && value.as<IntImm>()->value != 0;
}

/// Attribute of a function that is a GPU kernel: the thread axes that its loops are bound to, outermost first, as a
/// List of strings ("blockIdx.x", "threadIdx.x"). The grid is computed from the extents of these loops.
inline constexpr const char* kKernelLaunch = "tir.kernel_launch_params";
inline bool is_kernel(const PrimFunc& func) { return func.attrs.has(kKernelLaunch); }

}  // namespace tilewright
