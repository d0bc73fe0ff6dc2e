// The host's part of a module with kernels: the program of the device as a constant, copies of arguments around the
// body, memory of the device, launches (runtime/device.h).
#include "codegen/c_writer/c_writer.h"
#include "codegen/llvm/emitter.h"
#include "ir/substitute.h"
#include "runtime/device.h"
#include "target/thread_axis.h"

namespace tilewright::codegen {

llvm::GlobalVariable* emit_image(ModuleState& state, const std::string& source) {
  llvm::IRBuilder<> b(state.context());
  llvm::Constant* value = llvm::ConstantStruct::getAnon(
      state.context(), {b.getInt32(TW_ABI_VERSION), b.getInt32(kDLOpenCL), state.text(source)});
  auto* image =
      new llvm::GlobalVariable(state.module, value->getType(), true, llvm::GlobalValue::PrivateLinkage, value, "image");
  image->setAlignment(llvm::Align(8));
  return image;
}

/// Calls NAME(ctx, image, ...) of the runtime.
llvm::Value* FunctionEmitter::call_device(const char* name, llvm::Type* result, std::vector<Value*> args) {
  args.insert(args.begin(), {ctx_, state_.image});
  std::vector<llvm::Type*> types;
  for (Value* arg : args) types.push_back(arg->getType());
  return builder_.CreateCall(state_.external(name, llvm::FunctionType::get(result, types, false)), args);
}

/// Runs the kernel on the grid that its loops say, in terms of the arguments.
void FunctionEmitter::emit_launch(const Call& call, const std::string& name, const PrimFunc& kernel) {
  VarMap arguments;
  for (size_t i = 0; i < kernel.params.size() && i < call.args.size(); ++i) {
    arguments[kernel.params[i]] = Expr(call.args[i]);
  }
  llvm::Type* i64 = builder_.getInt64Ty();
  auto array = [&](size_t count) {
    llvm::IRBuilder<> at_entry(entry_, entry_->begin());
    return at_entry.CreateAlloca(llvm::ArrayType::get(i64, std::max<size_t>(count, 1)));
  };
  auto put = [&](Value* into, size_t at, Value* value) {
    builder_.CreateStore(value, builder_.CreateConstGEP1_64(i64, into, at));
  };
  Value* extents = array(6);
  for (size_t d = 0; d < 6; ++d) put(extents, d, builder_.getInt64(1));
  for (Stmt body = kernel.body; body.is<For>() && body.as<For>()->thread_binding.defined();) {
    const For& loop = *body.as<For>();
    auto axis = ThreadAxis::parse(loop.thread_binding->thread_tag);
    const size_t at = static_cast<size_t>(axis->dimension) + (axis->in_team() ? 3 : 0);
    put(extents, at, emit_index(substitute(loop.extent, arguments)));
    body = loop.body;
  }
  Value* values = array(2 * call.args.size());
  for (size_t i = 0; i < call.args.size(); ++i) {
    const Expr arg(call.args[i]);
    Value* value = emit(arg);
    int64_t bytes = 0;
    if (arg.dtype().is_handle()) {
      value = builder_.CreatePtrToInt(value, i64);
    } else {
      bytes = arg.dtype().bytes();
      if (value->getType()->isFloatingPointTy())
        value = builder_.CreateBitCast(value, builder_.getIntNTy(8 * static_cast<unsigned>(bytes)));
      value = builder_.CreateZExtOrTrunc(value, i64);
    }
    put(values, 2 * i, builder_.getInt64(static_cast<uint64_t>(bytes)));
    put(values, 2 * i + 1, value);
  }
  return_if_failed(call_device(
      "tw_device_launch", builder_.getInt32Ty(),
      {state_.text(kernel_symbol(name)), extents, values, builder_.getInt32(static_cast<uint32_t>(call.args.size()))}));
}

/// Memory of the device while `inside` is emitted.
void FunctionEmitter::emit_device_memory(const Ref<Var>& pointer, Value* bytes, llvm::function_ref<void()> inside) {
  Value* memory = call_device("tw_device_acquire", builder_.getPtrTy(), {bytes});
  return_if_failed(builder_.CreateSelect(builder_.CreateIsNull(memory), builder_.getInt32(TW_ERROR_MEMORY),
                                         builder_.getInt32(TW_OK)));
  workspaces_.push_back(memory);
  bind_pointer(pointer, memory, 1, true);
  inside();
  workspaces_.pop_back();
  emit_release(memory);
}

}  // namespace tilewright::codegen
