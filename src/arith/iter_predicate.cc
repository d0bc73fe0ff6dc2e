#include <algorithm>

#include "arith/iter_reader.h"
#include "ir/build.h"
#include "ir/conjunction.h"
#include "ir/substitute.h"
#include "support/ranges.h"

namespace tilewright::arith {

void IterReader::read_predicate(const Expr& predicate) {
  std::vector<Expr> parts = conjuncts(predicate);
  // Drop conjuncts without loop variables: they hold for all iterations or for none.
  std::erase_if(parts, [&](const Expr& part) { return !has_input(part); });
  // Fewest loops first: the iterator of a bound on i + j may occur in a bound on i + j + k.
  auto loops = [&](const Expr& part) {
    size_t count = 0;
    for (const auto& input : inputs_) count += uses_var(part, input.first);
    return count;
  };
  std::ranges::stable_sort(parts, [&](const Expr& a, const Expr& b) { return loops(a) < loops(b); });
  for (const Expr& part : parts) {
    if (!read_comparison(part) && checked_) fail("a part of the predicate is not a bound of a sum of the loops");
  }
}

bool IterReader::read_comparison(const Expr& e) {
  if (const LT* c = e.as<LT>()) return read_order(c->a, c->b, 1);
  if (const LE* c = e.as<LE>()) return read_order(c->a, c->b, 0);
  if (const GT* c = e.as<GT>()) return read_order(c->b, c->a, 1);
  if (const GE* c = e.as<GE>()) return read_order(c->b, c->a, 0);
  if (const EQ* c = e.as<EQ>()) return read_order(c->a, c->b, 0) && read_order(c->b, c->a, 0);
  return false;
}

bool IterReader::read_order(const Expr& a, const Expr& b, int64_t slack) {
  std::optional<IterSumExpr> sum = difference(a, b, slack);
  if (!sum) return false;
  // The loops cancel. A symbolic difference holds for all iterations or for none, and the domain is not empty.
  if (sum->args.empty()) return const_int(sum->base).value_or(0) >= 0;
  const std::optional<Bound> bound = as_bound(std::move(*sum));
  return bound && add_constraint(*bound);
}

/// Returns b - a - slack as a sum of splits; nothing if a or b is none.
std::optional<IterSumExpr> IterReader::difference(const Expr& a, const Expr& b, int64_t slack) {
  if (!a.dtype().is_int()) return std::nullopt;
  const size_t num_errors = errors_.size();
  auto left = read(a), right = read(b);
  if (!left || !right || errors_.size() > num_errors) {
    errors_.resize(num_errors);
    return std::nullopt;
  }
  IterSumExpr sum = sums_.add(std::move(*right), *left, true);
  sum.base = factors_.sub(sum.base, constant(sum.base.dtype(), slack));
  return sum;
}

/// Writes sum >= 0 as a bound of a pattern. With the base of the sum, and the value `start` of the other terms where
/// all iterators are 0:
///   upper: start + scale * pattern <= base      lower: start + scale * pattern >= -base
std::optional<IterReader::Bound> IterReader::as_bound(IterSumExpr sum) {
  const Expr base = sum.base;
  const bool is_upper = !factors_.positive(sum.args[0].scale);
  if (is_upper) sum = sums_.scaled(std::move(sum), constant(base.dtype(), int64_t{-1}));
  sum.base = zero(base.dtype());
  use_constraints(sum);
  const Expr start = sum.base;  // added by use_constraints()
  sum.base = zero(base.dtype());
  sums_.join_digits(sum);
  if (!sums_.make_compact(sum)) return std::nullopt;
  const Expr scale = sum.args.back().scale;
  for (IterSplitExpr& split : sum.args) {
    if (!factors_.divides(scale, split.scale)) return std::nullopt;
    split.scale = factors_.div(split.scale, scale);
  }
  Expr limit = is_upper ? factors_.div(factors_.sub(base, start), scale)
                        : factors_.ceil_div(factors_.sub(zero(base.dtype()), factors_.add(base, start)), scale);
  return Bound{std::move(sum), is_upper, std::move(limit)};
}

bool IterReader::add_constraint(const Bound& bound) {
  const auto& [pattern, is_upper, limit] = bound;
  Expr last = factors_.sub(sums_.extent_of(pattern), one(pattern.base.dtype()));
  Analyzer& analyzer = factors_.analyzer();
  if (is_upper && analyzer.can_prove_less_equal(last, limit)) return true;
  if (!is_upper && analyzer.can_prove_less_equal(limit, zero(limit.dtype()))) return true;
  Expr low = is_upper ? zero(limit.dtype()) : limit, high = is_upper ? limit : last;
  // Require 0 <= low <= high <= last: the bound shrinks the range and does not empty it.
  bool inside = analyzer.can_prove_less_equal(zero(low.dtype()), low) && analyzer.can_prove_less_equal(high, last) &&
                analyzer.can_prove_less_equal(low, high);
  if (!inside && !is_symbolic_upper_bound(low, high, last)) return false;
  IterMark mark;
  mark.sum = pattern;
  mark.sum->base = factors_.sub(zero(low.dtype()), low);
  mark.extent = factors_.add(factors_.sub(high, low), one(low.dtype()));
  mark.is_predicated = true;
  constraints_.push_back({pattern, std::make_shared<IterMark>(std::move(mark)), low});
  return true;
}

/// Returns whether a symbolic upper bound shrinks the range: i0 * 32 + i1 < n with i0 < ceildiv(n, 32).
bool IterReader::is_symbolic_upper_bound(const Expr& low, const Expr& high, const Expr& last) {
  Analyzer& analyzer = factors_.analyzer();
  // low <= high cannot be proved for a symbolic n: detect_iter_map() assumes that the domain is not empty.
  return factors_.is_zero(low) && analyzer.can_prove_less_equal(high, last) && !const_int(high);
}

void IterReader::use_constraints(IterSumExpr& sum) {
  for (const Constraint& constraint : constraints_) {
    const std::vector<IterSplitExpr>& pattern = constraint.pattern.args;
    auto find = [&](const IterSplitExpr& wanted, const Expr& scale) {
      for (size_t i : indices_of(sum.args)) {
        if (sums_.same_split(sum.args[i], wanted) && (!scale.defined() || factors_.equal(sum.args[i].scale, scale)))
          return i;
      }
      return sum.args.size();
    };
    size_t least = find(pattern.back(), {});
    if (least == sum.args.size()) continue;
    Expr scale = sum.args[least].scale;
    std::vector<size_t> found;
    for (const IterSplitExpr& split : pattern) {
      size_t at = find(split, factors_.mul(split.scale, scale));
      if (at == sum.args.size()) break;
      found.push_back(at);
    }
    if (found.size() != pattern.size()) continue;
    std::sort(found.rbegin(), found.rend());
    for (size_t at : found) erase_at(sum.args, at);
    Expr unit = one(scale.dtype());
    sum.args.push_back({constraint.mark, unit, constraint.mark->extent, scale});
    sum.base = factors_.add(sum.base, factors_.mul(constraint.low, scale));
  }
}

}  // namespace tilewright::arith
