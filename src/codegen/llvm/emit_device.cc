// The host's part of a module with kernels: the program of the device as a constant, copies of arguments around the
// body, memory of the device, launches (runtime/device.h).
#include "codegen/c_writer/c_writer.h"
#include "codegen/cuda/compile.h"
#include "codegen/llvm/emitter.h"
#include "ir/substitute.h"
#include "runtime/device.h"
#include "support/span.h"
#include "target/thread_axis.h"

namespace tilewright::codegen {

static llvm::GlobalVariable* constant_global(ModuleState& state, llvm::Constant* value, const char* name,
                                             uint64_t alignment) {
  llvm::Type* type = value->getType();
  auto linkage = llvm::GlobalValue::PrivateLinkage;
  auto* global = new llvm::GlobalVariable(state.module, type, true, linkage, value, name);
  global->setAlignment(llvm::Align(alignment));
  return global;
}

llvm::GlobalVariable* emit_image(ModuleState& state, const Target& device, const std::string& source,
                                 const std::vector<DeviceBinary>& binaries) {
  llvm::IRBuilder<> b(state.context());
  llvm::Constant* table = llvm::ConstantPointerNull::get(b.getPtrTy());
  std::vector<llvm::Constant*> pointers;
  for (const DeviceBinary& binary : binaries) {
    auto* bytes = llvm::ConstantDataArray::getString(state.context(), binary.bytes, false);
    pointers.push_back(constant_global(state, bytes, "binary", 16));
  }
  if (!pointers.empty()) {
    pointers.push_back(table);  // null: the end
    auto* array = llvm::ConstantArray::get(llvm::ArrayType::get(b.getPtrTy(), pointers.size()), pointers);
    table = constant_global(state, array, "binaries", 8);
  }
  state.device_type = device.kind == TargetKind::kCuda ? kDLCUDA : kDLOpenCL;
  const auto type = static_cast<uint32_t>(state.device_type);
  return constant_global(state,
                         llvm::ConstantStruct::getAnon(state.context(), {b.getInt32(TW_DEVICE_VERSION),
                                                                         b.getInt32(type), state.text(source), table}),
                         "image", 8);
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
    arguments[kernel.params[i]] = call.arg(i);
  }
  llvm::Type* i64 = builder_.getInt64Ty();
  auto array = [&](size_t count) {
    llvm::IRBuilder<> at_entry(entry_, entry_->begin());
    return at_entry.CreateAlloca(llvm::ArrayType::get(i64, std::max<size_t>(count, 1)));
  };
  auto put = [&](Value* into, size_t at, Value* value) {
    builder_.CreateStore(value, builder_.CreateConstGEP1_64(i64, into, at));
  };
  Value* extents = array(7);
  for (size_t d = 0; d < 6; ++d) put(extents, d, builder_.getInt64(1));
  for (Stmt body = kernel.body; body.is<For>() && body.as<For>()->thread_binding.defined();) {
    const For& loop = *body.as<For>();
    auto axis = ThreadAxis::parse(loop.thread_binding->thread_tag);
    const size_t at = static_cast<size_t>(axis->dimension) + (axis->in_team() ? 3 : 0);
    put(extents, at, emit_index(substitute(loop.extent, arguments)));
    body = loop.body;
  }
  put(extents, 6, builder_.getInt64(static_cast<uint64_t>(dynamic_shared_bytes(kernel.body, *state_.dialect))));
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
  std::vector<Value*> launch = {state_.text(kernel_symbol(name)), extents, values,
                                builder_.getInt32(static_cast<uint32_t>(call.args.size()))};
  const std::vector<Ref<AssertStmt>> assertions = assertions_of(kernel.body);
  const char* function = assertions.empty() ? "tw_device_launch" : "tw_device_launch_checked";
  if (!assertions.empty()) {
    launch.push_back(emit_checks(assertions));
    launch.push_back(builder_.getInt32(static_cast<uint32_t>(assertions.size())));
  }
  return_if_failed(call_device(function, builder_.getInt32Ty(), std::move(launch)));
}

/// An array of tw_device_check. Messages end with the user's line.
llvm::Value* FunctionEmitter::emit_checks(const std::vector<Ref<AssertStmt>>& assertions) {
  std::vector<llvm::Constant*> checks;
  for (const Ref<AssertStmt>& assertion : assertions) {
    std::string before = "an assertion of the program failed", behind = render_span(assertion.span());
    if (!behind.empty()) behind = "\n" + behind;
    const Call* parts = assertion->message.as<Call>();
    if (parts) behind = parts->arg(2).as<StringImm>()->value + behind;
    const Expr text = parts ? parts->arg(0) : assertion->message;
    if (const StringImm* known = text.as<StringImm>()) before = known->value;
    llvm::Constant* none = llvm::ConstantPointerNull::get(builder_.getPtrTy());
    checks.push_back(llvm::ConstantStruct::getAnon(
        state_.context(), {state_.text(parts ? before : before + behind), parts ? state_.text(behind) : none}));
  }
  auto* array = llvm::ConstantArray::get(llvm::ArrayType::get(checks[0]->getType(), checks.size()), checks);
  return constant_global(state_, array, "checks", 8);
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
