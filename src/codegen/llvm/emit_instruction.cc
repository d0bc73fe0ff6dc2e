// T.call_llvm_intrin and T.call_llvm_pure_intrin: what LLVM has, by its name.
//
// Only what cannot go wrong behind the compiler's back: functions of their arguments alone, of any processor, and the
// instructions of ir/processor_instructions.def where the target has them. The types of the arguments and of the result
// choose the overload.
#include <llvm/Analysis/VectorUtils.h>

#include <string_view>

#include "codegen/llvm/emitter.h"
#include "ir/processor_instructions.h"

namespace tilewright::codegen {
namespace {

/// Returns why no code can be generated for the instruction; empty if it can.
std::string why_not(std::string_view name, llvm::Intrinsic::ID id, const Target& target) {
  if (const ProcessorInstruction* instruction = find_instruction(name)) {
    if (instruction->is_on(target)) return "";
    return "needs " + std::string(instruction->features) + ", which the target does not have";
  }
  if (llvm::isTriviallyVectorizable(id) || name.starts_with("llvm.vector.reduce.")) return "";
  return "is none that kernels may call: only functions of numbers, and instructions known to Tilewright";
}

/// Kernels hold bfloat16 as bits; instructions take it as the type that LLVM has for it.
llvm::Value* as_in_llvm(llvm::IRBuilderBase& builder, llvm::Value* value, DataType type) {
  if (type.code != TypeCode::kBFloat) return value;
  llvm::Type* number = llvm::Type::getBFloatTy(builder.getContext());
  return builder.CreateBitCast(value, type.lanes == 1 ? number : llvm::FixedVectorType::get(number, type.lanes));
}

}  // namespace

llvm::Value* FunctionEmitter::emit_instruction(const Call& call) {
  const std::string op = "T." + std::string(intrinsic_row(intrinsic_of(call)).name);
  const StringImm* name = call.args.empty() ? nullptr : call.args[0].as<StringImm>();
  if (!name) {
    return unsupported(call.dtype, op + " needs the name of an intrinsic as its first argument",
                       "numbers of intrinsics change from one release of LLVM to the next");
  }
  llvm::Intrinsic::ID id = llvm::Function::lookupIntrinsicID(name->value);
  if (id == llvm::Intrinsic::not_intrinsic) {
    return unsupported(call.dtype, "LLVM has no intrinsic '" + name->value + "'");
  }
  std::string why = why_not(name->value, id, state_.target);
  if (!why.empty()) return unsupported(call.dtype, "the intrinsic '" + name->value + "' " + why);
  std::vector<Value*> values;
  std::vector<llvm::Type*> types;
  for (size_t i = 1; i < call.args.size(); ++i) {
    values.push_back(as_in_llvm(builder_, emit(call.arg(i)), call.arg(i).dtype()));
    types.push_back(values.back()->getType());
  }
  auto* type = llvm::FunctionType::get(type_of(call.dtype), types, false);
  llvm::SmallVector<llvm::Intrinsic::IITDescriptor, 8> table;
  llvm::Intrinsic::getIntrinsicInfoTableEntries(id, table);
  llvm::ArrayRef<llvm::Intrinsic::IITDescriptor> rest = table;
  llvm::SmallVector<llvm::Type*, 4> overloads;
  bool fits =
      llvm::Intrinsic::matchIntrinsicSignature(type, rest, overloads) == llvm::Intrinsic::MatchIntrinsicTypes_Match &&
      !llvm::Intrinsic::matchIntrinsicVarArg(false, rest);
  llvm::Function* function = fits ? llvm::Intrinsic::getDeclaration(&state_.module, id, overloads) : nullptr;
  for (size_t i = 0; fits && i < values.size(); ++i) {
    bool immediate = function->hasParamAttribute(static_cast<unsigned>(i), llvm::Attribute::ImmArg);
    fits = !immediate || llvm::isa<llvm::ConstantInt>(values[i]);
  }
  if (!fits) {
    std::string given;
    for (size_t i = 1; i < call.args.size(); ++i) given += (i > 1 ? ", " : "") + call.arg(i).dtype().str();
    return unsupported(call.dtype,
                       "'" + name->value + "' of (" + given + ") does not give " + call.dtype.str() + " in LLVM");
  }
  return builder_.CreateCall(function, values);
}

}  // namespace tilewright::codegen
