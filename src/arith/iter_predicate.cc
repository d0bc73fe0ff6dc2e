#include <algorithm>

#include "arith/iter_reader.h"
#include "ir/build.h"
#include "ir/conjunction.h"
#include "ir/substitute.h"

namespace tilewright::arith {

void IterReader::read_predicate(const Expr& predicate) {
  std::vector<Expr> parts = conjuncts(predicate);
  // What mentions no input decides about all iterations alike.
  std::erase_if(parts, [&](const Expr& part) { return !has_input(part); });
  // Constraints on few loops first: those on more contain them.
  auto loops = [&](const Expr& part) {
    size_t count = 0;
    for (const auto& input : inputs_) count += uses_var(part, input.first);
    return count;
  };
  std::stable_sort(parts.begin(), parts.end(), [&](const Expr& a, const Expr& b) { return loops(a) < loops(b); });
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

/// b - a >= slack
bool IterReader::read_order(const Expr& a, const Expr& b, int64_t slack) {
  if (!a.dtype().is_int()) return false;
  size_t errors = errors_.size();
  auto left = read(a), right = read(b);
  if (!left || !right || errors_.size() > errors) {
    errors_.resize(errors);
    return false;
  }
  IterSumExpr sum = sums_.add(std::move(*right), *left, true);
  sum.base = factors_.sub(sum.base, constant(sum.base.dtype(), slack));
  if (sum.args.empty()) return const_int(sum.base).value_or(0) >= 0;  // the loops have no part in it
  bool upper = !factors_.positive(sum.args[0].scale);                 // -(...) + base >= 0
  if (upper) {
    Expr base = sum.base;
    sum = sums_.scaled(std::move(sum), constant(sum.base.dtype(), int64_t{-1}));
    sum.base = base;
  }
  Expr base = sum.base;
  sum.base = zero(base.dtype());
  use_constraints(sum);
  // What the constraints took out of the sum: its value where all iterators are 0.
  Expr start = sum.base;
  sum.base = zero(base.dtype());
  sums_.join_digits(sum);
  if (!sums_.make_compact(sum)) return false;
  Expr scale = sum.args.back().scale;
  for (IterSplitExpr& split : sum.args) {
    if (!factors_.divides(scale, split.scale)) return false;
    split.scale = factors_.div(split.scale, scale);
  }
  // upper: start + scale * pattern <= base; lower: start + scale * pattern >= -base
  Expr limit = upper ? factors_.div(factors_.sub(base, start), scale)
                     : factors_.ceil_div(factors_.sub(zero(base.dtype()), factors_.add(base, start)), scale);
  return constrain(sum, upper, limit);
}

bool IterReader::constrain(const IterSumExpr& pattern, bool upper, const Expr& limit) {
  Expr last = factors_.sub(sums_.extent_of(pattern), one(pattern.base.dtype()));
  Analyzer& analyzer = factors_.analyzer();
  if (upper && analyzer.can_prove_less_equal(last, limit)) return true;
  if (!upper && analyzer.can_prove_less_equal(limit, zero(limit.dtype()))) return true;
  Expr low = upper ? zero(limit.dtype()) : limit, high = upper ? limit : last;
  // The pattern is cut, not stretched, and something is left of it.
  bool inside = analyzer.can_prove_less_equal(zero(low.dtype()), low) && analyzer.can_prove_less_equal(high, last) &&
                analyzer.can_prove_less_equal(low, high);
  if (!inside && !cuts_symbolically(low, high, last)) return false;
  IterMark mark;
  mark.sum = pattern;
  mark.sum->base = factors_.sub(zero(low.dtype()), low);
  mark.extent = factors_.add(factors_.sub(high, low), one(low.dtype()));
  mark.is_predicated = true;
  constraints_.push_back({pattern, std::make_shared<IterMark>(std::move(mark)), low});
  return true;
}

/// i0 * 32 + i1 < n where i0 runs over ceildiv(n, 32): the limit n - 1 is below what the sum reaches.
bool IterReader::cuts_symbolically(const Expr& low, const Expr& high, const Expr& last) {
  Analyzer& analyzer = factors_.analyzer();
  // A range that is not empty is part of the contract: the loops run, so the limit is not below 0 for their sake.
  return factors_.is_zero(low) && analyzer.can_prove_less_equal(high, last) && !const_int(high);
}

void IterReader::use_constraints(IterSumExpr& sum) {
  for (const Constraint& constraint : constraints_) {
    const std::vector<IterSplitExpr>& pattern = constraint.pattern.args;
    auto find = [&](const IterSplitExpr& wanted, const Expr& scale) {
      for (size_t i = 0; i < sum.args.size(); ++i) {
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
    for (size_t at : found) sum.args.erase(sum.args.begin() + static_cast<std::ptrdiff_t>(at));
    Expr unit = one(scale.dtype());
    sum.args.push_back({constraint.mark, unit, constraint.mark->extent, scale});
    sum.base = factors_.add(sum.base, factors_.mul(constraint.low, scale));
  }
}

}  // namespace tilewright::arith
