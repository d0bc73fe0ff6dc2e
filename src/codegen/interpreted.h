// A function that the reference interpreter executes, with the entry and the signature of a compiled kernel: whoever
// calls kernels need not know the difference.
//
//   TW_TRY(kernel, InterpretedKernel::make(module, "main", lowered));
//   ctx.user = kernel.get();
//   InterpretedKernel::entry(&ctx, tensors, scalars);      // or through Python's KernelBase
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "codegen/signature.h"
#include "interpreter/interpreter.h"
#include "runtime/abi.h"

namespace tilewright::codegen {

class InterpretedKernel {
 public:
  /// Returns the function lowered for this machine, or null if lowering fails.
  using Lowered = std::function<Ref<PrimFunc>()>;

  /// `lowered` is called only if an input has the type and shape of an output: its result decides whether a call may
  /// pass one tensor for both, as for compiled code. `platform`, if not empty, is the machine that the kernel was
  /// compiled for: calls on this machine fail with "call/platform".
  static Result<std::shared_ptr<const InterpretedKernel>> make(const Ref<Module>& module, const std::string& name,
                                                               const Lowered& lowered,
                                                               const std::string& platform = {});

  /// The tw_kernel function pointer. Requires the InterpretedKernel in ctx->user.
  static int32_t entry(tw_ctx* ctx, const DLTensor* const* tensors, const tw_scalar* scalars);
  const tw_signature& signature() const { return abi_signature_; }

 private:
  InterpretedKernel(Ref<Module> module, std::string name, std::string platform, Signature signature);
  int32_t run(tw_ctx* ctx, const DLTensor* const* tensors, const tw_scalar* scalars) const;

  Ref<Module> module_;
  std::string name_, platform_;
  Signature signature_;
  std::vector<std::vector<tw_dim>> dims_;
  std::vector<tw_param> params_;
  std::vector<tw_symbol> symbols_;
  tw_signature abi_signature_{};
};

}  // namespace tilewright::codegen
