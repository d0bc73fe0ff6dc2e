// log, log2, log10, log1p.
//
// x = 2^k m with m in [sqrt(1/2), sqrt(2)), f = m - 1, s = f / (2 + f):
// log m = log((1 + s) / (1 - s)) = 2 s + s^3 Q(s^2) = f - f^2/2 + s (f^2/2 + s^2 Q(s^2)), where the second form has its
// largest term exact. "Error" is relative to log m.
#pragma once

#include "codegen/llvm/math/exponential.h"

namespace tilewright::codegen::math {

/// 2^exponent mantissa, for positive numbers.
template <class D>
struct Scaled {
  D exponent, mantissa;
};

template <Grade grade, class D>
Scaled<D> decompose(const D& x) {
  constexpr uint64_t kRootOfHalf = 0x3fe6a09e667f3bcd, kOne = 0x3ff0000000000000;
  // Subnormal float32 are normal in float64.
  auto tiny = x < 0x1p-1022;
  D scaled = grade == Grade::kSingle ? x : select(tiny, x * 0x1p54, x);
  auto shifted = bits(scaled) + (kOne - kRootOfHalf);
  auto biased = shifted >> 52;
  // Below 2^52 a number's bits are those of 2^52 + itself: a conversion that every processor has.
  D exponent = real(biased | 0x4330000000000000) - (0x1p52 + 1023.0);
  if (grade == Grade::kDouble) exponent = exponent - select(tiny, x.constant(54.0), x.constant(0.0));
  return {exponent, real((shifted & 0x000fffffffffffff) + kRootOfHalf)};
}

/// z Q(z), z = s^2 <= 0.02944.
template <Grade grade, class D>
D log_series(const D& z) {
  if constexpr (grade == Grade::kSingle) {
    // Error 2^-36.8.
    return z * polynomial(z, {0.2361770729453186, 0.28536037583448265, 0.4000033912505627, 0.6666666575679309});
  } else {
    // Error 2^-58.6.
    return z * polynomial(z, {0.1481083469878717, 0.15313134565413153, 0.18183572626965008, 0.22222199071914134,
                              0.2857142872944601, 0.39999999999519237, 0.666666666666671});
  }
}

/// The logarithm's values where x is not a positive finite number.
template <class D>
D with_limits_of_log(const D& result, const D& x) {
  D y = select(x < kInfinity, result, x);
  y = select(x < 0.0, x.constant(kNan), y);
  return select(equal(x, x.constant(0.0)), x.constant(-kInfinity), y);
}

/// log(2^k (1 + f + c)), c tiny.
template <Grade grade, class D>
D log_reduced(const D& k, const D& f, const D& c) {
  D s = f / (f + 2.0);
  D series = log_series<grade>(s * s);
  if constexpr (grade == Grade::kSingle) {
    return mad(k, k.constant(0x1.62e42fefa39efp-1), mad(s, series + 2.0, c));
  } else {
    D half = f * f * 0.5;
    D small = mad(k, k.constant(kLn2Low), c);
    return k * kLn2High - ((half - mad(s, half + series, small)) - f);
  }
}

/// log(2^more (x + low)) for x + low > 0; low is below a unit in the last place of x.
template <Grade grade, class D>
D log_of_sum(const D& x, const D& low, const D& more) {
  Scaled<D> of = decompose<grade>(x);
  const D& k = of.exponent;
  D f = of.mantissa - 1.0;
  if constexpr (grade == Grade::kSingle) {
    // It counts only where the logarithm is small.
    return log_reduced<grade>(k + more, f, select(k < 1.0, low, k.constant(0.0)));
  } else {
    D down = real((bits(k.constant(0x1.8p52) - k) + 1023) << 52);
    D c = select(k < 1000.0, low * down, k.constant(0.0));
    // log(m + c) = log m + c / m: three terms of 1 / m do.
    return log_reduced<grade>(k + more, f, mad(c * f, f - 1.0, c));
  }
}

template <Grade grade, class D>
D log(const D& x) {
  auto [k, m] = decompose<grade>(x);
  return with_limits_of_log(log_reduced<grade>(k, m - 1.0, k.constant(0.0)), x);
}

/// k exponent + log(m) inverse, the factor in two parts, the first of 21 bits: with f rounded to its upper half, the
/// largest product is exact.
template <class D>
D log_of_base(const D& x, double inverse_high, double inverse_low, double exponent_high, double exponent_low) {
  auto [k, m] = decompose<Grade::kDouble>(x);
  D f = m - 1.0;
  D s = f / (f + 2.0);
  D series = log_series<Grade::kDouble>(s * s);
  D half = f * f * 0.5;
  D high = real(bits(f - half) & 0xffffffff00000000);
  D low = ((f - high) - half) + s * (half + series);
  D product = high * inverse_high;
  D rest = mad(low + high, k.constant(inverse_low), low * inverse_high);
  Pair<D> sum = two_sum(k * exponent_high, product);
  return sum.high + (sum.low + mad(k, k.constant(exponent_low), rest));
}

template <Grade grade, class D>
D log2(const D& x) {
  if constexpr (grade == Grade::kSingle) {
    auto [k, m] = decompose<grade>(x);
    D f = m - 1.0, s = f / (f + 2.0);
    return with_limits_of_log(mad(s * (log_series<grade>(s * s) + 2.0), k.constant(0x1.71547652b82fep+0), k), x);
  } else {
    return with_limits_of_log(log_of_base(x, 0x1.71547p+0, 0x1.94ae0bf85ddf4p-22, 1.0, 0.0), x);
  }
}

template <Grade grade, class D>
D log10(const D& x) {
  if constexpr (grade == Grade::kSingle) {
    return log<grade>(x) * 0x1.bcb7b1526e50ep-2;
  } else {
    return with_limits_of_log(
        log_of_base(x, 0x1.bcb7bp-2, 0x1.526e50e32a6abp-26, 0x1.34413509f6p-2, 0x1.9fef311f12b36p-42), x);
  }
}

/// log(1 + x), 1 + x rounded and its error carried along.
template <Grade grade, class D>
D log1p(const D& x) {
  Pair<D> sum = two_sum(x.constant(1.0), x);
  D result = log_of_sum<grade>(sum.high, sum.low, x.constant(0.0));
  D limited = with_limits_of_log(result, sum.high);
  return select(equal(x, x.constant(0.0)), x, limited);
}

}  // namespace tilewright::codegen::math
