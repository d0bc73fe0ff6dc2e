#include "arith/iter_sum.h"

#include "support/ranges.h"

namespace tilewright::arith {

void IterSums::add_split(IterSumExpr& sum, const IterSplitExpr& split) {
  for (size_t i = 0; i < sum.args.size(); ++i) {
    if (!same_split(sum.args[i], split)) continue;
    sum.args[i].scale = f_.add(sum.args[i].scale, split.scale);
    if (f_.is_zero(sum.args[i].scale)) erase_at(sum.args, i);
    return;
  }
  sum.args.push_back(split);
}

IterSumExpr IterSums::add(IterSumExpr a, const IterSumExpr& b, bool negate) {
  for (IterSplitExpr split : b.args) {
    if (negate) split.scale = f_.sub(zero(split.scale.dtype()), split.scale);
    add_split(a, split);
  }
  a.base = negate ? f_.sub(a.base, b.base) : f_.add(a.base, b.base);
  return a;
}

IterSumExpr IterSums::scaled(IterSumExpr sum, const Expr& factor) {
  for (IterSplitExpr& split : sum.args) split.scale = f_.mul(split.scale, factor);
  sum.base = f_.mul(sum.base, factor);
  return sum;
}

void IterSums::join_digits(IterSumExpr& sum) {
  for (size_t i = 0; i < sum.args.size(); ++i) {
    for (size_t j = 0; j < sum.args.size(); ++j) {
      IterSplitExpr& low = sum.args[i];
      const IterSplitExpr& high = sum.args[j];
      if (i == j || low.source != high.source) continue;
      if (!f_.equal(high.lower_factor, f_.mul(low.lower_factor, low.extent))) continue;
      if (!f_.equal(high.scale, f_.mul(low.scale, low.extent))) continue;
      low.extent = f_.mul(low.extent, high.extent);
      erase_at(sum.args, j);
      return join_digits(sum);
    }
  }
}

std::optional<Expr> IterSums::reach(const IterSumExpr& sum) {
  Expr total = zero(sum.base.dtype());
  for (const IterSplitExpr& split : sum.args) {
    if (!f_.non_negative(split.scale)) return std::nullopt;
    total = f_.add(total, f_.mul(split.scale, f_.sub(split.extent, one(split.extent.dtype()))));
  }
  return total;
}

bool IterSums::make_compact(IterSumExpr& sum) {
  std::vector<IterSplitExpr> open = std::move(sum.args), ordered;
  sum.args.clear();
  size_t least = open.size();
  for (size_t i = 0; i < open.size(); ++i) {
    if (least == open.size() || comes_below(open[i], open[least])) least = i;
  }
  // The other scales are products of this one and of extents, and extents are positive: the loops run.
  if (!open.empty() && !f_.positive(open[least].scale)) {
    sum.args = std::move(open);
    return false;
  }
  while (!open.empty()) {
    ordered.push_back(open[least]);
    erase_at(open, least);
    Expr wanted = f_.mul(ordered.back().scale, ordered.back().extent);
    least = open.size();
    for (size_t i = 0; i < open.size(); ++i) {
      if (!f_.equal(open[i].scale, wanted)) continue;
      if (least == open.size() || f_.is_one(open[i].extent)) least = i;
    }
    if (least == open.size() && !open.empty()) {
      append_range(ordered, open);
      sum.args = std::move(ordered);
      return false;
    }
  }
  sum.args.assign(ordered.rbegin(), ordered.rend());
  return true;
}

/// Constants before expressions, smaller scales before larger ones; a constant 1 comes before all. Of equal scales,
/// that of a single iteration: a condition leaves i1 < 1 of i0 + i1.
bool IterSums::comes_below(const IterSplitExpr& a, const IterSplitExpr& b) {
  auto x = const_int(a.scale), y = const_int(b.scale);
  if (x && y && *x == *y) return f_.is_one(a.extent) && !f_.is_one(b.extent);
  if (x && y) return *x < *y;
  if (x || y) return x.has_value();
  return f_.divides(a.scale, b.scale) && !f_.equal(a.scale, b.scale);
}

Expr IterSums::extent_of(const IterSumExpr& sum) {
  Expr extent = one(sum.base.dtype());
  for (const IterSplitExpr& split : sum.args) extent = f_.mul(extent, split.extent);
  return extent;
}

/// The sum as one split of scale 1, fused into a new iterator if it has several; its base must be 0.

}  // namespace tilewright::arith
