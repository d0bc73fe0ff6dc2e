// Floats below 32 bits: they live as integers with their bits and are extended to float32 for arithmetic.
//
// Every such format is a small copy of float32: sign, E bits of exponent, M of mantissa. Moving the magnitude's bits up
// by 23 - M gives a float whose exponent is off by a constant, so one multiplication by a power of two completes the
// extension, subnormals included. Truncation rounds the magnitude's bits to nearest even; results that are subnormal in
// the small format are rounded by the adder, by adding a number whose last place is the format's smallest step.
#include <cmath>

#include "codegen/llvm/emitter.h"

namespace tilewright::codegen {
namespace {

struct Format {
  int exponent, mantissa, bias;
  uint32_t infinity;  ///< smallest magnitude that is not finite; one past the last if all are
  bool has_infinity;  ///< else overflow gives `overflow`
  uint32_t overflow, nan;
};

Format format_of(DataType type) {
  switch (type.code) {
    case TypeCode::kFloat8E4M3FN:
      return {4, 3, 7, 0x7f, false, 0x7f, 0x7f};
    case TypeCode::kFloat8E5M2:
      return {5, 2, 15, 0x7c, true, 0x7c, 0x7e};
    case TypeCode::kFloat4E2M1FN:
      return {2, 1, 1, 0x8, false, 0x7, 0x7};
    default:
      return {5, 10, 15, 0x7c00, true, 0x7c00, 0x7e00};
  }
}

}  // namespace

llvm::Value* FunctionEmitter::extend_float(Value* value, DataType from) {
  DataType bits_type = DataType::uint(32, from.lanes);
  llvm::Type *bits32 = type_of(bits_type), *real = type_of(DataType::float_(32, from.lanes));
  auto number = [&](uint64_t n) { return llvm::ConstantInt::get(bits32, n); };
  if (from.code == TypeCode::kBFloat) {
    return builder_.CreateBitCast(builder_.CreateShl(builder_.CreateZExt(value, bits32), number(16)), real);
  }
  if (from.code == TypeCode::kFloat && state_.has_f16c) {
    llvm::Type* half = llvm::Type::getHalfTy(state_.context());
    if (from.lanes > 1) half = llvm::FixedVectorType::get(half, from.lanes);
    return builder_.CreateFPExt(builder_.CreateBitCast(value, half), real);
  }
  Format format = format_of(from);
  int bits = 1 + format.exponent + format.mantissa;
  Value* wide = builder_.CreateZExt(value, bits32);
  Value* magnitude = builder_.CreateAnd(wide, number((1u << (bits - 1)) - 1));
  Value* sign =
      builder_.CreateShl(builder_.CreateAnd(wide, number(1u << (bits - 1))), number(32 - static_cast<unsigned>(bits)));
  Value* shifted =
      builder_.CreateBitCast(builder_.CreateShl(magnitude, number(23 - static_cast<unsigned>(format.mantissa))), real);
  Value* scaled = builder_.CreateFMul(shifted, splat(std::ldexp(1.0, 127 - format.bias), real));
  Value* result = builder_.CreateBitCast(scaled, bits32);
  if (format.infinity < 1u << (bits - 1)) {
    Value* special = builder_.CreateICmpUGE(magnitude, number(format.infinity));
    uint32_t pattern = format.has_infinity ? 0x7f800000u : 0x7fc00000u;
    result = builder_.CreateOr(result, builder_.CreateSelect(special, number(pattern), number(0)));
  }
  return builder_.CreateBitCast(builder_.CreateOr(result, sign), real);
}

llvm::Value* FunctionEmitter::truncate_float(Value* value, DataType to) {
  DataType real_type = DataType::float_(32, to.lanes);
  llvm::Type *bits32 = type_of(DataType::uint(32, to.lanes)), *real = type_of(real_type), *target = type_of(to);
  auto number = [&](uint64_t n) { return llvm::ConstantInt::get(bits32, n); };
  if (value->getType()->getScalarType()->isDoubleTy()) {
    // Rounding twice to nearest could go wrong; rounding to odd first keeps what the second rounding has to know.
    llvm::Type* wide = value->getType();
    Value* near = builder_.CreateFPTrunc(value, real);
    Value* back = builder_.CreateFPExt(near, wide);
    Value* bits = builder_.CreateBitCast(near, bits32);
    Value* magnitude = builder_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, value);
    Value* above = builder_.CreateFCmpOGT(builder_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, back), magnitude);
    Value* inexact = builder_.CreateFCmpONE(back, value);
    bits = builder_.CreateSub(bits, builder_.CreateZExt(above, bits32));
    bits = builder_.CreateOr(bits, builder_.CreateZExt(inexact, bits32));
    value = builder_.CreateBitCast(bits, real);
  }
  Value* bits = builder_.CreateBitCast(value, bits32);
  Value* is_nan = builder_.CreateFCmpUNO(value, value);
  if (to.code == TypeCode::kBFloat) {
    Value* odd = builder_.CreateAnd(builder_.CreateLShr(bits, number(16)), number(1));
    Value* rounded = builder_.CreateAdd(builder_.CreateAdd(bits, number(0x7fff)), odd);
    rounded = builder_.CreateSelect(is_nan, builder_.CreateOr(bits, number(0x400000)), rounded);
    return builder_.CreateTrunc(builder_.CreateLShr(rounded, number(16)), target);
  }
  if (to.code == TypeCode::kFloat && state_.has_f16c) {
    llvm::Type* half = llvm::Type::getHalfTy(state_.context());
    if (to.lanes > 1) half = llvm::FixedVectorType::get(half, to.lanes);
    return builder_.CreateBitCast(builder_.CreateFPTrunc(value, half), target);
  }
  Format format = format_of(to);
  unsigned width = static_cast<unsigned>(1 + format.exponent + format.mantissa);
  unsigned drop = 23 - static_cast<unsigned>(format.mantissa);
  Value* magnitude = builder_.CreateAnd(bits, number(0x7fffffff));
  Value* sign = builder_.CreateLShr(builder_.CreateAnd(bits, number(0x80000000u)), number(32 - width));
  // Normal numbers.
  Value* odd = builder_.CreateAnd(builder_.CreateLShr(magnitude, number(drop)), number(1));
  uint32_t rebias = static_cast<uint32_t>(127 - format.bias) << 23;
  Value* rounded = builder_.CreateSub(magnitude, number(rebias));
  rounded = builder_.CreateAdd(rounded, number((1u << (drop - 1)) - 1));
  rounded = builder_.CreateLShr(builder_.CreateAdd(rounded, odd), number(drop));
  Value* too_large = builder_.CreateICmpUGT(rounded, number(format.overflow));
  rounded = builder_.CreateSelect(too_large, number(format.overflow), rounded);
  // Subnormal numbers.
  uint32_t step_bits = (static_cast<uint32_t>(127 - format.bias) + drop + 1) << 23;
  Value* step = builder_.CreateBitCast(number(step_bits), real);
  Value* sum = builder_.CreateFAdd(builder_.CreateBitCast(magnitude, real), step);
  Value* small = builder_.CreateSub(builder_.CreateBitCast(sum, bits32), number(step_bits));
  Value* is_small = builder_.CreateICmpULT(magnitude, number(rebias + (1u << 23)));
  Value* result = builder_.CreateSelect(is_small, small, rounded);
  result = builder_.CreateSelect(is_nan, number(format.nan), result);
  return builder_.CreateTrunc(builder_.CreateOr(result, sign), target);
}

}  // namespace tilewright::codegen
