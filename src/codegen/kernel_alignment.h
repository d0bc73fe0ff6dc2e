// The alignment that kernels need of the arguments of the function that launches them.
//
// A kernel for CUDA loads and stores vectors of up to 16 bytes at once, and a GPU faults where one begins at no
// multiple of its size. Lowering makes vectors of indices that are such multiples; that the argument itself is one is
// checked by each call.
#pragma once

#include "codegen/signature.h"

namespace tilewright::codegen {

/// Asks of each tensor for the alignment that vectors, asynchronous copies and fragments need in the kernels that
/// `func` launches. Functions of the module must not be recursive.
void align_for_kernels(Signature& signature, const PrimFunc& func, const Ref<Module>& module);

}  // namespace tilewright::codegen
