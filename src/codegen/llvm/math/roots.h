// cbrt, hypot, rsqrt.
#pragma once

#include "codegen/llvm/math/logarithm.h"

namespace tilewright::codegen::math {

/// x = 2^3q a, a in [1/2, 4): a^(1/3) = a (a^(-1/3))^2.
template <Grade grade, class D>
D cbrt(const D& x) {
  D magnitude = abs(x);
  constexpr bool single = grade == Grade::kSingle;
  auto tiny = magnitude < 0x1p-1022;
  D scaled = single ? magnitude : select(tiny, magnitude * 0x1p54, magnitude);
  auto raw = bits(scaled);
  D exponent = real(raw >> 52 | 0x4330000000000000) - (0x1p52 + 1023.0);
  D m = real((raw & 0x000fffffffffffff) | 0x3ff0000000000000);
  auto q = nearest(exponent * (1.0 / 3.0));
  D rest = mad(q.value, x.constant(-3.0), exponent);  // -1, 0 or 1
  // m^(-1/3) on [1, 2]: relative error 2^-17.4.
  D r = polynomial(m, {-0.01701662674042502, 0.15605969384094634, -0.5978567882490654, 1.2437909599344115,
                       -1.5660536402366347, 1.781070708270658});
  D one = x.constant(1.0);
  auto more = rest > 0.5, less = rest < -0.5;
  r = r * select(more, x.constant(0x1.965fea53d6e3dp-1), select(less, x.constant(0x1.428a2f98d728bp+0), one));
  D a = m * select(more, x.constant(2.0), select(less, x.constant(0.5), one));
  // One step of third order: relative error 2^-49.
  D h = one - a * r * r * r;
  r = mad(r * h, mad(h, x.constant(2.0 / 9.0), x.constant(1.0 / 3.0)), r);
  D y = a * r * r;
  if constexpr (grade == Grade::kDouble) {
    // One of Newton's for y itself, with y^3 - a exact enough.
    Pair<D> square = two_product(y, y), cube = two_product(square.high, y);
    D excess = (cube.high - a) + mad(square.low, y, cube.low);
    y = y - excess * (r * r * (1.0 / 3.0));
  }
  auto down = single ? q.integer : q.integer - select(tiny, raw.whole(18), raw.whole(0));
  D result = copysign(y * power_of_two(down), x);
  return select((magnitude > 0.0) & (magnitude < kInfinity), result, x);
}

template <Grade grade, class D>
D hypot(const D& x, const D& y) {
  D ax = abs(x), ay = abs(y);
  auto infinite = equal(ax, x.constant(kInfinity)) | equal(ay, x.constant(kInfinity));
  if constexpr (grade == Grade::kSingle) {
    return select(infinite, x.constant(kInfinity), sqrt(mad(ax, ax, ay * ay)));
  } else {
    auto larger = ax > ay;
    D a = select(larger, ax, ay), b = select(larger, ay, ax);
    // Squares must neither overflow nor lose bits below the smallest numbers.
    auto large = a > 0x1p500, small = a < 0x1p-400;
    D one = x.constant(1.0);
    D scale = select(large, x.constant(0x1p-700), select(small, x.constant(0x1p600), one));
    D back = select(large, x.constant(0x1p700), select(small, x.constant(0x1p-600), one));
    a = a * scale;
    b = b * scale;
    return select(infinite, x.constant(kInfinity), sqrt(mad(a, a, b * b)) * back);
  }
}

template <Grade grade, class D>
D rsqrt(const D& x) {
  return x.constant(1.0) / sqrt(x);
}

}  // namespace tilewright::codegen::math
