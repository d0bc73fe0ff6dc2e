#include "codegen/llvm/math/functions.h"

#include "codegen/llvm/math/error_function.h"
#include "codegen/llvm/math/hyperbolic.h"
#include "codegen/llvm/math/inverse_trigonometric.h"
#include "codegen/llvm/math/lanes.h"
#include "codegen/llvm/math/power.h"
#include "codegen/llvm/math/remainder.h"
#include "codegen/llvm/math/roots.h"
#include "codegen/llvm/math/single.h"
#include "codegen/llvm/math/trigonometric.h"

namespace tilewright::codegen::math {
namespace {

using llvm::Value;

/// The function of a row MATH.
template <Grade grade>
Real compute(Intrinsic intrinsic, const Real& x, const Real& y) {
  auto apply = [&](auto function) {
    if constexpr (std::is_invocable_v<decltype(function), Real>) {
      return function(x);
    } else {
      return function(x, y);
    }
  };
  switch (intrinsic) {
#define MATH(name)          \
  case Intrinsic::k_##name: \
    return apply(           \
        [](const auto&... args) -> decltype(math::name<grade>(args...)) { return math::name<grade>(args...); });
#include "codegen/llvm/intrinsics.def"
    default:
      break;
  }
  TW_CHECK(false, intrinsic_row(intrinsic).name);
  return x;
}

std::optional<Real> compute_in_float32(Intrinsic intrinsic, const Real& x) {
  switch (intrinsic) {
    case Intrinsic::k_exp:
      return single::exp(x);
    case Intrinsic::k_exp2:
      return single::exp2(x);
    case Intrinsic::k_log:
      return single::log(x);
    case Intrinsic::k_log2:
      return single::log2(x);
    case Intrinsic::k_log10:
      return single::log10(x);
    case Intrinsic::k_atan:
      return single::atan(x);
    case Intrinsic::k_rsqrt:
      return rsqrt<Grade::kSingle>(x);
    case Intrinsic::k_sigmoid:
      return single::sigmoid(x);
    case Intrinsic::k_tanh:
      return single::tanh(x);
    case Intrinsic::k_erf:
      return single::erf(x);
    case Intrinsic::k_sin:
      return x.fused() ? std::optional(single::sin(x)) : std::nullopt;
    case Intrinsic::k_cos:
      return x.fused() ? std::optional(single::cos(x)) : std::nullopt;
    default:
      return std::nullopt;
  }
}

/// Larger functions are called: their constants do not fit into registers anyway.
constexpr unsigned kInlined = 80;

llvm::Function* define(ModuleState& state, Intrinsic intrinsic, llvm::ArrayRef<Value*> args, const std::string& name) {
  llvm::LLVMContext& context = state.context();
  llvm::Type* type = args[0]->getType();
  bool single = type->getScalarType()->isFloatTy();
  auto* signature = llvm::FunctionType::get(type, llvm::SmallVector<llvm::Type*, 2>(args.size(), type), false);
  auto* function = llvm::Function::Create(signature, llvm::Function::InternalLinkage, name, state.module);
  state.set_target(*function);
  function->setDoesNotThrow();
  function->setWillReturn();
  function->setDoesNotAccessMemory();
  llvm::IRBuilder<> builder(llvm::BasicBlock::Create(context, "entry", function));
  const bool tables = state.target.has("avx512f") && state.target.vector_bits >= 512;
  Site site{builder, state.has_fma, tables};
  llvm::SmallVector<Real, 2> values;
  for (llvm::Argument& arg : function->args()) values.push_back({&site, &arg});
  if (!single) {
    builder.CreateRet(compute<Grade::kDouble>(intrinsic, values.front(), values.back()).value);
  } else if (auto result = compute_in_float32(intrinsic, values[0])) {
    builder.CreateRet(result->value);
  } else {
    llvm::Type* wide = builder.getDoubleTy();
    if (unsigned lanes = lanes_of(args[0]); lanes > 1) wide = llvm::FixedVectorType::get(wide, lanes);
    for (Real& value : values) value.value = builder.CreateFPExt(value.value, wide);
    Real exact = compute<Grade::kSingle>(intrinsic, values.front(), values.back());
    builder.CreateRet(builder.CreateFPTrunc(exact.value, type));
  }
  bool small = function->getInstructionCount() <= kInlined && function->size() == 1;
  function->addFnAttr(small ? llvm::Attribute::AlwaysInline : llvm::Attribute::NoInline);
  return function;
}

/// Lanes [first, first + count) of a vector.
Value* part(llvm::IRBuilder<>& builder, Value* value, unsigned first, unsigned count) {
  if (count == 1) return builder.CreateExtractElement(value, first);
  llvm::SmallVector<int, 64> picks;
  for (unsigned i = 0; i < count; ++i) picks.push_back(static_cast<int>(first + i));
  return builder.CreateShuffleVector(value, picks);
}

}  // namespace

Value* emit_function(ModuleState& state, llvm::IRBuilder<>& builder, Intrinsic intrinsic, llvm::ArrayRef<Value*> args) {
  llvm::Type* type = args[0]->getType();
  unsigned bits = type->getScalarSizeInBits(), lanes = lanes_of(args[0]);
  unsigned widest = std::max(1u, static_cast<unsigned>(state.target.vector_bits) / bits);
  if (lanes <= widest) {
    std::string name = "math." + std::string(intrinsic_row(intrinsic).name) + ".f" + std::to_string(bits) + "x" +
                       std::to_string(lanes);
    llvm::Function* function = state.module.getFunction(name);
    if (!function) function = define(state, intrinsic, args, name);
    return builder.CreateCall(function, args);
  }
  Value* result = llvm::PoisonValue::get(type);
  for (unsigned first = 0; first < lanes; first += widest) {
    unsigned count = std::min(widest, lanes - first);
    llvm::SmallVector<Value*, 2> parts;
    for (Value* arg : args) parts.push_back(part(builder, arg, first, count));
    Value* value = emit_function(state, builder, intrinsic, parts);
    if (count == 1) {
      result = builder.CreateInsertElement(result, value, first);
      continue;
    }
    // Vectors of different lengths do not mix in a shuffle: made as long first, then put in its place.
    llvm::SmallVector<int, 64> longer, merged;
    for (unsigned i = 0; i < lanes; ++i) {
      bool inside = i >= first && i < first + count;
      longer.push_back(inside ? static_cast<int>(i - first) : -1);
      merged.push_back(static_cast<int>(inside ? lanes + i : i));
    }
    result = builder.CreateShuffleVector(result, builder.CreateShuffleVector(value, longer), merged);
  }
  return result;
}

}  // namespace tilewright::codegen::math
