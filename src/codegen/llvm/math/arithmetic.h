// Parts of all elementary functions: polynomials, rounding to integers, and numbers as sums of two.
//
// The functions of this folder are templates over the type of a vector of float64, `D`. LLVM's values are one such type
// (lanes.h): operators on them emit code. There is no reassociation, and contraction only by mad(), so sums that look
// redundant are exact, as their comments say.
//
// single.h has the functions that are worth computing in float32. The others have two grades. Grade::kDouble is for
// float64: at most 2 units in the last place. Grade::kSingle computes a float32 result in float64, with shorter
// polynomials (errors around 2^-34) and without the steps that only a float64 result needs. Rounding to float32 is then
// nearly the only error, and no intermediate result overflows or loses bits.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>

namespace tilewright::codegen::math {

enum class Grade { kSingle, kDouble };

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// Horner's scheme, the coefficient of the highest power first.
template <class D>
D polynomial(const D& x, std::initializer_list<double> coefficients) {
  auto c = coefficients.begin();
  D sum = x.constant(*c++);
  for (; c != coefficients.end(); ++c) sum = mad(sum, x, x.constant(*c));
  return sum;
}

/// A whole number n and an integer whose low 51 bits are n's in two's complement.
template <class D>
struct Nearest {
  D value;
  decltype(bits(std::declval<D>())) integer;
};

/// |x| < 2^51. Adding 1.5 * 2^52 leaves no bits for a fraction; every processor rounds so in one operation.
template <class D>
auto nearest(const D& x) {
  D shifted = x + 0x1.8p52;
  return Nearest<D>{shifted - 0x1.8p52, bits(shifted)};
}

/// 2^n for -1022 <= n <= 1023; of the integer only the low 12 bits count.
template <class N>
auto power_of_two(const N& n) {
  return real((n + 1023) << 52);
}

/// x within [low, high]; NaN stays.
template <class D>
D clamp(const D& x, double low, double high) {
  D below = select(x < low, x.constant(low), x);
  return select(below > high, x.constant(high), below);
}

/// The value high + low, |low| at most about a unit in the last place of high.
template <class D>
struct Pair {
  D high, low;
};

/// a + b exactly.
template <class D>
Pair<D> two_sum(const D& a, const D& b) {
  D sum = a + b, of_b = sum - a;
  return {sum, (a - (sum - of_b)) + (b - of_b)};
}

/// a + b exactly, if |a| >= |b| or a = 0.
template <class D>
Pair<D> fast_two_sum(const D& a, const D& b) {
  D sum = a + b;
  return {sum, b - (sum - a)};
}

/// a * b exactly, if neither the product nor (without fused operations) 2^27 a, 2^27 b overflow, and the low part does
/// not underflow.
template <class D>
Pair<D> two_product(const D& a, const D& b) {
  D product = a * b;
  if (a.fused()) return {product, mad(a, b, -product)};
  // Halves of 26 bits have exact products (Dekker 1971).
  D sa = a * 134217729.0, sb = b * 134217729.0;
  D ah = sa - (sa - a), bh = sb - (sb - b);
  D al = a - ah, bl = b - bh;
  return {product, ((ah * bh - product) + ah * bl + al * bh) + al * bl};
}

/// The quotient of two sums, to about twice the precision: with one division, its error found by multiplying back. No
/// part may come near the ends of the exponents.
template <class D>
Pair<D> divide(const Pair<D>& a, const Pair<D>& b) {
  D inverse = a.high.constant(1.0) / b.high;
  D quotient = a.high * inverse;
  D rest = a.high;
  if (rest.fused()) {
    rest = mad(-quotient, b.high, a.high);
  } else {
    Pair<D> back = two_product(quotient, b.high);
    rest = (a.high - back.high) - back.low;
  }
  return {quotient, (rest + mad(-quotient, b.low, a.low)) * inverse};
}

}  // namespace tilewright::codegen::math
