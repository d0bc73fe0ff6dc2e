#include "arith/iter_reader.h"

#include "arith/fingerprint.h"
#include "ir/build.h"
#include "ir/substitute.h"
#include "support/ranges.h"

namespace tilewright::arith {

IterReader::IterReader(const IterDomains& inputs, bool checked, bool keep_trivial, bool fuse_first, Analyzer& analyzer)
    : sums_(analyzer), factors_(sums_.factors()), inputs_(inputs), checked_(checked), fuse_first_(fuse_first) {
  for (const auto& [variable, range] : inputs) {
    if (!keep_trivial && is_const_int(range->extent, 1)) {
      values_[variable] = range->min;
      continue;
    }
    IterMark mark;
    mark.var = variable;
    mark.min = range->min;
    mark.extent = range->extent;
    marks_[variable] = std::make_shared<IterMark>(std::move(mark));
  }
}

bool IterReader::has_input(const Expr& e) {
  if (e.is<IntImm>()) return false;
  return uses_any_var(e, [&](const Ref<Var>& v) { return marks_.contains(v) || values_.contains(v); });
}

bool IterReader::fits(const IterSumExpr& sum, DataType type) {
  Analyzer& analyzer = factors_.analyzer();
  ConstIntBound reach = analyzer.const_int_bound(sum.base);
  for (const IterSplitExpr& split : sum.args) {
    ConstIntBound steps{0, analyzer.const_int_bound(split.extent).max_value};  // one too many: the last is enough
    reach = reach + steps * analyzer.const_int_bound(split.scale);
  }
  return reach.within(ConstIntBound::of_type(type));
}

std::optional<IterSumExpr> IterReader::read(const Expr& e) {
  if (e.is<IntImm>()) return of_base(e);
  if (e.is<Var>()) {
    if (auto* found = find_value(values_, e)) return of_base(*found);
    auto* known = find_value(marks_, e);
    if (!known) return of_base(e);
    const IterMarkPtr& mark = *known;
    return IterSumExpr{{{mark, one(e.dtype()), mark->extent, one(e.dtype())}}, mark->min};
  }
  const auto [left, right] = binary_operands(e);
  switch (e.kind()) {
    case Kind::kAdd:
    case Kind::kSub: {
      auto a = read(*left), b = read(*right);
      if (!a || !b) return std::nullopt;
      return sums_.add(std::move(*a), *b, e.is<Sub>());
    }
    case Kind::kMul: {
      auto a = read(*left), b = read(*right);
      if (!a || !b) return std::nullopt;
      if (!a->args.empty() && !b->args.empty()) return std::nullopt;
      return a->args.empty() ? sums_.scaled(std::move(*b), a->base) : sums_.scaled(std::move(*a), b->base);
    }
    case Kind::kFloorDiv:
    case Kind::kFloorMod: {
      auto a = read(*left), b = read(*right);
      if (!a || !b || !b->args.empty()) return std::nullopt;
      return divide(std::move(*a), b->base, e.is<FloorDiv>());
    }
    case Kind::kCast: {
      const Cast& cast = *e.as<Cast>();
      bool index = cast.dtype.is_int() && cast.value.dtype().is_int();
      bool extends = cast.dtype.bits >= cast.value.dtype().bits;
      auto inner = index && (extends || is_index(cast.dtype)) ? read(cast.value) : std::nullopt;
      if (!inner || (!extends && !fits(*inner, cast.dtype))) break;
      inner->base = tilewright::cast(cast.dtype, inner->base);
      return inner;
    }
    default:
      break;
  }
  if (!has_input(e)) return of_base(factors_.analyzer().simplify(e));
  return std::nullopt;
}

std::optional<IterSumExpr> IterReader::divide(IterSumExpr sum, const Expr& divisor, bool quotient) {
  // A division by 0 is never executed.
  if (factors_.is_zero(divisor) || !factors_.non_negative(divisor)) return std::nullopt;
  use_constraints(sum);
  sums_.join_digits(sum);
  divides_sums_ |= sum.args.size() > 1;
  if (fuse_first_ && sum.args.size() > 1) {
    auto split = as_one_split(sum);
    if (split && factors_.divides(divisor, split->extent)) return digits(*split, divisor, quotient);
  }
  // T1
  IterSumExpr whole = of_base(factors_.div(sum.base, divisor));
  IterSumExpr rest = of_base(factors_.mod(sum.base, divisor));
  for (const IterSplitExpr& split : sum.args) {
    if (factors_.divides(divisor, split.scale)) {
      whole.args.push_back(split);
      whole.args.back().scale = factors_.div(split.scale, divisor);
    } else {
      rest.args.push_back(split);
    }
  }
  auto finish = [&](const IterSumExpr& of_rest) {
    return quotient ? sums_.add(std::move(whole), of_rest, false) : of_rest;
  };
  auto top = sums_.reach(rest);
  if (top && factors_.less(factors_.add(*top, rest.base), divisor)) {
    return finish(quotient ? of_base(zero(divisor.dtype())) : rest);
  }
  if (auto parts = divide_by_groups(rest, divisor, quotient)) return finish(*parts);
  auto split = as_one_split(rest);
  if (!split) return std::nullopt;
  auto parts = digits(*split, divisor, quotient);
  return parts ? std::optional(finish(*parts)) : std::nullopt;
}

/// T2 with g the scale of one of the splits.
std::optional<IterSumExpr> IterReader::divide_by_groups(const IterSumExpr& rest, const Expr& divisor, bool quotient) {
  for (const IterSplitExpr& pivot : rest.args) {
    const Expr& g = pivot.scale;
    if (factors_.is_one(g) || !factors_.positive(g) || !factors_.divides(g, divisor)) continue;
    IterSumExpr high = of_base(factors_.div(rest.base, g)), low = of_base(factors_.mod(rest.base, g));
    for (const IterSplitExpr& split : rest.args) {
      if (factors_.divides(g, split.scale)) {
        high.args.push_back(split);
        high.args.back().scale = factors_.div(split.scale, g);
      } else {
        low.args.push_back(split);
      }
    }
    auto top = sums_.reach(low);
    if (!top || !factors_.less(factors_.add(*top, low.base), g)) continue;
    auto inner = divide(high, factors_.div(divisor, g), quotient);
    if (!inner) continue;
    if (quotient) return inner;
    return sums_.add(sums_.scaled(std::move(*inner), g), low, false);
  }
  return std::nullopt;
}

/// split // divisor or split % divisor, the scale being 1.
std::optional<IterSumExpr> IterReader::digits(IterSplitExpr split, const Expr& divisor, bool quotient) {
  if (!factors_.divides(divisor, split.extent)) {
    if (checked_) fail("a loop is divided by a number that does not divide its extent");
    // Without a check, only part of the last block may be reached. This is allowed for the top digit alone: a lower
    // digit carries into the next one.
    const bool is_top = factors_.equal(factors_.mul(split.lower_factor, split.extent), split.source->extent);
    if (!is_top) return std::nullopt;
    split.extent = factors_.mul(factors_.ceil_div(split.extent, divisor), divisor);
  }
  if (quotient) {
    split.lower_factor = factors_.mul(split.lower_factor, divisor);
    split.extent = factors_.div(split.extent, divisor);
  } else {
    split.extent = divisor;
  }
  return IterSumExpr{{split}, zero(divisor.dtype())};
}

/// The sum as one split of scale 1, fused into a new iterator if it has several; its base must be 0.
std::optional<IterSplitExpr> IterReader::as_one_split(IterSumExpr sum) {
  if (sum.args.size() == 1 && factors_.is_zero(sum.base) && factors_.is_one(sum.args[0].scale)) return sum.args[0];
  if (sum.args.empty() || !factors_.is_zero(sum.base)) return std::nullopt;
  if (!sums_.make_compact(sum) || !factors_.is_one(sum.args.back().scale)) return std::nullopt;
  IterMarkPtr mark = fused(sum);
  Expr unit = one(sum.base.dtype());
  return IterSplitExpr{mark, unit, mark->extent, unit};
}

/// One iterator for equal sums, so that their digits are seen to belong together.
IterMarkPtr IterReader::fused(const IterSumExpr& sum) {
  for (const IterMarkPtr& mark : fused_) {
    const std::vector<IterSplitExpr>& args = mark->sum->args;
    bool equal = args.size() == sum.args.size();
    for (size_t i = 0; equal && i < args.size(); ++i) {
      equal = sums_.same_split(args[i], sum.args[i]) && factors_.equal(args[i].scale, sum.args[i].scale);
    }
    if (equal) return mark;
  }
  IterMark mark;
  mark.extent = sums_.extent_of(sum);
  mark.sum = sum;
  fused_.push_back(std::make_shared<IterMark>(std::move(mark)));
  return fused_.back();
}

}  // namespace tilewright::arith
