// Arithmetic on sums of splits, the values of iteration maps (not for other layers).
#pragma once

#include "arith/iter_factor.h"
#include "arith/iter_map.h"

namespace tilewright::arith {

class IterSums {
 public:
  explicit IterSums(Analyzer& analyzer) : f_(analyzer) {}

  Factors& factors() { return f_; }
  bool same_split(const IterSplitExpr& a, const IterSplitExpr& b) {
    return a.source == b.source && f_.equal(a.lower_factor, b.lower_factor) && f_.equal(a.extent, b.extent);
  }
  IterSumExpr add(IterSumExpr a, const IterSumExpr& b, bool negate);
  IterSumExpr scaled(IterSumExpr sum, const Expr& factor);
  /// Neighboring digits of one iterator become one: (x // 8) * 8 + x % 8 is x.
  void join_digits(IterSumExpr& sum);
  /// Returns the largest value of the splits, whose least value is 0. Nothing if the scales do not allow to compute it.
  std::optional<Expr> reach(const IterSumExpr& sum);
  /// Orders the splits so that each scale is the product of scale and extent of the next; false if that cannot be.
  bool make_compact(IterSumExpr& sum);
  /// The product of the extents.
  Expr extent_of(const IterSumExpr& sum);

 private:
  void add_split(IterSumExpr& sum, const IterSplitExpr& split);
  bool comes_below(const IterSplitExpr& a, const IterSplitExpr& b);

  Factors f_;
};

}  // namespace tilewright::arith
