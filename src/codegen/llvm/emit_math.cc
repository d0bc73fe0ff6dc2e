// Elementary functions on vectors of float32, which LLVM would otherwise take apart into calls of libm. Errors are
// below 2.5 units in the last place over the whole range, subnormal results, infinities and NaN included.
//
// Sources: range reduction and polynomials of exp, log, tanh as in Moshier's Cephes library (single precision);
// erf by two polynomials after Juffa (2018), one for exp's argument.
#include <cmath>

#include "codegen/llvm/emitter.h"

namespace tilewright::codegen {

llvm::Value* FunctionEmitter::splat(double value, llvm::Type* like) { return llvm::ConstantFP::get(like, value); }

llvm::Value* FunctionEmitter::splat_int(int64_t value, llvm::Type* like) {
  return llvm::ConstantInt::get(like, static_cast<uint64_t>(value), true);
}

llvm::Value* FunctionEmitter::fma(Value* a, Value* b, Value* c) {
  return builder_.CreateIntrinsic(llvm::Intrinsic::fmuladd, {a->getType()}, {a, b, c});
}

/// Horner's scheme, the coefficient of the highest power first.
llvm::Value* FunctionEmitter::polynomial(Value* x, std::initializer_list<double> coefficients) {
  Value* sum = nullptr;
  for (double c : coefficients) sum = sum ? fma(sum, x, splat(c, x->getType())) : splat(c, x->getType());
  return sum;
}

/// 2^n for a vector of integers, by their exponent bits; |n| <= 126.
static llvm::Value* power_of_two(llvm::IRBuilder<>& b, llvm::Value* n, llvm::Type* real) {
  llvm::Value* biased = b.CreateAdd(n, llvm::ConstantInt::get(n->getType(), 127));
  return b.CreateBitCast(b.CreateShl(biased, llvm::ConstantInt::get(n->getType(), 23)), real);
}

/// e^x = 2^n e^r with n = round(x / ln 2), |r| <= ln 2 / 2.
llvm::Value* FunctionEmitter::vector_exp(Value* x) {
  llvm::Type* real = x->getType();
  llvm::Type* integer = llvm::VectorType::getInteger(llvm::cast<llvm::VectorType>(real));
  // Beyond these the result is infinite or 0; written so that NaN stays.
  x = builder_.CreateSelect(builder_.CreateFCmpOGT(x, splat(89.0, real)), splat(89.0, real), x);
  x = builder_.CreateSelect(builder_.CreateFCmpOLT(x, splat(-104.0, real)), splat(-104.0, real), x);
  Value* n = builder_.CreateUnaryIntrinsic(llvm::Intrinsic::nearbyint,
                                           builder_.CreateFMul(x, splat(1.44269504088896341, real)));
  Value* r = fma(n, splat(-0.693359375, real), x);
  r = fma(n, splat(2.12194440e-4, real), r);
  Value* p = polynomial(
      r, {1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1});
  p = fma(builder_.CreateFMul(p, r), r, r);
  p = builder_.CreateFAdd(p, splat(1.0, real));
  // In two steps: 2^n itself may be out of range where the result is not.
  Value* whole = builder_.CreateFreeze(builder_.CreateFPToSI(n, integer));
  Value* half = builder_.CreateAShr(whole, splat_int(1, integer));
  Value* rest = builder_.CreateSub(whole, half);
  p = builder_.CreateFMul(p, power_of_two(builder_, half, real));
  return builder_.CreateFMul(p, power_of_two(builder_, rest, real));
}

/// log(m 2^e) = e ln 2 + log(m) with m in [sqrt(1/2), sqrt(2)).
llvm::Value* FunctionEmitter::vector_log(Value* x) {
  llvm::Type* real = x->getType();
  llvm::Type* integer = llvm::VectorType::getInteger(llvm::cast<llvm::VectorType>(real));
  Value* subnormal = builder_.CreateFCmpOLT(x, splat(0x1p-126, real));
  Value* scaled = builder_.CreateSelect(subnormal, builder_.CreateFMul(x, splat(0x1p23, real)), x);
  Value* bits = builder_.CreateBitCast(scaled, integer);
  // Subtracting sqrt(1/2)'s bits puts the borrow where m has to be halved.
  Value* offset = builder_.CreateSub(bits, splat_int(0x3f3504f3, integer));
  Value* exponent = builder_.CreateAShr(offset, splat_int(23, integer));
  Value* mantissa = builder_.CreateSub(bits, builder_.CreateShl(exponent, splat_int(23, integer)));
  Value* e = builder_.CreateSIToFP(exponent, real);
  e = builder_.CreateSelect(subnormal, builder_.CreateFSub(e, splat(23.0, real)), e);
  Value* f = builder_.CreateFSub(builder_.CreateBitCast(mantissa, real), splat(1.0, real));
  Value* z = builder_.CreateFMul(f, f);
  Value* p = polynomial(f, {7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
                            -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1});
  p = builder_.CreateFMul(p, builder_.CreateFMul(z, f));
  p = fma(e, splat(-2.12194440e-4, real), p);
  p = fma(z, splat(-0.5, real), p);
  Value* result = fma(e, splat(0.693359375, real), builder_.CreateFAdd(f, p));
  Value* infinity = splat(INFINITY, real);
  result = builder_.CreateSelect(builder_.CreateFCmpOEQ(x, infinity), infinity, result);
  result = builder_.CreateSelect(builder_.CreateFCmpOEQ(x, splat(0.0, real)), splat(-INFINITY, real), result);
  return builder_.CreateSelect(builder_.CreateFCmpULT(x, splat(0.0, real)), splat(NAN, real), result);
}

/// Near 0 an odd polynomial; else 1 - 2 / (e^2x + 1), which cannot cancel there.
llvm::Value* FunctionEmitter::vector_tanh(Value* x) {
  llvm::Type* real = x->getType();
  Value* magnitude = builder_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
  Value* z = builder_.CreateFMul(x, x);
  Value* p =
      polynomial(z, {-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1});
  Value* near = fma(builder_.CreateFMul(p, z), x, x);
  Value* e = vector_exp(builder_.CreateFAdd(magnitude, magnitude));
  Value* quotient = builder_.CreateFDiv(splat(2.0, real), builder_.CreateFAdd(e, splat(1.0, real)));
  Value* far = builder_.CreateFSub(splat(1.0, real), quotient);
  far = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, far, x);
  return builder_.CreateSelect(builder_.CreateFCmpOGT(magnitude, splat(0.625, real)), far, near);
}

llvm::Value* FunctionEmitter::vector_erf(Value* x) {
  llvm::Type* real = x->getType();
  Value* t = builder_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
  Value* s = builder_.CreateFMul(x, x);
  Value* near =
      polynomial(s, {-5.96761703e-4, 4.99119423e-3, -2.67681349e-2, 1.12819925e-1, -3.76125336e-1, 1.28379166e-1});
  near = fma(near, x, x);
  Value* r = polynomial(t, {-1.72853470e-5, 3.83197126e-4, -3.88396438e-3, 2.42546219e-2, -1.06777877e-1,
                            -6.34846687e-1, -1.28717512e-1});
  r = fma(r, t, builder_.CreateFNeg(t));
  Value* far = builder_.CreateFSub(splat(1.0, real), vector_exp(r));
  far = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, far, x);
  return builder_.CreateSelect(builder_.CreateFCmpOGT(t, splat(0.927734375, real)), far, near);
}

/// Both halves from e^-|x|, which does not overflow.
llvm::Value* FunctionEmitter::vector_sigmoid(Value* x) {
  llvm::Type* real = x->getType();
  Value* magnitude = builder_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
  Value* e = vector_exp(builder_.CreateFNeg(magnitude));
  Value* top = builder_.CreateSelect(builder_.CreateFCmpOLT(x, splat(0.0, real)), e, splat(1.0, real));
  return builder_.CreateFDiv(top, builder_.CreateFAdd(e, splat(1.0, real)));
}

namespace {
template <class Emitter, class Value>
Value* apply(Emitter& emitter, Value* (Emitter::*function)(Value*), const std::vector<Value*>& args) {
  return (emitter.*function)(args[0]);
}
template <class Emitter, class Value>
Value* apply(Emitter& emitter, Value* (Emitter::*function)(Value*, Value*), const std::vector<Value*>& args) {
  return (emitter.*function)(args[0], args[1]);
}
}  // namespace

/// The function that the row of the intrinsic names with MATH.
llvm::Value* FunctionEmitter::vector_math(Intrinsic intrinsic, const std::vector<Value*>& args) {
  switch (intrinsic) {
#define MATH(function, bits) return apply(*this, &FunctionEmitter::function, args)
#define LLVM(id) break
#define OPERATOR(op) break
#define LIBM break
#define VECTOR_CODE break
#define CODE break
#define NONE break
#define X(name, arity, effect, typing, script, folds, cpu) \
  case Intrinsic::k_##name:                                \
    cpu;
#include "ir/intrinsics.def"
#undef X
    case Intrinsic::kUnknown:
      break;
  }
  TW_CHECK(false, intrinsic_row(intrinsic).name);
  return nullptr;
}

}  // namespace tilewright::codegen
