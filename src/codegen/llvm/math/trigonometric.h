// sin, cos, tan.
//
// x = n pi/2 + r, |r| <= pi/4, r as a sum of two. For |x| <= 2^20 pi/2 has parts of 33 bits, whose products with n are
// exact (Cody and Waite 1980); beyond, 192 bits of x 2/pi modulo 4 come from the bits of 2/pi in a table, of which only
// those are multiplied that matter (Payne and Hanek 1983). No float64 below 2^1024 is closer to a multiple of pi/2 than
// 2^-62, so both leave more than 60 bits of r.
#pragma once

#include "codegen/llvm/math/arithmetic.h"

namespace tilewright::codegen::math {

/// 64 zeros, then the bits of 2/pi.
inline constexpr std::array<uint64_t, 22> kTwoOverPi{0,
                                                     0xa2f9836e4e441529,
                                                     0xfc2757d1f534ddc0,
                                                     0xdb6295993c439041,
                                                     0xfe5163abdebbc561,
                                                     0xb7246e3a424dd2e0,
                                                     0x06492eea09d1921c,
                                                     0xfe1deb1cb129a73e,
                                                     0xe88235f52ebb4484,
                                                     0xe99c7026b45f7e41,
                                                     0x3991d639835339f4,
                                                     0x9c845f8bbdf9283b,
                                                     0x1ff897ffde05980f,
                                                     0xef2f118b5a0a6d1f,
                                                     0x6d367ecf27cb09b7,
                                                     0x4f463f669e5fea2d,
                                                     0x7527bac7ebe5f17b,
                                                     0x3d0739f78a5292ea,
                                                     0x6bfb5fb11f8d5d08,
                                                     0x56033046fc7b6bab,
                                                     0xf0cfbc209af4361d,
                                                     0xa9e391615ee61b08};

/// r + low, and n in the low bits of an integer, which is kept as the number 1.5 * 2^52 + (n modulo 4).
template <class D>
struct Reduced {
  D r, low, quadrant;
};

/// For 2^20 <= |x|, one lane; NaN for what is not finite.
template <class D>
std::array<D, 3> reduce_huge(const D& x) {
  auto raw = bits(x);
  auto exponent = (raw >> 52) & 0x7ff;
  auto mantissa = (raw & 0x000fffffffffffff) | 0x0010000000000000;
  // x = mantissa 2^(exponent - 1075). Bits of 2/pi before the first one that this makes less than 4 count for nothing:
  // multiples of 4.
  auto position = exponent - (1075 + 2 - 64);
  auto shift = position & 63;
  auto word = [&](int i) {
    auto at = (position >> 6) + static_cast<uint64_t>(i);
    auto first = at.lookup(kTwoOverPi), second = (at + 1).lookup(kTwoOverPi);
    return (first << shift) | ((second >> 1) >> (shift ^ 63));
  };
  auto w0 = word(0), w1 = word(1), w2 = word(2);
  // The product modulo 2^192, without its last 64 bits: units of 2^-62 and 2^-126.
  auto low_word = mantissa * w1;
  auto carried = multiply_high(mantissa, w2);
  auto fraction = low_word + carried;
  auto one = raw.whole(1), none = raw.whole(0);
  auto whole = mantissa * w0 + multiply_high(mantissa, w1) + select(unsigned_less(fraction, carried), one, none);
  auto quadrant = (whole + (uint64_t{1} << 61)) >> 62;
  auto signed_part = whole - (quadrant << 62);
  // Four exact summands, the first with the sign.
  auto piece = [&](const auto& n) { return real((n & 0xffffffff) | 0x4330000000000000) - 0x1p52; };
  D first = real((signed_part + (uint64_t{1} << 63)) >> 32 | 0x4330000000000000) - (0x1p52 + 0x1p31);
  Pair<D> upper = two_sum(first * 0x1p-30, piece(signed_part) * 0x1p-62);
  Pair<D> middle = two_sum(upper.high, piece(fraction >> 32) * 0x1p-94);
  Pair<D> turn = fast_two_sum(middle.high, upper.low + middle.low + piece(fraction) * 0x1p-126);
  // Times pi/2.
  constexpr double kHigh = 0x1.921fb54442d18p+0, kLow = 0x1.1a62633145c07p-54;
  Pair<D> r = two_product(turn.high, x.constant(kHigh));
  Pair<D> sum = fast_two_sum(r.high, mad(turn.low, x.constant(kHigh), mad(turn.high, x.constant(kLow), r.low)));
  // With x's sign. Infinity minus itself is NaN.
  auto negative = x < 0.0;
  D undefined = x - x;
  auto rotation = select(negative, none - quadrant, quadrant) & 3;
  return {select(negative, -sum.high, sum.high) + undefined, select(negative, -sum.low, sum.low),
          real(rotation | 0x4338000000000000)};
}

template <Grade grade, class D>
Reduced<D> reduce(const D& x) {
  constexpr double kPart1 = 0x1.921fb544p+0, kPart2 = 0x1.0b4611a6p-34, kPart3 = 0x1.3198a2ep-69,
                   kPart4 = 0x1.b839a252049c1p-104;
  D quadrant = x * 0x1.45f306dc9c883p-1 + 0x1.8p52;
  D n = quadrant - 0x1.8p52;
  D first = mad(n, x.constant(-kPart1), x);
  D r = first, low = x.constant(0.0);
  if constexpr (grade == Grade::kSingle) {
    // A float32 is not closer to a multiple of pi/2 than 2^-30.
    r = mad(n, x.constant(-0x1.0b4611a626331p-34), first);
  } else {
    Pair<D> second = two_sum(first, n * -kPart2);
    Pair<D> third = two_sum(second.high, n * -kPart3);
    D rest = mad(n, x.constant(-kPart4), second.low + third.low);
    Pair<D> sum = fast_two_sum(third.high, rest);
    r = sum.high;
    low = sum.low;
  }
  std::array<D, 3> all = replace_lanes(!(abs(x) < 0x1p20), std::array<D, 3>{r, low, quadrant}, x,
                                       [](const auto& lane) { return reduce_huge(lane); });
  return {all[0], all[1], all[2]};
}

/// sin(r + low) - r, |r| <= pi/4.
template <Grade grade, class D>
D sin_tail(const D& r, const D& low) {
  D z = r * r, cube = z * r;
  if constexpr (grade == Grade::kSingle) {
    // Error 2^-36.8.
    return cube *
           polynomial(z, {2.7173113319373562e-06, -0.00019839257552234656, 0.008333329317115522, -0.1666666664413041});
  } else {
    // Error 2^-67.9.
    D p = polynomial(z, {-7.578023327757061e-13, 1.605835773655993e-10, -2.5052104891746018e-08, 2.75573192143772e-06,
                         -0.00019841269841256137, 0.008333333333333325});
    D correction = mad(z, mad(cube, p, low * -0.5), low);
    return mad(cube, r.constant(-0.16666666666666666), correction);
  }
}

template <Grade grade, class D>
D sin_reduced(const D& r, const D& low) {
  return r + sin_tail<grade>(r, low);
}

/// cos(r + low), |r| <= pi/4.
template <Grade grade, class D>
Pair<D> cos_pair(const D& r, const D& low) {
  D z = r * r;
  if constexpr (grade == Grade::kSingle) {
    // Error 2^-41.3.
    D p = polynomial(
        z, {-2.7236849090572187e-07, 2.4799908328873974e-05, -0.001388888553747608, 0.04166666664785987, -0.5});
    return {mad(z, p, r.constant(1.0)), r.constant(0.0)};
  } else {
    // Error 2^-62.1.
    D p = polynomial(z, {-1.1367900041939533e-11, 2.0875896367569307e-09, -2.7557315730261363e-07,
                         2.480158729460575e-05, -0.0013888888888882816, 0.04166666666666665});
    D half = z * 0.5;
    D high = r.constant(1.0) - half;
    return {high, (r.constant(1.0) - high - half) + mad(z * z, p, r * -low)};
  }
}

template <Grade grade, class D>
D cos_reduced(const D& r, const D& low) {
  Pair<D> sum = cos_pair<grade>(r, low);
  return grade == Grade::kSingle ? sum.high : sum.high + sum.low;
}

template <Grade grade, class D>
D sin(const D& x) {
  Reduced<D> of = reduce<grade>(x);
  auto n = bits(of.quadrant);
  D result = select(equal(n & 1, n.whole(0)), sin_reduced<grade>(of.r, of.low), cos_reduced<grade>(of.r, of.low));
  result = real(bits(result) ^ ((n & 2) << 62));
  return select(equal(x, x.constant(0.0)), x, result);
}

template <Grade grade, class D>
D cos(const D& x) {
  Reduced<D> of = reduce<grade>(x);
  auto n = bits(of.quadrant);
  D result = select(equal(n & 1, n.whole(0)), cos_reduced<grade>(of.r, of.low), sin_reduced<grade>(of.r, of.low));
  return real(bits(result) ^ (((n + 1) & 2) << 62));
}

template <Grade grade, class D>
D tan(const D& x) {
  Reduced<D> of = reduce<grade>(x);
  auto n = bits(of.quadrant);
  Pair<D> s = fast_two_sum(of.r, sin_tail<grade>(of.r, of.low)), c = cos_pair<grade>(of.r, of.low);
  c = fast_two_sum(c.high, c.low);
  auto even = equal(n & 1, n.whole(0));
  D result = x;
  if constexpr (grade == Grade::kSingle) {
    result = select(even, s.high, c.high) / select(even, c.high, -s.high);
  } else {
    Pair<D> quotient = divide<D>({select(even, s.high, c.high), select(even, s.low, c.low)},
                                 {select(even, c.high, -s.high), select(even, c.low, -s.low)});
    result = quotient.high + quotient.low;
  }
  return select(equal(x, x.constant(0.0)), x, result);
}

}  // namespace tilewright::codegen::math
