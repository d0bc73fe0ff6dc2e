// Elementary functions of float32 and float64: from math/, powers with a small constant exponent by multiplication.
#include <cmath>
#include <optional>

#include "codegen/llvm/emitter.h"
#include "codegen/llvm/math/functions.h"

namespace tilewright::codegen {
namespace {

/// Whole exponents beyond take as long as the function for any exponent.
constexpr int kMostExponent = 64;

/// x^n for n > 0, by squaring, with `times` as the product.
template <class T, class Times>
T by_squaring(T x, int n, const Times& times) {
  std::optional<T> product;
  for (;; x = times(x, x)) {
    if (n & 1) product = product ? times(*product, x) : x;
    n >>= 1;
    if (n == 0) return *product;
  }
}

}  // namespace

/// x^exponent where few operations give it within 2 units in the last place, special values included; else null.
///
/// Each product adds half a unit to the relative error: x^2 has one, x^3 two, (x^2)^2 three, which are at most 1.92
/// units in the last place of the result (the worst x^2 is next to a power of two, where its square cannot be next to
/// the following one). More products, and reciprocals, are done in float64 for float32: its powers are 0 or infinite
/// only where the result is. Reciprocals of float64 would be 0 too early: x^2 overflows where x^-2 is still a subnormal
/// number; more products carry the rounding errors of the others, where fused operations give it.
llvm::Value* FunctionEmitter::emit_power(Value* x, double exponent) {
  llvm::Type* real = x->getType();
  if (exponent == 0.0) return splat(1.0, real);
  if (exponent == 1.0) return x;
  if (exponent == -1.0) return builder_.CreateFDiv(splat(1.0, real), x);
  if (exponent == 0.5) {
    // The power of -0.0 is 0.0, that of -infinity is infinity.
    Value* root = builder_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, builder_.CreateFAdd(x, splat(0.0, real)));
    Value* infinite = builder_.CreateFCmpOEQ(x, llvm::ConstantFP::getInfinity(real, /*Negative=*/true));
    return builder_.CreateSelect(infinite, llvm::ConstantFP::getInfinity(real), root);
  }
  if (exponent != std::floor(exponent) || std::abs(exponent) > kMostExponent) return nullptr;
  int n = static_cast<int>(std::abs(exponent));
  auto times = [&](Value* a, Value* b) { return builder_.CreateFMul(a, b); };
  if (exponent > 0 && n <= 4) return by_squaring(x, n, times);
  if (real->getScalarType()->isFloatTy()) {
    llvm::Type* wide = real->getWithNewType(builder_.getDoubleTy());
    Value* power = by_squaring(builder_.CreateFPExt(x, wide), n, times);
    if (exponent < 0) power = builder_.CreateFDiv(splat(1.0, wide), power);
    return builder_.CreateFPTrunc(power, real);
  }
  if (exponent < 0 || !state_.has_fma) return nullptr;
  return emit_power_double_double(x, n);
}

/// Computes the power of x in double-double arithmetic (pairs high + low): each product keeps its rounding error.
llvm::Value* FunctionEmitter::emit_power_double_double(Value* x, int n) {
  using Pair = std::pair<Value*, Value*>;
  auto fma = [&](Value* a, Value* b, Value* c) {
    return builder_.CreateIntrinsic(llvm::Intrinsic::fma, {a->getType()}, {a, b, c});
  };
  auto times = [&](const Pair& a, const Pair& b) -> Pair {
    llvm::IRBuilderBase::FastMathFlagGuard guard(builder_);
    builder_.clearFastMathFlags();
    Value* high = builder_.CreateFMul(a.first, b.first);
    Value* error = fma(a.first, b.first, builder_.CreateFNeg(high));
    return {high, fma(a.first, b.second, fma(a.second, b.first, error))};
  };
  auto [high, low] = by_squaring(Pair{x, splat(0.0, x->getType())}, n, times);
  // An infinite product leaves no number as its error, and a zero keeps its sign.
  Value* magnitude = builder_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, high);
  Value* finite = builder_.CreateFCmpOLT(magnitude, llvm::ConstantFP::getInfinity(x->getType()));
  Value* exact = builder_.CreateAnd(finite, builder_.CreateFCmpOGT(magnitude, splat(0.0, x->getType())));
  return builder_.CreateSelect(exact, builder_.CreateFAdd(high, low), high);
}

llvm::Value* FunctionEmitter::emit_math(Intrinsic intrinsic, const std::vector<Expr>& args,
                                        const std::vector<Value*>& values) {
  if (intrinsic == Intrinsic::k_pow) {
    if (auto exponent = const_float(args[1])) {
      if (Value* power = emit_power(values[0], *exponent)) return power;
    }
  }
  return math::emit_function(state_, builder_, intrinsic, values);
}

}  // namespace tilewright::codegen
