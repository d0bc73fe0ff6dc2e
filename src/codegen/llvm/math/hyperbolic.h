// sinh, cosh, tanh, asinh, acosh, atanh.
#pragma once

#include "codegen/llvm/math/logarithm.h"

namespace tilewright::codegen::math {

/// e^|x| / 2, which overflows only where sinh and cosh do.
template <Grade grade, class D>
D half_exp(const D& magnitude) {
  if constexpr (grade == Grade::kSingle) {
    return exp_moderate<grade>(clamp(magnitude, 0.0, 95.0)) * 0.5;
  } else {
    D bounded = clamp(magnitude, 0.0, 710.6);
    auto n = nearest(bounded * 0x1.71547652b82fep+0);
    D r = mad(n.value, bounded.constant(-kLn2High), bounded) - n.value * kLn2Low;
    return exp_reduced<grade>(r, r.constant(0.0)) * power_of_two(n.integer - 2) * 2.0;
  }
}

template <Grade grade, class D>
D sinh(const D& x) {
  D magnitude = abs(x);
  if constexpr (grade == Grade::kSingle) {
    D e = expm1<grade>(magnitude);
    D result = (e + e / (e + 1.0)) * 0.5;
    return copysign(select(magnitude < 90.0, result, e), x);
  } else {
    // |x| <= 1; error 2^-62.3.
    D z = x * x;
    D near =
        mad(z * x,
            polynomial(z, {7.760525659535673e-13, 1.6057213404129216e-10, 2.505212352283806e-08, 2.7557319156425655e-06,
                           0.00019841269841426134, 0.008333333333333172, 0.16666666666666669}),
            x);
    D half = half_exp<grade>(magnitude);
    D far = half - x.constant(0.25) / half;
    return select(magnitude < 1.0, near, copysign(far, x));
  }
}

template <Grade grade, class D>
D cosh(const D& x) {
  D half = half_exp<grade>(abs(x));
  return half + x.constant(0.25) / half;
}

/// (e^2x - 1) / (e^2x + 1).
template <Grade grade, class D>
D tanh(const D& x) {
  D magnitude = clamp(abs(x), 0.0, 22.0);
  Pair<D> e = expm1_pair<grade>(magnitude + magnitude);
  if constexpr (grade == Grade::kSingle) {
    return copysign(e.high / (e.high + 2.0), x);
  } else {
    Pair<D> sum = two_sum(x.constant(2.0), e.high);
    Pair<D> quotient = divide<D>(e, {sum.high, sum.low + e.low});
    return copysign(quotient.high + quotient.low, x);
  }
}

/// sign(x) log(|x| + sqrt(x^2 + 1)).
template <Grade grade, class D>
D asinh(const D& x) {
  D magnitude = abs(x), none = x.constant(0.0), one = x.constant(1.0);
  if constexpr (grade == Grade::kSingle) {
    // log(1 + (a + a^2 / (1 + sqrt(1 + a^2)))), a tiny: a.
    D square = magnitude * magnitude;
    Pair<D> sum = two_sum(one, magnitude + square / (sqrt(square + 1.0) + 1.0));
    D result = log_of_sum<grade>(sum.high, sum.low, none);
    return copysign(select(magnitude < kInfinity, result, magnitude), x);
  } else {
    auto large = magnitude > 0x1p28;  // a + sqrt(a^2 + 1) = 2 a
    D a = select(large, one, magnitude);
    D square = a * a;
    Pair<D> sum = two_sum(one, a + square / (sqrt(square + 1.0) + 1.0));
    D result =
        log_of_sum<grade>(select(large, magnitude, sum.high), select(large, none, sum.low), select(large, one, none));
    return copysign(select(magnitude < kInfinity, result, magnitude), x);
  }
}

/// log(x + sqrt(x^2 - 1)) = log(1 + (t + sqrt(2 t + t^2))), t = x - 1.
template <Grade grade, class D>
D acosh(const D& x) {
  D none = x.constant(0.0), one = x.constant(1.0);
  auto large = x > 0x1p28;
  D t = select(large, one, x) - 1.0;
  Pair<D> sum = two_sum(one, t + sqrt(mad(t, t, t + t)));
  D result = log_of_sum<grade>(select(large, x, sum.high), select(large, none, sum.low), select(large, one, none));
  result = select(x < kInfinity, result, x);
  return select(x < 1.0, x.constant(kNan), result);
}

/// 1/2 log((1 + x) / (1 - x)): the logarithm's series is one in (m - 1) / (m + 1), and for m = (1 + x) / (1 - x) / 2^k
/// this is ((1 + x) - 2^k (1 - x)) / ((1 + x) + 2^k (1 - x)), for k = 0 just x.
template <Grade grade, class D>
D atanh(const D& x) {
  D magnitude = abs(x), one = x.constant(1.0), none = x.constant(0.0);
  Pair<D> above = two_sum(one, magnitude), below = two_sum(one, -magnitude);
  // 1 - x = 2^-k down, down in [sqrt(1/2), sqrt(2)); one k more where that leaves m above sqrt(2).
  Scaled<D> of = decompose<Grade::kSingle>(below.high);
  auto more = above.high > of.mantissa * 0x1.6a09e667f3bcdp+0;
  D exponent = select(more, one, none) - of.exponent;
  D down = select(more, of.mantissa * 2.0, of.mantissa);
  D low = above.low;
  if constexpr (grade == Grade::kDouble) low = low - below.low * real((bits(exponent + 0x1.8p52) + 1023) << 52);
  D s = (above.high - down + low) / (above.high + down);
  s = select(exponent > 0.5, s, magnitude);
  D k = exponent * 0.5;
  D series = log_series<grade>(s * s) * 0.5;
  D result = mad(k, k.constant(kLn2High), mad(s, series, mad(k, k.constant(kLn2Low), s)));
  if constexpr (grade == Grade::kDouble) {
    Pair<D> sum = fast_two_sum(k * kLn2High, s);
    result = sum.high + (sum.low + mad(s, series, k * kLn2Low));
  }
  result = select(magnitude < 1.0, result, x.constant(kNan));
  return copysign(select(equal(magnitude, one), x.constant(kInfinity), result), x);
}

}  // namespace tilewright::codegen::math
