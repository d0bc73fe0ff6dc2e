// A function that the reference interpreter executes, with the entry and the signature of a compiled kernel: whoever
// calls kernels need not know the difference.
//
//   TW_TRY(kernel, InterpretedKernel::make(module, "main"));
//   ctx.user = kernel.get();
//   InterpretedKernel::entry(&ctx, tensors, scalars);      // or through Python's KernelBase
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "codegen/signature.h"
#include "interpreter/interpreter.h"
#include "runtime/abi.h"

namespace tilewright::codegen {

class InterpretedKernel {
 public:
  /// Where `platform` is not empty, the kernel is code for it: calls of it here are refused ("call/platform").
  static Result<std::shared_ptr<const InterpretedKernel>> make(const Ref<Module>& module, const std::string& name,
                                                               const std::string& platform = {});

  /// A tw_kernel; needs the kernel in ctx->user.
  static int32_t entry(tw_ctx* ctx, const DLTensor* const* tensors, const tw_scalar* scalars);
  const tw_signature& signature() const { return table_; }

 private:
  InterpretedKernel(Ref<Module> module, std::string name, Signature signature);
  int32_t run(tw_ctx* ctx, const DLTensor* const* tensors, const tw_scalar* scalars) const;

  Ref<Module> module_;
  std::string name_, platform_;
  Signature description_;
  std::vector<std::vector<tw_dim>> dims_;
  std::vector<tw_param> params_;
  std::vector<tw_symbol> symbols_;
  tw_signature table_{};
};

}  // namespace tilewright::codegen
