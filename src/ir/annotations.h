// Names of annotations that more than one layer knows.
#pragma once

namespace tilewright {

/// Of a loop: the number of copies of its body per iteration of machine code. 1 keeps it rolled.
inline constexpr const char* kUnrollHint = "unroll_hint";

/// Of a parallel loop from 0: a List of the data variable of a buffer of offsets, and the number of its elements.
/// The cost of iteration i is estimated as offsets[i + 1] - offsets[i] + 1, and each thread gets a chunk of iterations
/// of about the same total cost.
inline constexpr const char* kBalancedBy = "balanced_by";

/// Of a function: a kernel, launched on a grid of blocks of threads. A List of the axes of its loops over them,
/// outermost first: "blockIdx.x", "threadIdx.x".
inline constexpr const char* kKernelLaunch = "tir.kernel_launch_params";

}  // namespace tilewright
