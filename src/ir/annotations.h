// Names of annotations that more than one layer knows.
#pragma once

#include "ir/stmt.h"

namespace tilewright {

/// Of a loop: the number of copies of its body per iteration of machine code. 1 keeps it rolled.
inline constexpr const char* kUnrollHint = "unroll_hint";

/// Of a block: its init may run for elements whose reduction has no step, too, where they would keep what they held.
inline constexpr const char* kInitWithoutSteps = "init_without_steps";
inline bool has_init_without_steps(const Block& block) { return block.annotations.has(kInitWithoutSteps); }

/// Of a parallel loop from 0: a List of the data variable of a buffer of offsets, and the number of its elements.
/// The cost of iteration i is estimated as offsets[i + 1] - offsets[i] + 1, and each thread gets a chunk of iterations
/// of about the same total cost.
inline constexpr const char* kBalancedBy = "balanced_by";

/// Of a block: each of its stores, an update of an element such as C[i] = C[i] + x, becomes an atomic operation
/// (ir/atomic_operation.h), so that loops over the updates of one element may run in parallel.
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
