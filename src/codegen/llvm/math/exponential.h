// exp, exp2, exp10, expm1, sigmoid.
//
// b^x = 2^n b^r with n = round(x log2 b), so that |r| <= log_b(2) / 2. Polynomials are for (b^r - 1) / r; "error" is
// relative to b^r.
#pragma once

#include "codegen/llvm/math/arithmetic.h"

namespace tilewright::codegen::math {

// ln 2 in two parts, the first of 33 bits: its products with exponents are exact.
inline constexpr double kLn2High = 0x1.62e42fefp-1, kLn2Low = 0x1.473de6af278edp-34;

/// e^(r + low) - 1 - r for |r| <= 0.34661.
template <Grade grade, class D>
D exp_tail(const D& r, const D& low) {
  if constexpr (grade == Grade::kSingle) {
    // Error 2^-34.3.
    return r * polynomial(r, {0.0001976763050299505, 0.0013945914200883323, 0.008333569459501623, 0.04166627236806396,
                              0.1666666515698717, 0.500000007717654, 2.098801e-10});
  } else {
    // Error 2^-64.3; the coefficients of r and r^2 are those of the series.
    D p = polynomial(r, {2.0833650827871557e-09, 2.5114291232083106e-08, 2.7557564837618843e-07, 2.7557226949340924e-06,
                         2.4801586934989114e-05, 0.00019841269906687069, 0.00138888888891227, 0.008333333333310971,
                         0.041666666666666026, 0.166666666666667, 0.5});
    return mad(r * r, p, low);
  }
}

/// e^(r + low), low below a unit in the last place of r.
template <Grade grade, class D>
D exp_reduced(const D& r, const D& low) {
  if constexpr (grade == Grade::kSingle) {
    // Error 2^-34.3.
    D p = polynomial(r, {0.0001976763050299505, 0.0013945914200883323, 0.008333569459501623, 0.04166627236806396,
                         0.1666666515698717, 0.500000007717654, 1.0000000002098801});
    return mad(r, p, r.constant(1.0));
  } else {
    Pair<D> sum = fast_two_sum(r.constant(1.0), r);
    return sum.high + (sum.low + exp_tail<grade>(r, low));
  }
}

/// y 2^n for y in [1/2, 2) and -1076 <= n <= 1025: rounded once, also where the result is subnormal.
template <class D, class N>
D scale_to_range(const D& y, const Nearest<D>& n, const N& integer) {
  // Processors take a hundred cycles for a product that is subnormal: its bits are a whole number of units of 2^-1074,
  // as which it is rounded here, and those of 2^-1022 where it is 2^52 of them.
  auto low = n.value < -1022.0, high = n.value > 0.0;
  auto raised = integer + select(low, integer.whole(1074), integer.whole(0));
  // 2^1024 is no number, twice 2^1023 is one.
  D factor = select(high, y + y, y);
  auto power = raised - select(high, integer.whole(1), integer.whole(0));
  D scaled = select(n.value < -1075.0, y.constant(0.0), factor) * power_of_two(power);
  return select(low, real(bits(scaled + 0x1p52) - 0x4330000000000000), scaled);
}

/// e^x where 2^n is a normal number: |x| < 707.
template <Grade grade, class D>
D exp_moderate(const D& x) {
  auto n = nearest(x * 0x1.71547652b82fep+0);
  D r = mad(n.value, x.constant(-kLn2High), x) - n.value * kLn2Low;
  return exp_reduced<grade>(r, x.constant(0.0)) * power_of_two(n.integer);
}

/// e^(x + low).
template <Grade grade, class D>
D exp_pair(const D& x, const D& low) {
  if constexpr (grade == Grade::kSingle) {
    return exp_moderate<grade>(clamp(x, -110.0, 90.0));
  } else {
    D bounded = clamp(x, -750.0, 710.0);
    auto n = nearest(bounded * 0x1.71547652b82fep+0);
    D high = mad(n.value, x.constant(-kLn2High), bounded);
    D rest = n.value * kLn2Low - low;
    D r = high - rest;
    return scale_to_range(exp_reduced<grade>(r, (high - r) - rest), n, n.integer);
  }
}

template <Grade grade, class D>
D exp(const D& x) {
  return exp_pair<grade>(x, x.constant(0.0));
}

template <Grade grade, class D>
D exp2(const D& x) {
  constexpr bool single = grade == Grade::kSingle;
  D bounded = single ? clamp(x, -155.0, 130.0) : clamp(x, -1076.0, 1025.0);
  auto n = nearest(bounded);
  D r = bounded - n.value;
  // |r| <= 1/2.
  if constexpr (single) {
    // Error 2^-34.3.
    D p = polynomial(r, {1.5196133849015816e-05, 0.00015466764465251127, 0.0013333935832359727, 0.009618038118665963,
                         0.05550410363964559, 0.24022651066530196, 0.6931471807053298});
    return mad(r, p, r.constant(1.0)) * power_of_two(n.integer);
  } else {
    // Error 2^-64.3.
    D p = polynomial(r, {2.5625423938675897e-11, 4.4565709657091765e-10, 7.054974479863571e-09, 1.017805193913255e-07,
                         1.3215486594896727e-06, 1.5252733854324599e-05, 0.00015403530393640755, 0.0013333558146392684,
                         0.00961812910762833, 0.05550410866482169, 0.24022650695910072, 0.6931471805599453});
    return scale_to_range(mad(r, p, r.constant(1.0)), n, n.integer);
  }
}

template <Grade grade, class D>
D exp10(const D& x) {
  constexpr bool single = grade == Grade::kSingle;
  D bounded = single ? clamp(x, -50.0, 40.0) : clamp(x, -324.0, 308.4);
  auto n = nearest(bounded * 0x1.a934f0979a371p+1);
  // log10 2 in two parts, the first of 33 bits.
  D r = mad(n.value, x.constant(-0x1.34413509p-2), bounded) - n.value * 0x1.ef3fde623e256p-35;
  // |r| <= 0.15053.
  if constexpr (single) {
    // Error 2^-34.3.
    D p = polynomial(r, {0.0678366566627404, 0.20784573690231947, 0.5393982126864988, 1.1712440651298197,
                         2.034678407990723, 2.650949096157414, 2.3025850934773127});
    return mad(r, p, r.constant(1.0)) * power_of_two(n.integer);
  } else {
    // Error 2^-64.3.
    D p = polynomial(r, {4.6275769107797584e-05, 0.00024226657625148627, 0.0011545100688558285, 0.005013912044823683,
                         0.019597694336800316, 0.06808936529892963, 0.20699584870035276, 0.539382929194134,
                         1.171255148912249, 2.03467859229348, 2.650949055239199, 2.302585092994046});
    return scale_to_range(mad(r, p, r.constant(1.0)), n, n.integer);
  }
}

/// 2^n (1 - 2^-n + (e^r - 1)), where the two largest terms are added exactly.
template <Grade grade, class D>
Pair<D> expm1_pair(const D& x) {
  D bounded = grade == Grade::kSingle ? clamp(x, -110.0, 90.0) : clamp(x, -40.0, 710.0);
  auto n = nearest(bounded * 0x1.71547652b82fep+0);
  D high = mad(n.value, x.constant(-kLn2High), bounded), low = n.value * kLn2Low;
  D r = high - low;
  D one = r.constant(1.0), none = r.constant(0.0);
  if constexpr (grade == Grade::kSingle) {
    D scale = power_of_two(n.integer);
    return {mad(r + exp_tail<grade>(r, none), scale, scale - one), none};
  } else {
    D tail = exp_tail<grade>(r, (high - r) - low);
    D rest = select(n.value > 100.0, none, power_of_two(n.integer.whole(0) - n.integer));
    Pair<D> sum = two_sum(one - rest, r);
    D half = power_of_two(n.integer - 1);
    Pair<D> y = fast_two_sum(sum.high, sum.low + tail);
    return {(y.high + y.high) * half, (y.low + y.low) * half};
  }
}

template <Grade grade, class D>
D expm1(const D& x) {
  return copysign(expm1_pair<grade>(x).high, x);
}

/// e / (1 + e) or 1 / (1 + e) for e <= 1. The rounding of the divisor is put right where it counts, in the first:
/// d q / d(1 + e) = -q / (1 + e) = -q (1 - q).
template <class D>
D logistic(const D& e, const D& over) {
  D sum = e + 1.0;
  D low = e - (sum - 1.0);
  D quotient = over / sum;
  return mad(-low, mad(-quotient, quotient, quotient), quotient);
}

/// 1 / (1 + e^-x), both halves from e^-|x|, which does not overflow.
template <Grade grade, class D>
D sigmoid(const D& x) {
  D e = exp<grade>(-abs(x));
  // Beside 1 so small a numerator is the quotient, which would take long where it is subnormal.
  auto small = x < -64.0;
  D over = select((x < 0.0) & !small, e, x.constant(1.0));
  return select(small, e, grade == Grade::kSingle ? over / (e + 1.0) : logistic(e, over));
}

}  // namespace tilewright::codegen::math
