// The functions that are used most, for float32 in float32: half the work of the ones that compute in float64, for
// errors of up to one and a half units in the last place. Which ones these are: exp, exp2, log, sigmoid, tanh, erf.
#pragma once

#include "codegen/llvm/math/exponential.h"

namespace tilewright::codegen::math::single {

/// y 2^n for y in [1/2, 2) and -150 <= n <= 129, rounded once, also where the result is subnormal. n is the sum of a
/// number and 1.5 * 2^23.
template <class S>
S scale(const S& y, const S& n) {
  auto low = n < 0x1.8p23 - 100.0;
  auto exponent = bits(n) + select(low, bits(n).whole(127 + 63), bits(n).whole(127 - 1));
  // 2^128 is no number, twice 2^127 is one.
  return (y + y) * real(exponent << 23) * select(low, y.constant(0x1p-64), y.constant(1.0));
}

/// x = n ln 2 + r + low; n + 1.5 * 2^23 in place of n.
template <class S>
struct Reduced {
  S r, low, n;
};

/// For |x| < 2^20.
template <class S>
Reduced<S> reduce(const S& x) {
  S n = x * 0x1.715476p+0 + 0x1.8p23;
  S whole = n - 0x1.8p23;
  // The first part of ln 2 has 15 bits.
  S high = mad(whole, x.constant(-0x1.62e4p-1), x), rest = whole * 0x1.7f7d1cp-20;
  S r = high - rest;
  return {r, (high - r) - rest, n};
}

/// e^r - 1 - r for |r| <= 0.3467; error 2^-28.3, relative to e^r.
template <class S>
S tail(const S& r) {
  return r * r *
         polynomial(r, {0.0013814563862979412, 0.00836873147636652, 0.04166838899254799, 0.1666652113199234,
                        0.4999999403953552});
}

/// e^x where 2^n is normal.
template <class S>
S exp_moderate(const S& x) {
  Reduced<S> of = reduce(x);
  return ((tail(of.r) + of.r) + 1.0) * real((bits(of.n) + 127) << 23);
}

template <class S>
S exp(const S& x) {
  Reduced<S> of = reduce(clamp(x, -104.0, 89.0));
  return scale((tail(of.r) + of.r) + 1.0, of.n);
}

/// |x - n| <= 1/2; error 2^-27.9.
template <class S>
S exp2(const S& x) {
  S bounded = clamp(x, -150.0, 129.0);
  S n = bounded + 0x1.8p23;
  S r = bounded - (n - 0x1.8p23);
  S p = polynomial(r, {0.00015469732170458883, 0.0013410000829026103, 0.009618030861020088, 0.05550297349691391,
                       0.24022650718688965, 0.6931472420692444});
  return scale(mad(r, p, r.constant(1.0)), n);
}

/// Both halves from e^-|x|, which does not overflow; e with more bits, since there are two more roundings.
template <class S>
S sigmoid(const S& x) {
  S one = x.constant(1.0), negative = -abs(x);
  Reduced<S> of = reduce(select(negative < -104.0, x.constant(-104.0), negative));
  Pair<S> sum = fast_two_sum(one, of.r);
  S e = scale(sum.high + (sum.low + (tail(of.r) + of.low)), of.n);
  return logistic(e, select(x < 0.0, e, one));
}

/// log(2^k (1 + f)) = k ln 2 + f - f^2/2 + f^3 P(f), 1 + f in [sqrt(1/2), sqrt(2)); error of P, relative to log:
/// 2^-30.3.
template <class S>
S log(const S& x) {
  constexpr uint64_t kRootOfHalf = 0x3f3504f3, kOne = 0x3f800000;
  auto tiny = x < 0x1p-126;
  S scaled = select(tiny, x * 0x1p23, x);
  auto shifted = bits(scaled) + (kOne - kRootOfHalf);
  S k = real(shifted >> 23 | 0x4b000000) - select(tiny, x.constant(0x1p23 + 127.0 + 23.0), x.constant(0x1p23 + 127.0));
  S f = real((shifted & 0x007fffff) + kRootOfHalf) - 1.0;
  S square = f * f;
  S p = polynomial(
      f, {0.06747076660394669, -0.11676246672868729, 0.11888275295495987, -0.12405510246753693, 0.14219532907009125,
          -0.1666799932718277, 0.2000211924314499, -0.25000008940696716, 0.3333331346511841});
  // The first part of ln 2 has 15 bits.
  S low = mad(k, k.constant(0x1.7f7d1cp-20), square * f * p);
  S result = mad(k, k.constant(0x1.62e4p-1), mad(square, f.constant(-0.5), low) + f);
  result = select(x < kInfinity, result, x);
  result = select(x < 0.0, x.constant(kNan), result);
  return select(equal(x, x.constant(0.0)), x.constant(-kInfinity), result);
}

/// Near 0 an odd polynomial (error 2^-31.7), else 1 - 2 / (e^2x + 1), which does not cancel there.
template <class S>
S tanh(const S& x) {
  S magnitude = clamp(abs(x), 0.0, 10.0), z = x * x;
  S near = mad(z * x,
               polynomial(z, {0.0021303086541593075, -0.008168870583176613, 0.021700244396924973, -0.053947459906339645,
                              0.13333220779895782, -0.3333333134651184}),
               x);
  S e = exp_moderate(magnitude + magnitude);
  S far = x.constant(1.0) - x.constant(2.0) / (e + 1.0);
  return copysign(select(magnitude < 0.625, near, far), x);
}

/// As in float64. Near 0 error 2^-29.6, up to 4 2^-29.8.
template <class S>
S erf(const S& x) {
  S magnitude = abs(x), z = x * x;
  S near = mad(x,
               polynomial(z, {7.850527617847547e-05, -0.0008009278681129217, 0.005188234616070986, -0.0268537700176239,
                              0.1128358393907547, -0.3761262595653534, 0.12837916612625122}),
               x);
  S logarithm = polynomial(clamp(magnitude, 0.0, 4.0),
                           {0.00018650179845280945, -0.0029489072039723396, 0.02184324897825718, -0.10311798751354218,
                            -0.6381314396858215, -1.1270976066589355, -0.00033939338754862547});
  S far = x.constant(1.0) - exp_moderate(logarithm);
  return select(magnitude < 1.0, near, copysign(far, x));
}

}  // namespace tilewright::codegen::math::single
