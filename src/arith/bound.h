// Bounds of an integer without its context: an interval with constant ends, and a residue class.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "ir/dtype.h"
#include "ir/numeric.h"

namespace tilewright::arith {

using tilewright::floor_div;
using tilewright::floor_mod;

/// Every value v satisfies min_value <= v <= max_value. kPosInf and kNegInf stand for "not known": the former is never
/// a lower end, the latter never an upper one, since dividing such an end would leave it where it is.
struct ConstIntBound {
  static constexpr int64_t kPosInf = std::numeric_limits<int64_t>::max();
  static constexpr int64_t kNegInf = -kPosInf;

  int64_t min_value = kNegInf;
  int64_t max_value = kPosInf;

  static ConstIntBound everything() { return {}; }
  static ConstIntBound single(int64_t value) { return between(value, value); }
  /// The values from `low` to `high`; wider by one where an end would be a value that is reserved (see above).
  static ConstIntBound between(int64_t low, int64_t high) {
    return {std::clamp(low, kNegInf, kPosInf - 1), std::max(high, kNegInf + 1)};
  }
  /// The values of an integer type; open where the type is wider than an end can say.
  static ConstIntBound of_type(DataType type);

  /// One value, known exactly.
  bool is_single() const { return min_value == max_value && is_finite(); }
  bool has_min() const { return min_value != kNegInf; }
  bool has_max() const { return max_value != kPosInf; }
  bool is_finite() const { return has_min() && has_max(); }
  /// No value satisfies it: the context contradicts itself.
  bool is_empty() const { return min_value > max_value; }
  bool contains(int64_t value) const { return min_value <= value && value <= max_value; }
  bool within(const ConstIntBound& outer) const { return outer.min_value <= min_value && max_value <= outer.max_value; }
  friend bool operator==(const ConstIntBound&, const ConstIntBound&) = default;
};

ConstIntBound operator+(const ConstIntBound& a, const ConstIntBound& b);
ConstIntBound operator-(const ConstIntBound& a, const ConstIntBound& b);
ConstIntBound operator*(const ConstIntBound& a, const ConstIntBound& b);
ConstIntBound operator-(const ConstIntBound& a);
/// Division by 0 does not happen: where the divisor's interval holds 0, its other values count.
ConstIntBound floor_div(const ConstIntBound& a, const ConstIntBound& b);
ConstIntBound floor_mod(const ConstIntBound& a, const ConstIntBound& b);
ConstIntBound trunc_div(const ConstIntBound& a, const ConstIntBound& b);
ConstIntBound trunc_mod(const ConstIntBound& a, const ConstIntBound& b);
ConstIntBound min(const ConstIntBound& a, const ConstIntBound& b);
ConstIntBound max(const ConstIntBound& a, const ConstIntBound& b);
ConstIntBound unite(const ConstIntBound& a, const ConstIntBound& b);
ConstIntBound intersect(const ConstIntBound& a, const ConstIntBound& b);

/// Every value is base + k * coeff. coeff 0: it is base. coeff 1: nothing is known. 0 <= base < coeff unless coeff is
/// 0.
struct ModularSet {
  int64_t coeff = 1;
  int64_t base = 0;

  static ModularSet everything() { return {}; }
  static ModularSet single(int64_t value) { return {0, value}; }
  static ModularSet make(int64_t coeff, int64_t base);
  bool is_everything() const { return coeff == 1; }
  friend bool operator==(const ModularSet&, const ModularSet&) = default;
};

ModularSet operator+(const ModularSet& a, const ModularSet& b);
ModularSet operator*(const ModularSet& a, const ModularSet& b);
/// The smallest class that holds both.
ModularSet unite(const ModularSet& a, const ModularSet& b);

/// gcd(0, x) = |x|.
int64_t gcd(int64_t a, int64_t b);
/// The sum, product or difference, false when it does not fit 64 bits.
inline bool add_fits(int64_t a, int64_t b, int64_t* out) { return !__builtin_add_overflow(a, b, out); }
inline bool sub_fits(int64_t a, int64_t b, int64_t* out) { return !__builtin_sub_overflow(a, b, out); }
inline bool mul_fits(int64_t a, int64_t b, int64_t* out) { return !__builtin_mul_overflow(a, b, out); }

}  // namespace tilewright::arith
