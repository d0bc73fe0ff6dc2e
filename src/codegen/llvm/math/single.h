// The functions that are used most, for float32 in float32: half the work of the ones that compute in float64, for
// errors of up to 1.6 units in the last place (log2 1.9; erf one and three quarters, less than one where tables are in
// registers; sigmoid, and log2 and log10 where nothing is fused, two and a third). Which ones these are: exp, exp2,
// log, log2, log10, sigmoid, tanh, erf, atan; sin and cos where multiplications and additions are fused.
#pragma once

#include <vector>

#include "codegen/llvm/math/error_function_segments.h"
#include "codegen/llvm/math/exponential.h"
#include "codegen/llvm/math/logarithm.h"
#include "codegen/llvm/math/tanh_segments.h"
#include "codegen/llvm/math/trigonometric.h"

namespace tilewright::codegen::math::single {

/// By pairs of terms, then pairs of pairs: few steps wait for one another. A chain of steps one after the other fills a
/// core's queues before its units, since there are no others to do meanwhile.
template <class S>
S polynomial_by_pairs(const S& x, std::initializer_list<double> coefficients) {
  std::vector<S> terms;
  for (double c : coefficients) terms.insert(terms.begin(), x.constant(c));
  for (S power = x;; power = power * power) {
    std::vector<S> pairs;
    for (size_t i = 0; i < terms.size(); i += 2) {
      pairs.push_back(i + 1 < terms.size() ? mad(terms[i + 1], power, terms[i]) : terms[i]);
    }
    if (pairs.size() == 1) return pairs[0];
    terms = std::move(pairs);
  }
}

/// y 2^n, given 2 y, for y in [1/2, 2) and -150 <= n <= 129, rounded once, also where the result is subnormal. n is the
/// sum of a number and 1.5 * 2^23.
template <class S>
S scale(const S& twice, const S& n) {
  // 2^128 is no number, twice 2^127 is one.
  if (!twice.fused()) {
    auto low = n < 0x1.8p23 - 100.0;
    auto exponent = bits(n) + select(low, bits(n).whole(127 + 63), bits(n).whole(127 - 1));
    S scaled = select(n < 0x1.8p23 - 149.0, twice.constant(0.0), twice) * real(exponent << 23);
    return scaled * select(low, twice.constant(0x1p-64), twice.constant(1.0));
  }
  // Processors take a hundred cycles for a product that is subnormal, or too small for that, as under the mask of an
  // attention: its bits are a whole number of units of 2^-149.
  auto low = n < 0x1.8p23 - 125.0;
  S scaled = twice * real((bits(n) + select(low, bits(n).whole(127 + 148), bits(n).whole(127 - 1))) << 23);
  return select(low, real(rounded(scaled)), scaled);
}

/// x = n ln 2 + r; n + 1.5 * 2^23 in place of n.
template <class S>
struct Reduced {
  S r, n;
};

/// For |x| < 2^20.
template <class S>
Reduced<S> reduce(const S& x) {
  S n = mad(x, x.constant(0x1.715476p+0), x.constant(0x1.8p23));
  S whole = n - 0x1.8p23;
  // The first part of ln 2 has 15 bits.
  S high = mad(whole, x.constant(-0x1.62e4p-1), x);
  return {mad(whole, x.constant(-0x1.7f7d1cp-20), high), n};
}

/// e^r - 1 for |r| <= 0.3467; error 2^-28.3, relative to e^r.
template <class S>
S growth(const S& r) {
  S p = polynomial_by_pairs(
      r, {0.0013814563862979412, 0.00836873147636652, 0.04166838899254799, 0.1666652113199234, 0.4999999403953552});
  return mad(r * r, p, r);
}

/// e^x where 2^n is normal.
template <class S>
S exp_moderate(const S& x) {
  Reduced<S> of = reduce(x);
  return (growth(of.r) + 1.0) * real((bits(of.n) + 127) << 23);
}

/// e^(n ln 2 + r), also where it is subnormal.
template <class S>
S exp_reduced(const Reduced<S>& of) {
  return scale(mad(growth(of.r), of.r.constant(2.0), of.r.constant(2.0)), of.n);
}

template <class S>
S exp(const S& x) {
  return exp_reduced(reduce(clamp(x, -104.0, 89.0)));
}

/// |x - n| <= 1/2; error 2^-27.9.
template <class S>
S exp2(const S& x) {
  S bounded = clamp(x, -150.0, 129.0);
  S n = bounded + 0x1.8p23;
  S r = bounded - (n - 0x1.8p23);
  S p = polynomial_by_pairs(r, {0.00015469732170458883, 0.0013410000829026103, 0.009618030861020088,
                                0.05550297349691391, 0.24022650718688965, 0.6931472420692444});
  return scale(mad(r + r, p, r.constant(2.0)), n);
}

/// Both halves from e^-|x|, which does not overflow.
template <class S>
S sigmoid(const S& x) {
  S one = x.constant(1.0), negative = -abs(x);
  S e = exp_reduced(reduce(select(negative < -104.0, x.constant(-104.0), negative)));
  // Beside 1 so small a numerator is the quotient; processors take a hundred cycles for one that is subnormal.
  auto small = x < -64.0;
  S quotient = select((x < 0.0) & !small, e, one) / (e + 1.0);
  return select(small, e, quotient);
}

/// log(1 + f) = f + rest, |f| <= 1/2; error 2^-27.6 between -1/4 and 1/2.
template <class S>
S rest_of_log(const S& f) {
  S square = f * f;
  S p = polynomial_by_pairs(f, {-0.0450744666159153, 0.10462995618581772, -0.13161195814609528, 0.14478400349617004,
                                -0.1664731204509735, 0.19990861415863037, -0.2500009536743164, 0.3333345055580139});
  return mad(square, f.constant(-0.5), square * f * p);
}

/// x = 2^k (1 + f), f between -1/4 and 1/2, where these are numbers.
template <class S>
struct Exponential {
  S k, f;
};

/// Splits x into exponent and mantissa. Without `tables`, x that is not positive and finite is left to the caller.
template <class S>
Exponential<S> decompose(const S& x) {
  if (x.tables()) {
    auto parts = parts_of(x);
    return {parts.exponent, parts.mantissa - 1.0};
  }
  constexpr uint64_t kLeast = 0x3f400000, kOne = 0x3f800000;
  auto tiny = x < 0x1p-126;
  S scaled = select(tiny, x * 0x1p23, x);
  auto shifted = bits(scaled) + (kOne - kLeast);
  S k = real(shifted >> 23 | 0x4b000000) - select(tiny, x.constant(0x1p23 + 127.0 + 23.0), x.constant(0x1p23 + 127.0));
  return {k, real((shifted & 0x007fffff) + kLeast) - 1.0};
}

template <class S>
S finished(const S& result, const S& x) {
  return x.tables() ? result : with_limits_of_log(result, x);
}

template <class S>
S log(const S& x) {
  Exponential<S> of = decompose(x);
  // The first part of ln 2 has 15 bits.
  S low = mad(of.k, x.constant(0x1.7f7d1cp-20), rest_of_log(of.f));
  return finished(mad(of.k, x.constant(0x1.62e4p-1), low + of.f), x);
}

/// log(x) / log(2): the factor of f in two parts.
template <class S>
S log2(const S& x) {
  Exponential<S> of = decompose(x);
  S rest = rest_of_log(of.f);
  S low = mad(of.f, x.constant(0x1.4ae0cp-26), rest * 0x1.715476p+0);
  // Where k is -1, most of the two largest terms cancels: they are rounded together.
  return finished(mad(of.f, x.constant(0x1.715476p+0), of.k) + low, x);
}

/// log(x) / log(10), computed as log2; log10(2) has 13 bits in its first part.
template <class S>
S log10(const S& x) {
  Exponential<S> of = decompose(x);
  S low = mad(of.f, x.constant(-0x1.5b235ep-27), rest_of_log(of.f) * 0x1.bcb7b2p-2);
  low = mad(of.k, x.constant(0x1.3509f8p-18), low);
  return finished(mad(of.k, x.constant(0x1.344p-2), mad(of.f, x.constant(0x1.bcb7b2p-2), low)), x);
}

/// See the tables.
template <class S>
S tanh_by_segments(const S& magnitude) {
  S x = select(magnitude > kLastOfTanh, magnitude.constant(kLastOfTanh), magnitude);
  S from = magnitude.constant(kFirstOfTanh);
  auto piece = (bits(select(x < from, from, x)) - bits(from)) >> 22;
  S t = x - lookup(piece, kCentersOfTanh);
  auto pair = [&](size_t i) { return mad(lookup(piece, kTermsOfTanh[i + 1]), t, lookup(piece, kTermsOfTanh[i])); };
  S square = t * t;
  S slope = mad(mad(pair(5), square, pair(3)), square, pair(1));
  return mad(t, slope, lookup(piece, kTermsOfTanh[0]));
}

/// Near 0 an odd polynomial (error 2^-31.7), else 1 - 2 / (e^2x + 1), which does not cancel there.
template <class S>
S tanh(const S& x) {
  if (x.tables()) return copysign(tanh_by_segments(abs(x)), x);
  S magnitude = clamp(abs(x), 0.0, 10.0), z = x * x;
  S near = mad(z * x,
               polynomial_by_pairs(z, {0.0021303086541593075, -0.008168870583176613, 0.021700244396924973,
                                       -0.053947459906339645, 0.13333220779895782, -0.3333333134651184}),
               x);
  S e = exp_moderate(magnitude + magnitude);
  S far = x.constant(1.0) - x.constant(2.0) / (e + 1.0);
  return copysign(select(magnitude < 0.625, near, far), x);
}

/// 1 / x for normal x of moderate size; one unit in the last place.
template <class S>
S reciprocal(const S& x) {
  if (!x.tables()) return x.constant(1.0) / x;
  S y = approximate_reciprocal(x);
  return mad(y, mad(-x, y, x.constant(1.0)), y);
}

/// atan(z) = z + z^3 P(z^2), error 2^-25.8, for z of at most 1; pi/2 - atan(1 / x) for what is larger.
template <class S>
S atan(const S& x) {
  S magnitude = abs(x);
  auto large = magnitude > 1.0;
  S bounded = select(magnitude > 0x1p60, x.constant(0x1p60), magnitude);
  S z = select(large, reciprocal(select(large, bounded, x.constant(1.0))), magnitude);
  S square = z * z;
  S p = polynomial_by_pairs(square,
                            {0.0029206459876149893, -0.01636774279177189, 0.04321156442165375, -0.07552189379930496,
                             0.10665993392467499, -0.14211052656173706, 0.19993773102760315, -0.33333152532577515});
  S series = square * z * p;
  // The first part of pi/2 is a float32; what it lacks is added to the smaller terms.
  S over = (x.constant(0x1.921fb6p+0) - z) - (series + 0x1.777a5cp-25);
  return copysign(select(large, over, z + series), x);
}

/// x = n pi/2 + r for |x| < 2^17, where products are not rounded before they are added. The first difference is exact,
/// a multiple of 2^-23 below 1; the others are rounded relative to r.
template <class S>
Reduced<S> reduce_quarters(const S& x) {
  S n = mad(x, x.constant(0x1.45f306p-1), x.constant(0x1.8p23));
  S whole = n - 0x1.8p23;
  S first = mad(whole, x.constant(-0x1.921fb6p+0), x);
  S second = mad(whole, x.constant(0x1.777a5cp-25), first);
  return {mad(whole, x.constant(0x1.ee59dap-50), second), n};
}

/// |r| <= 0.82; error 2^-27.5.
template <class S>
S sin_of_quarter(const S& r) {
  S z = r * r;
  S p = mad(mad(z, r.constant(-0.00019486945612064383), r.constant(0.008331947718319193)), z,
            r.constant(-0.16666651165715943));
  return mad(z * r, p, r);
}

/// |r| <= 0.82; error 2^-32.6.
template <class S>
S cos_of_quarter(const S& r) {
  S z = r * r;
  S p = mad(mad(z, r.constant(2.4403267804350686e-05), r.constant(-0.001388705289847643)), z,
            r.constant(0.04166664026025046));
  return mad(z, mad(z, p, r.constant(-0.5)), r.constant(1.0));
}

/// Arguments beyond the range of the reduction, and NaN, are computed in float64.
template <class S, class F>
S with_huge_arguments(const S& usual, const S& x, F in_float64) {
  return replace_lanes(!(abs(x) < 0x1p17), std::array<S, 1>{usual}, x,
                       [&](const S& lane) { return std::array<S, 1>{truncated(in_float64(extended(lane)))}; })[0];
}

template <class S>
S sin(const S& x) {
  Reduced<S> of = reduce_quarters(x);
  auto n = bits(of.n);
  S result = select(equal(n & 1, n.whole(0)), sin_of_quarter(of.r), cos_of_quarter(of.r));
  result = select(equal(x, x.constant(0.0)), x, real(bits(result) ^ ((n & 2) << 30)));
  return with_huge_arguments(result, x, [](const S& lane) { return math::sin<Grade::kSingle>(lane); });
}

template <class S>
S cos(const S& x) {
  Reduced<S> of = reduce_quarters(x);
  auto n = bits(of.n);
  S result = select(equal(n & 1, n.whole(0)), cos_of_quarter(of.r), sin_of_quarter(of.r));
  result = real(bits(result) ^ (((n + 1) & 2) << 30));
  return with_huge_arguments(result, x, [](const S& lane) { return math::cos<Grade::kSingle>(lane); });
}

/// For 0 <= x <= 4; see the tables.
template <class S>
S erf_by_segments(const S& x) {
  auto piece = bits(mad(x, x.constant(kPiecesOfErf), x.constant(0x1.8p23)));
  S t = x - lookup(piece, kCentersOfErf);
  auto pair = [&](size_t i) { return mad(lookup(piece, kTermsOfErf[i + 1]), t, lookup(piece, kTermsOfErf[i])); };
  S square = t * t;
  S slope = mad(pair(5), square * square, mad(pair(3), square, pair(1)));
  return mad(t, slope, t) + lookup(piece, kTermsOfErf[0]);
}

/// 1 - e^P(x), P being close to log(1 - erf(x)): with e^P = 2^n (1 + q) that is (1 - 2^n) - 2^n q, which does not
/// cancel near 0, where n is 0. Up to 4 (float32 is 1 there) an error of P makes one of 2^-27.9 relative to erf.
template <class S>
S erf(const S& x) {
  S magnitude = abs(x);
  magnitude = select(magnitude > 4.0, x.constant(4.0), magnitude);
  if (x.tables()) return copysign(erf_by_segments(magnitude), x);
  S slope = polynomial_by_pairs(magnitude, {-9.256348272423942e-06, 0.00011764197399352638, -0.0006328392139700878,
                                            0.0016670314900765204, -0.00016039979189144682, -0.019153062072491206,
                                            0.10277783007481264, 0.6366193820049209, 0.1283791716107439});
  Reduced<S> of = reduce(-mad(magnitude, slope, magnitude));
  S power = real((bits(of.n) + 127) << 23);
  return copysign(mad(-power, growth(of.r), x.constant(1.0) - power), x);
}

}  // namespace tilewright::codegen::math::single
