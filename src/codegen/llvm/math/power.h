// pow: e^(y log x), the logarithm as a sum of two with 65 bits or more, since its error is multiplied by up to 745.
#pragma once

#include "codegen/llvm/math/logarithm.h"

namespace tilewright::codegen::math {

/// log(2^k m), m in [sqrt(1/2), sqrt(2)), in float64 with twice the precision. With s = (m - 1) / (m + 1):
/// 2 s (1 + s^2/3 + s^4 P(s^2)).
template <class D>
Pair<D> log_pair(const D& k, const D& m) {
  D one = m.constant(1.0);
  D f = m - 1.0, sum = m + 1.0;
  D inverse = one / sum;
  D s = f * inverse;
  Pair<D> back = two_product(s, sum);
  D s_low = (((f - back.high) - back.low) - s * (m - (sum - 1.0))) * inverse;
  Pair<D> z = two_product(s, s);
  z.low = mad(s * 2.0, s_low, z.low);
  // Error of P, relative to the logarithm: 2^-71.7.
  D p = polynomial(z.high, {0.059414908015785424, 0.0584430111452277, 0.06667791499074185, 0.0769228873519755,
                            0.09090909272951009, 0.11111111110177818, 0.14285714285716453, 0.19999999999999998});
  constexpr double kThirdHigh = 0x1.5555555555555p-2, kThirdLow = 0x1.5555555555555p-56;
  Pair<D> third = two_product(z.high, m.constant(kThirdHigh));
  D third_low = mad(z.high, m.constant(kThirdLow), mad(z.low, m.constant(kThirdHigh), third.low));
  Pair<D> tail = fast_two_sum(third.high, mad(z.high * z.high, p, third_low));
  Pair<D> factor = fast_two_sum(one, tail.high);
  factor.low = factor.low + tail.low;
  Pair<D> log_m = two_product(s, factor.high);
  log_m.low = mad(s, factor.low, mad(s_low, factor.high, log_m.low));
  // ln 2 in two parts, the first of 42 bits.
  Pair<D> all = two_sum(k * 0x1.62e42fefa38p-1, log_m.high * 2.0);
  D low = all.low + mad(k, k.constant(0x1.ef35793c7673p-45), log_m.low * 2.0);
  return fast_two_sum(all.high, low);
}

/// y log|x|, for finite positive |x|; a y whose results overflow anyway is cut down so that nothing is infinite here.
template <Grade grade, class D>
Pair<D> log_times(const D& magnitude, const D& y) {
  auto [k, m] = decompose<grade>(magnitude);
  if constexpr (grade == Grade::kSingle) {
    D s = (m - 1.0) / (m + 1.0), z = s * s;
    // Error 2^-44.
    D q = polynomial(
        z, {0.19609347270439076, 0.22175073671341128, 0.28572114648562635, 0.3999999585673292, 0.6666666667385411});
    D logarithm = mad(k, k.constant(0x1.62e42fefa39efp-1), s * mad(z, q, z.constant(2.0)));
    return {clamp(y, -0x1p40, 0x1p40) * logarithm, y.constant(0.0)};
  } else {
    Pair<D> logarithm = log_pair(k, m);
    D bounded = clamp(y, -0x1p66, 0x1p66);
    Pair<D> product = two_product(bounded, logarithm.high);
    D low = mad(bounded, logarithm.low, product.low);
    return {product.high, select(abs(product.high) < 800.0, low, y.constant(0.0))};
  }
}

template <Grade grade, class D>
D pow(const D& x, const D& y) {
  D magnitude = abs(x), power = abs(y), none = x.constant(0.0), one = x.constant(1.0);
  Pair<D> product = log_times<grade>(magnitude, y);
  D result = exp_pair<grade>(product.high, product.low);
  // 0 and infinity, whose logarithms were not computed.
  auto zero = equal(magnitude, none), infinite = equal(magnitude, x.constant(kInfinity));
  D limit = select(zero ^ (y < 0.0), none, x.constant(kInfinity));
  result = select(zero | infinite, limit, result);
  // Below 2^52 adding it rounds to a whole number, whose last bit then stands last; above, all are whole.
  auto below = power < 0x1p52;
  D whole = select(below, power + 0x1p52, power);
  auto is_whole = equal(select(below, whole - 0x1p52, power), power);
  auto last = bits(whole) & 1;
  auto odd = is_whole & (power < 0x1p53) & equal(last, last.whole(1));
  auto negative = is_negative(x);
  result = select(negative & odd, -result, result);
  auto undefined = (x < 0.0) & !is_whole & (magnitude < kInfinity);
  result = select(undefined | unordered(x, y), x.constant(kNan), result);
  return select(equal(x, one) | equal(y, none), one, result);
}

}  // namespace tilewright::codegen::math
