#include "ir/integer_range.h"

#include <algorithm>
#include <initializer_list>

namespace tilewright {
namespace {

constexpr WideInteger kLimit = WideInteger{1} << 126;
constexpr int kMostShift = 126;

std::optional<WideInteger> checked(WideInteger value, bool overflows) {
  if (overflows || value >= kLimit || value <= -kLimit) return {};
  return value;
}
std::optional<WideInteger> sum(WideInteger a, WideInteger b) {
  WideInteger value = 0;
  const bool overflows = __builtin_add_overflow(a, b, &value);
  return checked(value, overflows);
}
std::optional<WideInteger> product(WideInteger a, WideInteger b) {
  WideInteger value = 0;
  const bool overflows = __builtin_mul_overflow(a, b, &value);
  return checked(value, overflows);
}
WideInteger quotient(WideInteger a, WideInteger b) {
  const WideInteger cut = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? cut - 1 : cut;
}

/// The hull of what `f` gives at the corners; right where it is monotone in each operand.
template <class F>
std::optional<IntegerRange> of_corners(const IntegerRange& a, const IntegerRange& b, F&& f) {
  std::optional<IntegerRange> result;
  for (WideInteger x : {a.low, a.high}) {
    for (WideInteger y : {b.low, b.high}) {
      const std::optional<WideInteger> value = f(x, y);
      if (!value) return {};
      result = result ? IntegerRange{std::min(result->low, *value), std::max(result->high, *value)}
                      : IntegerRange{*value, *value};
    }
  }
  return result;
}

/// 2^k - 1 of the least k with which -2^k <= x < 2^k for all of them.
WideInteger mask_of(const IntegerRange& range) {
  WideInteger mask = 0;
  while (range.high > mask || range.low < -mask - 1) mask = 2 * mask + 1;
  return mask;
}

std::optional<IntegerRange> of_bits(Intrinsic intrinsic, const IntegerRange& a, const IntegerRange& b) {
  if (a.low == a.high && b.low == b.high) {
    const WideInteger x = a.low, y = b.low;
    const WideInteger value = intrinsic == Intrinsic::k_bitwise_and  ? x & y
                              : intrinsic == Intrinsic::k_bitwise_or ? x | y
                                                                     : x ^ y;
    return IntegerRange{value, value};
  }
  const bool is_and = intrinsic == Intrinsic::k_bitwise_and;
  if (is_and && a.low >= 0 && b.low >= 0) return IntegerRange{0, std::min(a.high, b.high)};
  if (is_and && a.low >= 0) return IntegerRange{0, a.high};
  if (is_and && b.low >= 0) return IntegerRange{0, b.high};
  const WideInteger mask = std::max(mask_of(a), mask_of(b));
  return IntegerRange{a.low >= 0 && b.low >= 0 ? 0 : -mask - 1, mask};
}

std::optional<IntegerRange> of_intrinsic(Intrinsic intrinsic, const IntegerRange& a, const IntegerRange& b) {
  const bool is_left = intrinsic == Intrinsic::k_shift_left;
  if (!is_left && intrinsic != Intrinsic::k_shift_right) return of_bits(intrinsic, a, b);
  if (b.low < 0 || b.high >= kMostShift) return {};
  return of_corners(a, b, [&](WideInteger x, WideInteger y) {
    const WideInteger power = WideInteger{1} << static_cast<int>(y);
    return is_left ? product(x, power) : std::optional(quotient(x, power));
  });
}

/// The divisor 0 is refused where it is constant; elsewhere what it gives does not count.
std::optional<IntegerRange> of_floor_div(const IntegerRange& a, const IntegerRange& b) {
  if (b.low > 0 || b.high < 0) {
    return of_corners(a, b, [](WideInteger x, WideInteger y) { return std::optional(quotient(x, y)); });
  }
  const WideInteger most = std::max(a.high < 0 ? -a.high : a.high, a.low < 0 ? -a.low : a.low);
  return IntegerRange{-most, most};
}

}  // namespace

bool holds(DataType type, const IntegerRange& range) {
  const WideInteger end = WideInteger{1} << (type.is_uint() ? type.bits : type.bits - 1);
  return range.low >= (type.is_uint() ? WideInteger{0} : -end) && range.high < end;
}

std::optional<IntegerRange> range_of_operation(Kind kind, Intrinsic intrinsic, const IntegerRange& a,
                                               const IntegerRange& b) {
  switch (kind) {
    case Kind::kAdd:
      return of_corners(a, b, sum);
    case Kind::kSub:
      return of_corners(a, b, [](WideInteger x, WideInteger y) { return sum(x, -y); });
    case Kind::kMul:
      return of_corners(a, b, product);
    case Kind::kFloorDiv:
      return of_floor_div(a, b);
    case Kind::kFloorMod:
      return IntegerRange{std::min<WideInteger>(b.low + 1, 0), std::max<WideInteger>(b.high - 1, 0)};
    case Kind::kMin:
      return IntegerRange{std::min(a.low, b.low), std::min(a.high, b.high)};
    case Kind::kMax:
      return IntegerRange{std::max(a.low, b.low), std::max(a.high, b.high)};
    case Kind::kCall:
      return of_intrinsic(intrinsic, a, b);
    default:
      return {};
  }
}

}  // namespace tilewright
