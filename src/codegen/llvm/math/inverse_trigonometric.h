// asin, acos, atan, atan2.
#pragma once

#include "codegen/llvm/math/arithmetic.h"

namespace tilewright::codegen::math {

inline constexpr double kPiHalfHigh = 0x1.921fb54442d18p+0, kPiHalfLow = 0x1.1a62633145c07p-54;

/// atan(t) - t, |t| <= tan(pi/8). Errors relative to t.
template <Grade grade, class D>
D atan_series(const D& t) {
  D z = t * t;
  if constexpr (grade == Grade::kSingle) {
    // Error 2^-34.5.
    D p = polynomial(z, {0.04710820196051005, -0.08465028059933868, 0.11043866766427236, -0.14282076618665537,
                         0.19999913262679045, -0.3333333272490466});
    return z * t * p;
  } else {
    // Error 2^-58.6.
    D p = polynomial(z, {-0.01781420642250122, 0.038002118055643797, -0.050378942903805325, 0.0584785236695939,
                         -0.06663144226692622, 0.07692068519401628, -0.0909089854746588, 0.11111110824512722,
                         -0.14285714281348197, 0.19999999999969026, -0.3333333333333327});
    return z * t * p;
  }
}

/// atan(y / x) for 0 <= y, 0 < x; reflected where `turn` holds: pi/2 - atan(y / x); and from the left
/// where `left`: pi minus that. 0 <= y <= x.
template <Grade grade, class D, class M>
D atan_of_quotient(const D& y, const D& x, const M& turn, const M& left) {
  // atan(q) = pi/4 + atan((q - 1) / (q + 1)) for q above tan(pi/8).
  auto steep = y > x * 0.4142135623730951;
  D over = select(steep, y - x, y), under = select(steep, x + y, x);
  D t = over / under, low = x.constant(0.0);
  if constexpr (grade == Grade::kDouble) {
    Pair<D> exact = divide<D>({over, low}, {under, select(steep, y - (under - x), low)});
    t = exact.high;
    low = exact.low;
  }
  D series = atan_series<grade>(t) + low;
  // The whole is base + sign t: multiples of pi/4 in two parts.
  D none = x.constant(0.0);
  D quarters = select(steep, x.constant(1.0), none);
  quarters = select(turn, x.constant(2.0) - quarters, quarters);
  quarters = select(left, x.constant(4.0) - quarters, quarters);
  auto minus = turn ^ left;
  D signed_t = select(minus, -t, t), signed_series = select(minus, -series, series);
  // pi/4 to 51 bits: its multiples up to 4 are exact.
  constexpr double kHigh = 0x1.921fb54442d18p-1, kLow = 0x1.1a62633145c07p-55;
  if constexpr (grade == Grade::kSingle) {
    return mad(quarters, x.constant(kHigh), signed_t + signed_series);
  } else {
    Pair<D> sum = fast_two_sum(quarters * kHigh, signed_t);
    return sum.high + (sum.low + mad(quarters, x.constant(kLow), signed_series));
  }
}

template <Grade grade, class D>
D atan(const D& x) {
  D magnitude = clamp(abs(x), 0.0, 0x1p100), one = x.constant(1.0);
  auto turn = magnitude > 1.0;
  D y = select(turn, one, magnitude), over = select(turn, magnitude, one);
  return copysign(atan_of_quotient<grade>(y, over, turn, turn ^ turn), x);
}

/// The angle of the point (x, y).
template <Grade grade, class D>
D atan2(const D& y, const D& x) {
  D ax = abs(x), ay = abs(y);
  auto turn = ay > ax;
  D small = select(turn, ax, ay), large = select(turn, ay, ax);
  if constexpr (grade == Grade::kDouble) {
    // Neither their sum nor the larger one's inverse may overflow.
    D scale =
        select(large > 0x1p900, x.constant(0x1p-200), select(large < 0x1p-800, x.constant(0x1p200), x.constant(1.0)));
    small = small * scale;
    large = large * scale;
  }
  // The quotient of two infinities is taken to be 1, and that of two zeros 0.
  D none = x.constant(0.0), one = x.constant(1.0);
  auto infinite = equal(large, x.constant(kInfinity));
  small = select(infinite, select(equal(small, large), one, none), small);
  large = select(infinite | equal(large, none), one, large);
  D angle = atan_of_quotient<grade>(small, large, turn, is_negative(x));
  angle = select(unordered(x, y), x + y, angle);
  return copysign(angle, y);
}

/// (asin(x) - x) / x, z = x^2 <= 1/4. Errors relative to asin.
template <Grade grade, class D>
D asin_series(const D& z) {
  if constexpr (grade == Grade::kSingle) {
    // Error 2^-34.9.
    return z * polynomial(z, {0.03488789296961683, 0.007409727788179903, 0.02459525431935672, 0.030122622502014987,
                              0.04465825784224829, 0.0749995964999785, 0.16666666974473796});
  } else {
    // Error 2^-58.9.
    return z * polynomial(z, {0.032741483895665426, -0.02106005804078315, 0.02165687868893905, 0.0037700243477113878,
                              0.010750760692863225, 0.011406698302304591, 0.013979523139738418, 0.01735175262503841,
                              0.022372205133791817, 0.030381943138356373, 0.04464285716374379, 0.07499999999984425,
                              0.16666666666666702});
  }
}

/// Shared parts of asin and acos: asin(x) = x + x series for |x| <= 1/2, else pi/2 - 2 asin(root), root = sqrt((1 -
/// |x|) / 2) as a sum of two.
template <class D>
struct ArcParts {
  decltype(std::declval<D>() < 0.0) outer;
  D root, low, series;
};

template <Grade grade, class D>
ArcParts<D> arc_parts(const D& x) {
  D magnitude = abs(x);
  auto outer = magnitude > 0.5;
  D z = select(outer, (x.constant(1.0) - magnitude) * 0.5, x * x);
  D root = sqrt(z), low = root;
  if constexpr (grade == Grade::kDouble) {
    // A root of 26 bits has an exact square.
    D upper = real(bits(root) & 0xfffffffff8000000);
    low = (z - upper * upper) / (root + upper);
    low = select(equal(root, x.constant(0.0)), root, low);
    root = upper;
  }
  return {outer, root, low, asin_series<grade>(z)};
}

template <Grade grade, class D>
D asin(const D& x) {
  ArcParts<D> of = arc_parts<grade>(x);
  D magnitude = abs(x);
  D inner = mad(magnitude, of.series, magnitude);
  if constexpr (grade == Grade::kSingle) {
    D far = mad(of.root * -2.0, of.series + 1.0, x.constant(kPiHalfHigh));
    return copysign(select(of.outer, far, inner), x);
  } else {
    // pi/2 - 2 root cancels: pi/4 - 2 root is exact before.
    D rest = mad((of.root + of.low) * 2.0, of.series, mad(of.low, x.constant(2.0), x.constant(-kPiHalfLow)));
    Pair<D> difference = fast_two_sum(x.constant(kPiHalfHigh), of.root * -2.0);
    return copysign(select(of.outer, difference.high + (difference.low - rest), inner), x);
  }
}

template <Grade grade, class D>
D acos(const D& x) {
  ArcParts<D> of = arc_parts<grade>(x);
  auto negative = x < 0.0;
  if constexpr (grade == Grade::kSingle) {
    D twice = mad(of.root * 2.0, of.series, of.root * 2.0);
    D far = select(negative, x.constant(0x1.921fb54442d18p+1) - twice, twice);
    return select(of.outer, far, x.constant(kPiHalfHigh) - mad(x, of.series, x));
  } else {
    D rest = mad(of.root + of.low, of.series, of.low);
    D near_one = (of.root + rest) * 2.0;
    Pair<D> difference = fast_two_sum(x.constant(kPiHalfHigh), -of.root);
    D near_minus_one = (difference.high + (difference.low - (rest - kPiHalfLow))) * 2.0;
    Pair<D> middle = fast_two_sum(x.constant(kPiHalfHigh), -x);
    D inner = middle.high + (middle.low - mad(x, of.series, x.constant(-kPiHalfLow)));
    return select(of.outer, select(negative, near_minus_one, near_one), inner);
  }
}

}  // namespace tilewright::codegen::math
