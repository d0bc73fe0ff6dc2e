#include "arith/digits.h"

#include <algorithm>

#include "arith/linear.h"
#include "ir/build.h"
#include "ir/substitute.h"
#include "support/ranges.h"

namespace tilewright::arith {
namespace {

/// Far from the ends of 64 bits, so that sums and products of two such numbers do not wrap.
constexpr int64_t kLimit = int64_t{1} << 31;
bool is_small(int64_t x) { return -kLimit < x && x < kLimit; }

/// Expressions that are walked by plain recursion.
constexpr uint32_t kDeepestDigits = 64;

class Reader {
 public:
  explicit Reader(const Counters& inputs, const Bindings* bindings = nullptr) : inputs_(inputs), bindings_(bindings) {}

  bool read(const Expr& e, int64_t scale, DigitSum& sum) {
    if (!is_small(scale)) return false;
    if (e.is<Var>()) {
      const Expr* value = value_of(e);
      if (!value) return read_var(e, scale, sum);
      return value->depth() <= kDeepestDigits && read(*value, scale, sum);
    }
    if (const IntImm* number = e.as<IntImm>()) {
      if (!is_small(number->value) || !is_small(number->value * scale)) return false;
      sum.constant += number->value * scale;
      return is_small(sum.constant);
    }
    if (is_unfoldable(e)) return false;
    if (const Add* add = e.as<Add>()) return read(add->a, scale, sum) && read(add->b, scale, sum);
    if (const Sub* sub = e.as<Sub>()) return read(sub->a, scale, sum) && read(sub->b, -scale, sum);
    if (const Mul* mul = e.as<Mul>()) {
      const IntImm *left = mul->a.as<IntImm>(), *right = mul->b.as<IntImm>();
      const IntImm* factor = right ? right : left;
      if (factor && is_small(factor->value)) return read(right ? mul->a : mul->b, scale * factor->value, sum);
    }
    if (!moves(e)) return add_fixed(e, scale, sum);
    if (const FloorDiv* div = e.as<FloorDiv>()) return read_part(div->a, div->b, scale, true, sum);
    if (const FloorMod* mod = e.as<FloorMod>()) return read_part(mod->a, mod->b, scale, false, sum);
    return false;
  }

 private:
  bool read_var(const Expr& e, int64_t scale, DigitSum& sum) {
    for (const Counter& input : inputs_) {
      if (input.var != e.get()) continue;
      if (input.extent > 1 && scale != 0) {
        sum.digits.push_back({input.var, 1, input.extent, scale});
      }
      return true;
    }
    return add_fixed(e, scale, sum);
  }

  /// The value that a variable is bound to as an axis; null for others.
  const Expr* value_of(const Expr& e) const {
    for (size_t i = 0; bindings_ && i < bindings_->values.size(); ++i) {
      if (bindings_->axes[i]->var == e) return &bindings_->values[i];
    }
    return nullptr;
  }

  /// The expression with its bindings in place.
  Expr bound(const Expr& e) const {
    if (!bindings_ || e.is<Var>() || !uses_any_var(e, [&](const Ref<Var>& v) { return value_of(v) != nullptr; })) {
      return e;
    }
    VarMap map;
    for (size_t i : indices_of(bindings_->values)) map.emplace(bindings_->axes[i]->var, bindings_->values[i]);
    return substitute(e, map);
  }

  bool add_fixed(const Expr& e, int64_t scale, DigitSum& sum) {
    if (scale != 0) sum.fixed.push_back({bound(e), scale});
    return true;
  }

  /// The expression mentions an input.
  bool moves(const Expr& e) const {
    if (e.is<IntImm>()) return false;
    if (e.is<Var>()) {
      if (const Expr* value = value_of(e)) return value->depth() > kDeepestDigits || moves(*value);
      return any_of(inputs_, [&](const Counter& input) { return input.var == e.get(); });
    }
    if (BinaryOperands operands = binary_operands(e)) return moves(*operands.a) || moves(*operands.b);
    return uses_any_var(e, [&](const Ref<Var>& v) { return moves(v); });
  }

  /// x // c or x % c, for a sum of digits with a place where the lower ones end: those below are x % c, the others
  /// x // c times c. A digit across that place is cut where it divides.
  bool read_part(const Expr& x, const Expr& by, int64_t scale, bool quotient, DigitSum& sum) {
    const IntImm* divisor = by.as<IntImm>();
    if (!divisor || divisor->value <= 0 || !is_small(divisor->value)) return false;
    int64_t c = divisor->value;
    DigitSum inner;
    if (!read(x, 1, inner) || !inner.fixed.empty() || inner.constant < 0) return false;
    int64_t lowest = inner.constant % c, below = lowest;
    Digits high, low;
    for (const Digit& digit : inner.digits) {
      if (digit.scale < 0) return false;
      if (digit.scale % c == 0) {
        high.push_back({digit.var, digit.lower, digit.extent, digit.scale / c});
      } else if (digit.scale * digit.extent <= c) {
        low.push_back(digit);
      } else {
        if (c % digit.scale != 0) return false;
        int64_t cut = c / digit.scale;
        if (digit.extent % cut != 0) return false;
        low.push_back({digit.var, digit.lower, cut, digit.scale});
        high.push_back({digit.var, digit.lower * cut, digit.extent / cut, 1});
      }
    }
    for (const Digit& digit : low) below += digit.scale * (digit.extent - 1);
    if (below >= c) return false;
    for (Digit digit : quotient ? high : low) {
      if (!is_small(digit.scale * scale)) return false;
      digit.scale *= scale;
      if (digit.extent > 1 && digit.scale != 0) sum.digits.push_back(digit);
    }
    int64_t constant = quotient ? inner.constant / c : lowest;
    if (!is_small(constant * scale)) return false;
    sum.constant += constant * scale;
    return is_small(sum.constant);
  }

  const Counters& inputs_;
  const Bindings* bindings_;
};

/// Digits grouped by variable, the lower ones first.
using AllDigits = InlineVector<Digit, 24>;
AllDigits by_variable(const std::vector<DigitSum>& sums) {
  AllDigits all;
  for (const DigitSum& sum : sums) all.append(sum.digits.begin(), sum.digits.end());
  std::ranges::sort(all, [](const Digit& a, const Digit& b) {
    return a.var != b.var ? std::less<>()(a.var, b.var) : a.lower < b.lower;
  });
  return all;
}

bool fits_type(const DigitSum& sum, const Expr& e) {
  int64_t low = sum.constant, high = sum.constant;
  for (const Digit& digit : sum.digits) {
    int64_t reach = digit.scale * (digit.extent - 1);
    if (!is_small(reach)) return false;
    (reach < 0 ? low : high) += reach;
  }
  return e.dtype().is_int() && e.dtype().bits >= 32 && is_small(low) && is_small(high);
}

/// Whether each scale is what the digits below it span, starting with the least significant digit.
bool is_contiguous(Digits& digits) {
  std::ranges::sort(digits, [](const Digit& a, const Digit& b) { return a.scale < b.scale; });
  for (size_t i = 1; i < digits.size(); ++i) {
    if (digits[i].scale != digits[i - 1].scale * digits[i - 1].extent) return false;
  }
  return true;
}

}  // namespace

bool add_counter(Counters& counters, const Ref<Var>& var, const Expr& min, const Expr& extent) {
  const IntImm *start = min.as<IntImm>(), *count = extent.as<IntImm>();
  if (!start || !count || start->value != 0 || count->value < 1 || !is_small(count->value)) return false;
  counters.push_back({var.get(), count->value});
  return true;
}

std::optional<Counters> counters_of(const IterDomains& inputs) {
  Counters result;
  for (const auto& [loop_var, range] : inputs) {
    if (!add_counter(result, loop_var, range->min, range->extent)) return std::nullopt;
  }
  return result;
}

std::optional<std::vector<DigitSum>> independent_digits(const std::vector<Expr>& exprs, const IterDomains& inputs) {
  auto counters = counters_of(inputs);
  return counters ? independent_digits(exprs, *counters) : std::nullopt;
}

namespace {

bool read_digits(const Expr& e, Reader& reader, DigitSum& sum) {
  return e.depth() <= kDeepestDigits && reader.read(e, 1, sum) && fits_type(sum, e);
}

/// Whether the digits are independent: no two digits of one variable overlap.
bool are_independent(const std::vector<DigitSum>& sums) {
  const AllDigits all = by_variable(sums);
  for (size_t i = 1; i < all.size(); ++i) {
    if (all[i].var == all[i - 1].var && all[i].lower < all[i - 1].lower * all[i - 1].extent) return false;
  }
  return true;
}

}  // namespace

std::optional<std::vector<DigitSum>> independent_digits(const std::vector<Expr>& exprs, const Counters& inputs) {
  Reader reader(inputs);
  std::vector<DigitSum> sums(exprs.size());
  for (size_t i : indices_of(exprs)) {
    if (!read_digits(exprs[i], reader, sums[i])) return std::nullopt;
  }
  if (!are_independent(sums)) return std::nullopt;
  return sums;
}

bool plainly_one_to_one(const std::vector<Expr>& values, const IterDomains& inputs) {
  auto counters = counters_of(inputs);
  return counters && plainly_one_to_one(values, *counters);
}

bool plainly_one_to_one(const std::vector<Expr>& values, const Counters& inputs) {
  return injectivity_of(values, inputs) == Injectivity::kYes;
}

Injectivity injectivity_of(const std::vector<Expr>& values, const Counters& inputs) {
  auto sums = independent_digits(values, inputs);
  if (!sums) return Injectivity::kUnknown;
  const AllDigits all = by_variable(*sums);
  size_t next = 0;
  // The digits of each variable give it back.
  for (const auto& [loop_var, extent] : inputs) {
    auto it = find_if(all, [&](const Digit& digit) { return digit.var == loop_var; });
    int64_t span = 1;
    for (; it != all.end() && it->var == loop_var; ++it, ++next) {
      if (it->lower != span) return Injectivity::kNo;  // values of the missing digit collide
      span *= it->extent;
    }
    if (span != extent) return Injectivity::kNo;
  }
  for (DigitSum& sum : *sums) {
    if (!is_contiguous(sum.digits)) return Injectivity::kUnknown;
    if (!sum.digits.empty() && sum.digits.front().scale != 1) return Injectivity::kUnknown;
  }
  return next == all.size() ? Injectivity::kYes : Injectivity::kUnknown;
}

std::optional<Box> plain_box(const Region& region, const IterDomains& inputs) {
  auto counters = counters_of(inputs);
  return counters ? plain_box(region, *counters) : std::nullopt;
}

namespace {

/// The starts of the ranges by their digits; nothing where a range has no constant extent.
std::optional<std::vector<DigitSum>> digits_of_starts(const Region& region, const Counters& inputs) {
  std::vector<Expr> starts;
  starts.reserve(region.size());
  for (const Ref<Range>& range : region) {
    const IntImm* extent = range->extent.as<IntImm>();
    if (!extent || extent->value < 1 || !is_small(extent->value)) return std::nullopt;
    starts.push_back(range->min);
  }
  return independent_digits(starts, inputs);
}

/// Returns the least and the greatest value, extended by `extent` - 1. Removes the terms from the sum.
Reach reach_of(DigitSum& sum, int64_t extent) {
  Reach reach{std::move(sum.fixed), sum.constant, sum.constant + extent - 1};
  for (const Digit& digit : sum.digits) {
    (digit.scale < 0 ? reach.first : reach.last) += digit.scale * (digit.extent - 1);
  }
  return reach;
}

IntSet hull_of(DigitSum& sum, const Ref<Range>& range) {
  Reach reach = reach_of(sum, range->extent.as<IntImm>()->value);
  Expr base;
  for (const auto& [value, scale] : reach.fixed) {
    Expr term = scale == 1 ? value : value * scale;
    base = base.defined() ? base + term : term;
  }
  DataType dtype = range->min.dtype();
  auto end = [&](int64_t offset) {
    if (!base.defined()) return Expr(int_imm(dtype, offset));
    return offset == 0 ? base : base + int_imm(dtype, offset);
  };
  Expr low = end(reach.first);
  return reach.first == reach.last ? IntSet::point(low) : IntSet::interval(low, end(reach.last));
}

/// Ranges of the extent that begin at all values of the sum: neighbors touch, the lowest digit moving the start by at
/// most the extent.
bool is_dense(DigitSum& sum, int64_t extent) {
  if (!is_contiguous(sum.digits)) return false;
  return sum.digits.empty() || (sum.digits.front().scale >= 1 && sum.digits.front().scale <= extent);
}

/// 0 where it is no constant, or no usual one.
int64_t extent_of(const Ref<Range>& range) {
  const IntImm* extent = range->extent.as<IntImm>();
  return extent && extent->value >= 1 && is_small(extent->value) ? extent->value : 0;
}

}  // namespace

namespace {

/// Terms that both sides have are as large on both; of the others, the inner side's are taken to run over all that the
/// variables around can make of them.
bool is_inside(const Reach& inner, const Reach& outer, Reader& around) {
  DigitSum rest;
  InlineVector<bool, 4> met;
  for (size_t i = 0; i < outer.fixed.size(); ++i) met.push_back(false);
  for (const FixedTerm& term : inner.fixed) {
    size_t same = 0;
    auto is_same = [&](const FixedTerm& other) {
      return other.scale == term.scale && identical(other.value, term.value) &&
             effect_of(term.value) != Effect::kUpdateState;
    };
    while (same < met.size() && (met[same] || !is_same(outer.fixed[same]))) ++same;
    if (same < met.size()) {
      met[same] = true;
    } else if (term.value.depth() > kDeepestDigits || !around.read(term.value, term.scale, rest)) {
      return false;
    }
  }
  if (!rest.fixed.empty() || is_contained(met, false)) return false;
  Reach more = reach_of(rest, 1);
  return is_small(more.first) && is_small(more.last) && inner.first + more.first >= outer.first &&
         inner.last + more.last <= outer.last;
}

}  // namespace

bool is_inside(const std::vector<Reach>& inner, const std::vector<Reach>& outer, const Counters& around) {
  Reader reader(around);
  return std::ranges::equal(inner, outer, [&](const Reach& a, const Reach& b) { return is_inside(a, b, reader); });
}

std::optional<std::vector<Reach>> plain_reach(const Region& region, const Bindings& bindings, const Counters& inputs) {
  Reader reader(inputs, &bindings);
  std::vector<Reach> result;
  result.reserve(region.size());
  for (const Ref<Range>& range : region) {
    DigitSum sum;
    int64_t extent = extent_of(range);
    if (extent == 0 || !read_digits(range->min, reader, sum)) return std::nullopt;
    result.push_back(reach_of(sum, extent));
  }
  return result;
}

std::optional<std::vector<Reach>> plain_cover(const Region& region, const std::vector<Expr>& others,
                                              const Bindings& bindings, const Counters& inputs) {
  Reader reader(inputs, &bindings);
  std::vector<DigitSum> sums(region.size() + others.size());
  for (size_t i : indices_of(sums)) {
    if (!read_digits(i < region.size() ? region[i]->min : others[i - region.size()], reader, sums[i])) {
      return std::nullopt;
    }
  }
  if (!are_independent(sums)) return std::nullopt;
  std::vector<Reach> result;
  result.reserve(sums.size());
  for (size_t i : indices_of(sums)) {
    int64_t extent = i < region.size() ? extent_of(region[i]) : 1;
    if (extent == 0 || !is_dense(sums[i], extent)) return std::nullopt;
    result.push_back(reach_of(sums[i], extent));
  }
  return result;
}

std::optional<Box> plain_hull(const Region& region, const Counters& inputs) {
  auto sums = digits_of_starts(region, inputs);
  if (!sums) return std::nullopt;
  Box box;
  box.reserve(region.size());
  for (size_t d : indices_of(region)) box.push_back(hull_of((*sums)[d], region[d]));
  return box;
}

std::optional<Box> plain_box(const Region& region, const Counters& inputs) {
  auto sums = digits_of_starts(region, inputs);
  if (!sums) return std::nullopt;
  Box box;
  box.reserve(region.size());
  for (size_t d : indices_of(region)) {
    DigitSum& sum = (*sums)[d];
    if (!is_dense(sum, region[d]->extent.as<IntImm>()->value)) return std::nullopt;
    box.push_back(hull_of(sum, region[d]));
  }
  return box;
}

}  // namespace tilewright::arith
