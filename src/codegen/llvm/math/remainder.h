// fmod, exactly: x - trunc(x / y) y.
#pragma once

#include "codegen/llvm/math/arithmetic.h"

namespace tilewright::codegen::math {

/// The remainder of a division to nearest is a float64, so one step is exact as long as the quotient is; lanes with
/// longer quotients, or without fused operations with products that are not exact, are left to libm's fmod, which is
/// exact too.
template <Grade grade, class D>
D fmod(const D& x, const D& y) {
  D a = abs(x), b = abs(y);
  D quotient = a / b;
  // Rounded to nearest instead of down, so the remainder may be negative.
  D whole = nearest(quotient).value;
  D rest = a;
  auto usual = quotient < 0x1p28;
  if constexpr (grade == Grade::kSingle) {
    rest = mad(-whole, b, a);  // products of 24 and 29 bits are exact
  } else if (a.fused()) {
    rest = mad(-whole, b, a);
    usual = quotient < 0x1p50;
  } else {
    Pair<D> product = two_product(whole, b);
    rest = (a - product.high) - product.low;
    usual = (quotient < 0x1p50) & (b > 0x1p-900) & (a < 0x1p900);
  }
  rest = select(rest < 0.0, rest + b, rest);
  // A quotient next to a whole number may have been rounded to it from below.
  rest = select(rest < b, rest, rest - b);
  rest = copysign(rest, x);
  // x itself where |x| < |y|, which holds for an infinite y too.
  rest = select(a < b, x, rest);
  auto long_quotient = !(usual | (a < b));
  return replace_lanes(long_quotient, std::array<D, 1>{rest}, x, y,
                       [](const auto& p, const auto& q) { return std::array{exact_remainder(p, q)}; })[0];
}

}  // namespace tilewright::codegen::math
