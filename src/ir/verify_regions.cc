#include "ir/verify_regions.h"

#include <map>
#include <optional>

#include "ir/build.h"

namespace tilewright {
namespace {

/// constant + sum of coefficient * variable.
struct Linear {
  int64_t constant = 0;
  std::map<const NodeBase*, int64_t> terms;
};

std::optional<Linear> scaled(std::optional<Linear> value, int64_t factor) {
  if (!value || __builtin_mul_overflow(value->constant, factor, &value->constant)) return std::nullopt;
  for (auto& [var, coefficient] : value->terms) {
    if (__builtin_mul_overflow(coefficient, factor, &coefficient)) return std::nullopt;
  }
  return value;
}

std::optional<Linear> sum(std::optional<Linear> a, const std::optional<Linear>& b) {
  if (!a || !b || __builtin_add_overflow(a->constant, b->constant, &a->constant)) return std::nullopt;
  for (const auto& [var, coefficient] : b->terms) {
    int64_t& into = a->terms[var];
    if (__builtin_add_overflow(into, coefficient, &into)) return std::nullopt;
    if (into == 0) a->terms.erase(var);
  }
  return a;
}

std::optional<Linear> linear(const Expr& e) {
  if (const IntImm* value = e.as<IntImm>()) return Linear{value->value, {}};
  if (e.is<Var>() && e.dtype().is_int()) return Linear{0, {{e.get(), 1}}};
  if (const Add* add = e.as<Add>()) return sum(linear(add->a), linear(add->b));
  if (const Sub* sub = e.as<Sub>()) return sum(linear(sub->a), scaled(linear(sub->b), -1));
  if (const Mul* mul = e.as<Mul>()) {
    if (auto factor = const_int(mul->b)) return scaled(linear(mul->a), *factor);
    if (auto factor = const_int(mul->a)) return scaled(linear(mul->b), *factor);
  }
  return std::nullopt;
}

struct Interval {
  int64_t low, high;
};
/// The values that a linear expression takes over constant loops; nothing if it has another variable.
std::optional<Interval> interval_of(const std::optional<Linear>& value, const LoopDomains& loops) {
  if (!value) return std::nullopt;
  Interval result{value->constant, value->constant};
  for (const auto& [var, coefficient] : value->terms) {
    auto it = loops.find(var);
    if (it == loops.end()) return std::nullopt;
    auto min = const_int(it->second.first), extent = const_int(it->second.second);
    if (!min || !extent || *extent <= 0 || *extent > INT32_MAX || std::abs(coefficient) > INT32_MAX)
      return std::nullopt;
    int64_t first = *min * coefficient, last = (*min + *extent - 1) * coefficient;
    result.low += std::min(first, last);
    result.high += std::max(first, last);
  }
  return result;
}

}  // namespace

bool leaves_range(const Expr& index, const Range& range, const LoopDomains& loops) {
  if (index.dtype().is_vector()) return false;
  auto offset = interval_of(sum(linear(index), scaled(linear(range.min), -1)), loops);
  auto extent = interval_of(linear(range.extent), {});
  return offset && ((extent && offset->high >= extent->high) || offset->low < 0);
}

}  // namespace tilewright
