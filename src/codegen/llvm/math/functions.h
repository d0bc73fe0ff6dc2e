// Elementary functions as functions of the generated module, one for each width that is used.
#pragma once

#include "codegen/llvm/emitter.h"

namespace tilewright::codegen::math {

/// Emits a call of a function for an intrinsic that codegen/llvm/intrinsics.def lists under MATH, on vectors of any
/// length or scalars of float32 or float64. The same operations compute a lane whatever the number of lanes, so results
/// do not depend on how a loop was vectorized.
llvm::Value* emit_function(ModuleState& state, llvm::IRBuilder<>& builder, Intrinsic intrinsic,
                           llvm::ArrayRef<llvm::Value*> args);

}  // namespace tilewright::codegen::math
