#include "arith/bound.h"

namespace tilewright::arith {
namespace {

using Wide = __int128;
constexpr int64_t kPosInf = ConstIntBound::kPosInf;
constexpr int64_t kNegInf = ConstIntBound::kNegInf;

/// Ends beyond what an end can say become open ones.
int64_t clamp(Wide value) {
  if (value >= kPosInf) return kPosInf;
  if (value <= kNegInf) return kNegInf;
  return static_cast<int64_t>(value);
}

/// Sum of two lower ends (or two upper ends): open if one is.
int64_t add_ends(int64_t a, int64_t b, int64_t open) {
  if (a == open || b == open) return open;
  return clamp(Wide{a} + b);
}

bool is_open(int64_t end) { return end == kPosInf || end == kNegInf; }

/// Product of two ends. 0 times an open end is 0: the other factor is finite in every single case.
int64_t mul_ends(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  if (is_open(a) || is_open(b)) return (a < 0) == (b < 0) ? kPosInf : kNegInf;
  return clamp(Wide{a} * b);
}

/// Floor of the quotient of two ends, the divisor not 0. An open dividend stays open; an open divisor gives the limit.
int64_t div_ends(int64_t a, int64_t b) {
  if (a == 0) return 0;
  if (is_open(a)) return (a < 0) == (b < 0) ? kPosInf : kNegInf;
  if (is_open(b)) return (a < 0) == (b < 0) ? 0 : -1;
  return floor_div(a, b);
}

ConstIntBound corners(const ConstIntBound& a, const ConstIntBound& b, int64_t (*op)(int64_t, int64_t)) {
  int64_t values[] = {op(a.min_value, b.min_value), op(a.min_value, b.max_value), op(a.max_value, b.min_value),
                      op(a.max_value, b.max_value)};
  return ConstIntBound::between(*std::min_element(values, values + 4), *std::max_element(values, values + 4));
}

int64_t negate_end(int64_t end) { return -end; }

}  // namespace

ConstIntBound ConstIntBound::of_type(DataType type) {
  if (!type.is_integral()) return everything();
  if (type.bits < 64) return {int_min(type), int_max(type)};
  return type.is_uint() ? ConstIntBound{0, kPosInf} : everything();
}

ConstIntBound operator+(const ConstIntBound& a, const ConstIntBound& b) {
  return ConstIntBound::between(add_ends(a.min_value, b.min_value, kNegInf),
                                add_ends(a.max_value, b.max_value, kPosInf));
}
ConstIntBound operator-(const ConstIntBound& a) { return {negate_end(a.max_value), negate_end(a.min_value)}; }
ConstIntBound operator-(const ConstIntBound& a, const ConstIntBound& b) { return a + -b; }
ConstIntBound operator*(const ConstIntBound& a, const ConstIntBound& b) { return corners(a, b, mul_ends); }

namespace {

/// Quotients by divisors of one sign, those of both signs put together; nothing is divided by 0.
template <class Divide>
ConstIntBound by_sign(ConstIntBound divisor, Divide&& divide) {
  if (divisor.min_value == 0) divisor.min_value = 1;
  if (divisor.max_value == 0) divisor.max_value = -1;
  if (divisor.is_empty()) return ConstIntBound::everything();
  if (divisor.min_value >= 0 || divisor.max_value <= 0) return divide(divisor);
  return unite(divide({divisor.min_value, -1}), divide({1, divisor.max_value}));
}

}  // namespace

ConstIntBound floor_div(const ConstIntBound& a, const ConstIntBound& b) {
  return by_sign(b, [&](const ConstIntBound& divisor) { return corners(a, divisor, div_ends); });
}

ConstIntBound floor_mod(const ConstIntBound& a, const ConstIntBound& b) {
  if (b.min_value > 0) {
    if (a.min_value >= 0 && a.max_value < b.min_value) return a;
    if (b.is_single() && a.is_finite()) {
      int64_t low = floor_div(a.min_value, b.min_value);
      if (low == floor_div(a.max_value, b.min_value)) {
        return {floor_mod(a.min_value, b.min_value), floor_mod(a.max_value, b.min_value)};
      }
    }
    ConstIntBound result{0, b.has_max() ? b.max_value - 1 : kPosInf};
    if (a.min_value >= 0) result.max_value = std::min(result.max_value, a.max_value);
    return result;
  }
  // The sign is that of the divisor.
  int64_t low = b.min_value < 0 ? (b.has_min() ? b.min_value + 1 : kNegInf) : 0;
  int64_t high = b.max_value > 0 ? (b.has_max() ? b.max_value - 1 : kPosInf) : 0;
  return {low, high};
}

ConstIntBound trunc_div(const ConstIntBound& a, const ConstIntBound& b) {
  if (a.min_value < 0 && a.max_value > 0) {
    return unite(trunc_div({a.min_value, 0}, b), trunc_div({0, a.max_value}, b));
  }
  return by_sign(b, [&](const ConstIntBound& divisor) {
    const bool negative = a.min_value < 0, negative_divisor = divisor.max_value < 0;
    ConstIntBound magnitude = floor_div(negative ? -a : a, negative_divisor ? -divisor : divisor);
    return negative == negative_divisor ? magnitude : -magnitude;
  });
}

ConstIntBound trunc_mod(const ConstIntBound& a, const ConstIntBound& b) {
  // |a mod b| < |b| and <= |a|, with the sign of a.
  int64_t limit = kPosInf;
  if (b.is_finite()) {
    int64_t largest = std::max(b.max_value, -b.min_value);
    if (largest > 0) limit = largest - 1;
  }
  if (b.min_value > 0 && a.min_value >= 0 && a.max_value < b.min_value) return a;
  int64_t low = a.min_value >= 0 ? 0 : std::max(a.min_value, -limit);
  int64_t high = a.max_value <= 0 ? 0 : std::min(a.max_value, limit);
  return {low, high};
}

ConstIntBound min(const ConstIntBound& a, const ConstIntBound& b) {
  return {std::min(a.min_value, b.min_value), std::min(a.max_value, b.max_value)};
}
ConstIntBound max(const ConstIntBound& a, const ConstIntBound& b) {
  return {std::max(a.min_value, b.min_value), std::max(a.max_value, b.max_value)};
}
ConstIntBound unite(const ConstIntBound& a, const ConstIntBound& b) {
  return {std::min(a.min_value, b.min_value), std::max(a.max_value, b.max_value)};
}
ConstIntBound intersect(const ConstIntBound& a, const ConstIntBound& b) {
  return {std::max(a.min_value, b.min_value), std::min(a.max_value, b.max_value)};
}

int64_t gcd(int64_t a, int64_t b) {
  uint64_t x = a < 0 ? -static_cast<uint64_t>(a) : static_cast<uint64_t>(a);
  uint64_t y = b < 0 ? -static_cast<uint64_t>(b) : static_cast<uint64_t>(b);
  while (y != 0) {
    uint64_t rest = x % y;
    x = y;
    y = rest;
  }
  // Only gcd(INT64_MIN, 0 or INT64_MIN) does not fit; a divisor of it serves every caller.
  return x > static_cast<uint64_t>(kPosInf) ? int64_t{1} << 62 : static_cast<int64_t>(x);
}

ModularSet ModularSet::make(int64_t coeff, int64_t base) {
  if (coeff == std::numeric_limits<int64_t>::min()) coeff = int64_t{1} << 62;
  if (coeff < 0) coeff = -coeff;
  return {coeff, coeff == 0 ? base : floor_mod(base, coeff)};
}

ModularSet operator+(const ModularSet& a, const ModularSet& b) {
  int64_t base = 0;
  int64_t coeff = gcd(a.coeff, b.coeff);
  if (!add_fits(a.base, b.base, &base)) {
    if (coeff == 0) return ModularSet::everything();
    base = static_cast<int64_t>((static_cast<Wide>(a.base) + b.base) % coeff);
  }
  return ModularSet::make(coeff, base);
}

ModularSet operator*(const ModularSet& a, const ModularSet& b) {
  // (p x + q)(r y + s) = pr xy + ps x + qr y + qs
  int64_t pr = 0, ps = 0, qr = 0, qs = 0;
  if (!mul_fits(a.coeff, b.coeff, &pr) || !mul_fits(a.coeff, b.base, &ps) || !mul_fits(a.base, b.coeff, &qr) ||
      !mul_fits(a.base, b.base, &qs)) {
    return ModularSet::everything();
  }
  return ModularSet::make(gcd(pr, gcd(ps, qr)), qs);
}

ModularSet unite(const ModularSet& a, const ModularSet& b) {
  int64_t difference = 0;
  if (!sub_fits(a.base, b.base, &difference)) return ModularSet::everything();
  return ModularSet::make(gcd(gcd(a.coeff, b.coeff), difference), a.base);
}

}  // namespace tilewright::arith
