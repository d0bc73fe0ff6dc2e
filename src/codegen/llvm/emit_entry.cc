// The entry of a function, which checks its arguments, and the constant tables that describe them (runtime/abi.h).
#include <utility>

#include "codegen/llvm/emitter.h"
#include "codegen/tile_loads.h"
#include "support/host_cpu.h"
#include "support/ranges.h"

namespace tilewright::codegen {
namespace {

/// Tables of runtime/abi.h as LLVM constants; the layouts are those of C.
class TableBuilder {
 public:
  explicit TableBuilder(ModuleState& state) : state_(state), b_(state.context()) {}

  llvm::GlobalVariable* signature(const Signature& s, const std::string& features) {
    std::vector<llvm::Constant*> params, symbols;
    for (const Signature::Param& p : s.params) params.push_back(param(p));
    for (const Signature::Symbol& symbol : s.symbols) {
      symbols.push_back(record({state_.text(symbol.name), i32(symbol.bits), i32(0)}));
    }
    tw_cpu_features set{};
    const char* unknown = nullptr;
    tw_parse_features(features.c_str(), &set, &unknown);
    llvm::Constant* words = llvm::ConstantArray::get(llvm::ArrayType::get(b_.getInt64Ty(), TW_FEATURE_WORDS),
                                                     {b_.getInt64(set.words[0]), b_.getInt64(set.words[1])});
    static_assert(TW_FEATURE_WORDS == 2);
    llvm::Constant* value =
        record({i32(TW_ABI_VERSION), i32(state_.device_type), state_.text(s.name), array(params), array(symbols),
                state_.text(features), words, i32(static_cast<int32_t>(s.params.size())), i32(s.num_tensors),
                i32(s.num_scalars), i32(static_cast<int32_t>(s.symbols.size()))});
    return global(value, s.name + ".signature");
  }

  /// The table of all entries, under TW_MODULE_SYMBOL.
  void module_table(const std::vector<Entry>& entries) {
    std::vector<llvm::Constant*> exports;
    for (const Entry& entry : entries) {
      exports.push_back(record({state_.text(entry.name), entry.function, entry.signature}));
    }
    llvm::Constant* value = record({i32(TW_ABI_VERSION), i32(static_cast<int32_t>(exports.size())), array(exports),
                                    state_.text("tilewright " TILEWRIGHT_VERSION)});
    llvm::GlobalVariable* table = global(value, TW_MODULE_SYMBOL);
    table->setLinkage(llvm::GlobalValue::WeakAnyLinkage);
  }

 private:
  llvm::Constant* i32(int32_t value) { return b_.getInt32(static_cast<uint32_t>(value)); }
  llvm::Constant* record(const std::vector<llvm::Constant*>& fields) {
    return llvm::ConstantStruct::getAnon(state_.context(), fields);
  }
  llvm::GlobalVariable* global(llvm::Constant* value, const std::string& name) {
    auto* variable =
        new llvm::GlobalVariable(state_.module, value->getType(), true, llvm::GlobalValue::PrivateLinkage, value, name);
    variable->setAlignment(llvm::Align(8));
    return variable;
  }
  llvm::Constant* array(const std::vector<llvm::Constant*>& items) {
    if (items.empty()) return llvm::ConstantPointerNull::get(b_.getPtrTy());
    return global(llvm::ConstantArray::get(llvm::ArrayType::get(items[0]->getType(), items.size()), items), "table");
  }
  llvm::Constant* dim(const Signature::Dim& d) {
    return record({b_.getInt64(static_cast<uint64_t>(d.value)), i32(d.kind), i32(0)});
  }
  llvm::Constant* dims(const std::vector<Signature::Dim>& list) {
    std::vector<llvm::Constant*> items;
    for (const Signature::Dim& d : list) items.push_back(dim(d));
    return array(items);
  }
  llvm::Constant* param(const Signature::Param& p) {
    bool tensor = p.buffer.defined();
    DLDataType type = dlpack_type(tensor ? p.buffer->dtype : p.var.dtype());
    llvm::Constant* dtype = record({b_.getInt8(type.code), b_.getInt8(type.bits), b_.getInt16(type.lanes)});
    // A tensor without dimensions still has a list, which is not NULL, of strides only when it has strides.
    return record({state_.text(p.name), dims(p.shape), dims(p.strides), dim(p.elem_offset), b_.getInt64(0),
                   i32(tensor ? TW_PARAM_TENSOR : TW_PARAM_SCALAR), dtype, i32(static_cast<int32_t>(p.shape.size())),
                   i32((p.written ? TW_PARAM_WRITTEN : 0) | (p.in_place ? TW_PARAM_IN_PLACE : 0)),
                   i32(static_cast<int32_t>(p.alignment)), i32(p.symbol)});
  }

  ModuleState& state_;
  llvm::IRBuilder<> b_;
};

}  // namespace

llvm::GlobalVariable* emit_signature(ModuleState& state, const Signature& signature, const std::string& features) {
  return TableBuilder(state).signature(signature, features);
}

void emit_module_table(ModuleState& state, const std::vector<Entry>& entries) {
  TableBuilder(state).module_table(entries);
}

/// Emits the whole entry into `function_`, whose arguments are context, tensors and scalars.
void FunctionEmitter::emit_entry(const Signature& signature, llvm::GlobalVariable* table, llvm::Function* body) {
  llvm::Type *pointer = builder_.getPtrTy(), *i64 = builder_.getInt64Ty(), *i32 = builder_.getInt32Ty();
  Value *tensors = function_->getArg(1), *scalars = function_->getArg(2);
  llvm::BasicBlock* use_default = new_block("default");
  llvm::BasicBlock* have = new_block("have");
  llvm::BasicBlock* start = builder_.GetInsertBlock();
  builder_.CreateCondBr(builder_.CreateIsNull(ctx_), use_default, have);
  builder_.SetInsertPoint(use_default);
  auto* make_type = llvm::FunctionType::get(pointer, {}, false);
  Value* made = builder_.CreateCall(state_.external("tw_default_ctx", make_type));
  builder_.CreateBr(have);
  builder_.SetInsertPoint(have);
  llvm::PHINode* ctx = builder_.CreatePHI(pointer, 2);
  ctx->addIncoming(ctx_, start);
  ctx->addIncoming(made, use_default);
  ctx_ = ctx;

  auto slots = [&](llvm::Type* type, size_t count) {
    llvm::IRBuilder<> at_entry(entry_, entry_->begin());
    return at_entry.CreateAlloca(llvm::ArrayType::get(type, std::max<size_t>(count, 1)));
  };
  Value* symbols = slots(i64, signature.symbols.size());
  Value* data = slots(pointer, static_cast<size_t>(signature.num_tensors));
  auto* check_type = llvm::FunctionType::get(i32, {pointer, pointer, pointer, pointer, pointer, pointer}, false);
  return_if_failed(builder_.CreateCall(state_.external("tw_check_args", check_type),
                                       {ctx_, table, tensors, scalars, symbols, data}));

  auto symbol = [&](int slot) {
    return builder_.CreateLoad(i64, builder_.CreateConstGEP1_64(i64, symbols, static_cast<uint64_t>(slot)));
  };
  for (size_t i = 0; i < signature.symbols.size(); ++i) {
    if (signature.symbols[i].var.defined()) bind(signature.symbols[i].var, symbol(static_cast<int>(i)));
  }
  for (const Signature::Check& check : signature.checks) {
    Value* expected = emit_index(check.value);
    Value* equal = builder_.CreateICmpEQ(expected, symbol(check.slot));
    llvm::BasicBlock* failed = new_block("failed");
    llvm::BasicBlock* after = new_block("after");
    builder_.CreateCondBr(equal, after, failed);
    builder_.SetInsertPoint(failed);
    auto* fail_type = llvm::FunctionType::get(i32, {pointer, pointer, pointer, i32, i32, pointer, i64}, false);
    return_if_failed(
        builder_.CreateCall(state_.external("tw_fail_dim", fail_type),
                            {ctx_, table, tensors, builder_.getInt32(static_cast<uint32_t>(check.tensor)),
                             builder_.getInt32(static_cast<uint32_t>(check.dim)), state_.text(check.text), expected}));
    builder_.CreateBr(after);
    builder_.SetInsertPoint(after);
  }

  if (state_.image) return_if_failed(call_device("tw_device_enter", i32, {table, tensors, data}));

  std::vector<Value*> arguments{ctx_}, copies;
  for (const Signature::Param& param : signature.params) {
    uint64_t position = static_cast<uint64_t>(param.position);
    if (param.buffer.defined()) {
      Value* begin = builder_.CreateLoad(pointer, builder_.CreateConstGEP1_64(pointer, data, position));
      arguments.push_back(param.aligned_copy > 0 ? emit_aligned(begin, param.aligned_copy, copies) : begin);
      continue;
    }
    DataType type = param.var.dtype();
    Value* slot = builder_.CreateConstGEP1_64(i64, scalars, position);
    if (type.is_float()) {
      Value* value = builder_.CreateLoad(builder_.getDoubleTy(), slot);
      // The entry runs on any processor, to say what this one lacks.
      const bool target_has_f16c = std::exchange(state_.has_f16c, false);
      arguments.push_back(convert(value, DataType::float_(64), type));
      state_.has_f16c = target_has_f16c;
    } else if (type.is_handle()) {
      arguments.push_back(builder_.CreateLoad(pointer, slot));
    } else if (type.is_bool()) {
      arguments.push_back(builder_.CreateICmpNE(builder_.CreateLoad(i64, slot), builder_.getInt64(0)));
    } else {
      arguments.push_back(builder_.CreateTrunc(builder_.CreateLoad(i64, slot), element_type(type)));
    }
  }
  for (int slot : signature.shape_slots()) arguments.push_back(symbol(slot));
  Value* code = builder_.CreateCall(body, arguments);
  if (state_.image) code = call_device("tw_device_leave", i32, {table, tensors, data, code});
  for (llvm::Value* copy : reversed(copies)) {
    llvm::BasicBlock *release = new_block("release"), *after = new_block("after");
    builder_.CreateCondBr(builder_.CreateIsNull(copy), after, release);
    builder_.SetInsertPoint(release);
    emit_release(copy);
    builder_.CreateBr(after);
    builder_.SetInsertPoint(after);
  }
  builder_.CreateRet(code);
}

/// The argument, or a copy of it where it begins inside of a line; that one, or null, is added to `copies`. Where there
/// is no memory for it, the argument itself does.
llvm::Value* FunctionEmitter::emit_aligned(Value* argument, int64_t bytes, std::vector<Value*>& copies) {
  llvm::Type* i64 = builder_.getInt64Ty();
  llvm::BasicBlock *start = builder_.GetInsertBlock(), *make = new_block("make"), *fill = new_block("fill"),
                   *have = new_block("have");
  Value* inside = builder_.CreateAnd(builder_.CreatePtrToInt(argument, i64), kLineBytes - 1);
  builder_.CreateCondBr(builder_.CreateIsNull(inside), have, make);
  builder_.SetInsertPoint(make);
  Value* memory = emit_acquire(builder_.getInt64(static_cast<uint64_t>(bytes)));
  builder_.CreateCondBr(builder_.CreateIsNull(memory), have, fill);
  builder_.SetInsertPoint(fill);
  builder_.CreateMemCpy(memory, llvm::Align(kLineBytes), argument, llvm::Align(1), static_cast<uint64_t>(bytes));
  builder_.CreateBr(have);
  builder_.SetInsertPoint(have);
  llvm::PHINode *begin = builder_.CreatePHI(builder_.getPtrTy(), 3), *copy = builder_.CreatePHI(builder_.getPtrTy(), 3);
  Value* none = llvm::ConstantPointerNull::get(builder_.getPtrTy());
  for (llvm::BasicBlock* from : {start, make}) {
    begin->addIncoming(argument, from);
    copy->addIncoming(none, from);
  }
  begin->addIncoming(memory, fill);
  copy->addIncoming(memory, fill);
  copies.push_back(copy);
  return begin;
}

}  // namespace tilewright::codegen
