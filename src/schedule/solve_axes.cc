#include "schedule/solve_axes.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <limits>
#include <tuple>

#include "analysis/block_facts.h"
#include "ir/build.h"
#include "ir/substitute.h"

namespace tilewright::schedule {
namespace {

using arith::IntSet;

/// Splits a sum into terms.
void collect_terms(const Expr& e, bool negative, std::vector<Term>& terms) {
  if (const Add* sum = e.as<Add>()) {
    collect_terms(sum->a, negative, terms);
    collect_terms(sum->b, negative, terms);
  } else if (const Sub* difference = e.as<Sub>()) {
    collect_terms(difference->a, negative, terms);
    collect_terms(difference->b, !negative, terms);
  } else {
    terms.push_back({e, negative});
  }
}

/// index = axis * scale + offset, or offset - axis * scale, where the offset depends on no axis. Terms of other axes
/// add a value in [0, slack].
struct Solved {
  int axis = -1;
  int64_t scale = 1;
  bool mirrored = false;
  Expr offset;
  Expr slack;  ///< null: 0
};

int axis_number(const Block& block, const Expr& e) {
  for (size_t i = 0; i < block.iter_vars.size(); ++i) {
    if (e == block.iter_vars[i]->var) return static_cast<int>(i);
  }
  return -1;
}

struct Scaled {
  int64_t scale;
  int axis;
  bool negative;
};

/// Writes an index as a sum of scaled axes and a remaining term. Returns nothing if it has another form.
std::optional<std::vector<Scaled>> axes_in(const Block& block, const Expr& index, Expr& rest) {
  std::vector<Scaled> scaled;
  rest = zero(index.dtype());
  for (const auto& [term, negative] : terms_of(index)) {
    int axis = axis_number(block, term);
    int64_t scale = 1;
    if (const Mul* product = term.as<Mul>(); product && const_int(product->b)) {
      axis = axis_number(block, product->a);
      scale = *const_int(product->b);
    }
    if (axis >= 0 && scale != 0 && scale != std::numeric_limits<int64_t>::min()) {
      scaled.push_back({std::abs(scale), axis, negative != (scale < 0)});
    } else if (uses_any_var(term, [&](const Ref<Var>& v) { return axis_number(block, v) >= 0; })) {
      return std::nullopt;
    } else {
      rest = negative ? rest - term : rest + term;
    }
  }
  return scaled;
}

/// Solves an index for the axis with the largest scale.
std::optional<Solved> solve_index(const Block& block, const Expr& index, arith::Analyzer& analyzer) {
  Solved best;
  auto found = axes_in(block, index, best.offset);
  if (!found) return std::nullopt;
  const std::vector<Scaled>& scaled = *found;
  if (scaled.empty()) return std::nullopt;
  auto largest =
      std::ranges::max_element(scaled, {}, [](const Scaled& each) { return std::pair(each.scale, each.axis); });
  best.scale = largest->scale;
  best.axis = largest->axis;
  best.mirrored = largest->negative;
  Expr slack = zero(index.dtype());
  for (const Scaled& other : scaled) {
    if (&other == &*largest) continue;
    if (other.axis == best.axis) return std::nullopt;
    const Ref<Range>& dom = block.iter_vars[other.axis]->dom;
    Expr low = dom->min * other.scale, reach = (dom->extent - 1) * other.scale;
    best.offset = other.negative ? best.offset - low - reach : best.offset + low;
    slack = slack + reach;
  }
  if (!is_const_int(slack, 0)) best.slack = analyzer.simplify(slack);
  return best;
}

/// An axis that is a mixed-radix digit of an index.
struct Digit {
  int axis;
  int64_t scale, extent;
};

/// Returns the digits of an index, the most significant first. Returns nothing if it has another form, or one digit.
std::optional<std::vector<Digit>> digits_of(const Block& block, const Expr& index, Expr& offset) {
  auto axes = axes_in(block, index, offset);
  if (!axes) return std::nullopt;
  std::vector<Digit> digits;
  for (const Scaled& one : *axes) {
    const Ref<Range>& dom = block.iter_vars[one.axis]->dom;
    auto extent = const_int(dom->extent);
    if (one.negative || !is_const_int(dom->min, 0) || !extent || *extent < 1) return std::nullopt;
    digits.push_back({one.axis, one.scale, *extent});
  }
  std::sort(digits.begin(), digits.end(),
            [](const Digit& a, const Digit& b) { return std::pair(a.scale, a.extent) > std::pair(b.scale, b.extent); });
  if (digits.size() < 2 || digits.back().scale != 1) return std::nullopt;
  for (size_t k = 0; k + 1 < digits.size(); ++k) {
    if (digits[k].scale != digits[k + 1].scale * digits[k + 1].extent) return std::nullopt;
  }
  return digits;
}

/// Reports the digits of the numbers [first, last], down to the first digit that varies. Returns whether any is known.
bool solve_digits(const std::vector<Digit>& digits, const Expr& first, const Expr& last, arith::Analyzer& analyzer,
                  const std::function<void(int, IntSet)>& found) {
  for (const Digit& digit : digits) {
    Expr low = floordiv(first, digit.scale), high = floordiv(last, digit.scale);
    const bool is_point = analyzer.can_prove_equal(low, high);
    const bool is_top = &digit == &digits.front();
    if (!is_point && (is_top || digit.scale != 1)) return !is_top;
    if (!is_top) std::tie(low, high) = std::pair(floormod(low, digit.extent), floormod(high, digit.extent));
    low = analyzer.simplify(low);
    found(digit.axis, is_point ? IntSet::point(low) : IntSet::interval(low, analyzer.simplify(high)));
    if (!is_point) break;
  }
  return true;
}

/// A set of values of an axis, whose bounds may depend on other axes.
struct Solution {
  int axis;
  IntSet set;
};

/// Solves first <= index <= last for one axis without a scale, in terms of the other axes: v0 + v1 for v1 in
/// [first - v0, last - v0], and v0 - v1 for v1 in [v0 - last, v0 - first]. Selects the last axis with a positive sign,
/// or else the last one. Returns nothing if an axis is a reduction axis, whose steps would be distributed over
/// iterations.
std::optional<Solution> solve_by_others(const Block& block, const Expr& index, const Expr& first, const Expr& last,
                                        arith::Analyzer& analyzer) {
  Expr rest;
  const auto scaled = axes_in(block, index, rest);
  if (!scaled) return std::nullopt;
  const Scaled* selected = nullptr;
  for (const Scaled& each : *scaled) {
    if (!analysis::is_data_parallel(block.iter_vars[each.axis])) return std::nullopt;
    auto rank = [](const Scaled& s) { return std::pair(!s.negative, s.axis); };
    if (each.scale == 1 && (!selected || rank(each) > rank(*selected))) selected = &each;
  }
  if (!selected) return std::nullopt;
  for (const Scaled& other : *scaled) {
    if (&other == selected) continue;
    if (other.axis == selected->axis) return std::nullopt;
    const Expr term = block.iter_vars[other.axis]->var * other.scale;
    rest = other.negative ? rest - term : rest + term;
  }
  const Expr min = selected->negative ? rest - last : first - rest,
             max = selected->negative ? rest - first : last - rest;
  IntSet set = IntSet::interval(analyzer.simplify(min), analyzer.simplify(max));
  if (analyzer.can_prove_equal(first, last)) set = IntSet::point(set.min);
  return Solution{selected->axis, std::move(set)};
}

/// Whether the set holds all values of the axis.
bool holds_domain(const IntSet& set, const Ref<Range>& domain, arith::Analyzer& analyzer) {
  return arith::proves_subset(IntSet::of_range(domain), set, analyzer);
}

}  // namespace

std::vector<Term> terms_of(const Expr& sum) {
  std::vector<Term> terms;
  collect_terms(sum, false, terms);
  return terms;
}

AxisSets solve_axes(const Block& block, const Ref<BufferRegion>& region, const arith::Box& box, Fit fit,
                    arith::Analyzer& analyzer) {
  AxisSets sets(block.iter_vars.size());
  auto restrict_axis = [&](int axis, IntSet set) {
    IntSet& old = sets[axis];
    old = old.is_everything() ? std::move(set) : arith::intersect(old, set, analyzer);
  };
  for (size_t d = 0; d < box.size(); ++d) {
    if (!box[d].is_bounded()) continue;
    const Range& range = *region->region[d];
    Expr index = range.min, first = box[d].min, last = box[d].max;
    // If e is between a * c and b * c + c - 1, e // c is between a and b.
    for (const FloorDiv* quotient = index.as<FloorDiv>(); quotient; quotient = index.as<FloorDiv>()) {
      auto divisor = const_int(quotient->b);
      if (!divisor || *divisor < 1 || !is_const_int(range.extent, 1)) break;
      first = first * *divisor;
      last = last * *divisor + (*divisor - 1);
      index = Expr(quotient->a);
    }
    if (is_const_int(range.extent, 1)) {
      Expr offset;
      auto digits = digits_of(block, index, offset);
      if (digits && solve_digits(*digits, first - offset, last - offset, analyzer, restrict_axis)) continue;
    }
    std::optional<Solved> solved = solve_index(block, index, analyzer);
    // If the length of the region depends on axes, its end is unknown.
    bool varies = uses_any_var(range.extent, [&](const Ref<Var>& v) { return axis_number(block, v) >= 0; });
    if (!solved || varies) continue;
    // The region of an instance is [axis * scale + offset, ... + reach].
    Expr reach = range.extent - 1;
    if (solved->slack.defined()) reach = reach + solved->slack;
    // Bounds of axis * scale: the region begins there at least, and at most.
    Expr low = first - solved->offset, high = last - solved->offset;
    (fit == Fit::kTouch ? low : high) = (fit == Fit::kTouch ? low : high) - reach;
    if (solved->mirrored) std::tie(low, high) = std::pair(zero(high.dtype()) - high, zero(low.dtype()) - low);
    Expr min = floordiv(low + (solved->scale - 1), solved->scale), max = floordiv(high, solved->scale);
    IntSet set = IntSet::interval(analyzer.simplify(min), analyzer.simplify(max));
    if (analyzer.can_prove_equal(set.min, set.max)) set = IntSet::point(set.min);
    // If other axes add more than one step of this axis, no single value of it covers a complete part of the box.
    if (fit == Fit::kWithin && solved->slack.defined() &&
        !analyzer.can_prove_less(solved->slack, constant(solved->slack.dtype(), solved->scale)) &&
        !holds_domain(set, block.iter_vars[solved->axis]->dom, analyzer)) {
      if (auto exact = solve_by_others(block, index, first, last - (range.extent - 1), analyzer)) {
        restrict_axis(exact->axis, std::move(exact->set));
        continue;
      }
    }
    restrict_axis(solved->axis, std::move(set));
  }
  return sets;
}

}  // namespace tilewright::schedule
