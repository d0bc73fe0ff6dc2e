// Elementary functions of float32 and float64: from math/, powers with a small constant exponent by multiplication.
#include "codegen/llvm/emitter.h"
#include "codegen/llvm/math/functions.h"

namespace tilewright::codegen {
/// x^exponent where few operations give it within 2 units in the last place, special values included; else null.
///
/// Each product adds half a unit to the relative error: x^2 has one, x^3 two, (x^2)^2 three, which are at most 1.92
/// units in the last place of the result (the worst x^2 is next to a power of two, where its square cannot be next to
/// the following one). Reciprocals of powers would be 0 too early: x^2 overflows where x^-2 is still a subnormal
/// number.
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
  if (exponent != 2.0 && exponent != 3.0 && exponent != 4.0) return nullptr;
  Value* square = builder_.CreateFMul(x, x);
  if (exponent == 2.0) return square;
  return builder_.CreateFMul(square, exponent == 3.0 ? x : square);
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
