// From index expressions and predicates to sums of splits (not for other layers).
//
// iter_reader.cc     expressions; a division (c q + r) // c or % follows theorems T1 and T2 of divide_constant.cc, and
//                    what these leave is fused into one iterator, which is then split
// iter_predicate.cc  conditions: a bound on a sum of loops makes one iterator of them, of a smaller extent
#pragma once

#include "arith/iter_sum.h"

namespace tilewright::arith {

class IterReader {
 public:
  using Marks = std::unordered_map<NodeRef, IterMarkPtr>;
  /// A condition low <= pattern <= high: the iterators of the pattern are those of the mark.
  struct Constraint {
    IterSumExpr pattern;  ///< compact, the least scale 1, base 0
    IterMarkPtr mark;
    Expr low;  ///< value of the pattern where the mark is 0
  };

  /// `keep_trivial`: inputs of extent 1 stay iterators. `fuse_first`: a dividend becomes one iterator wherever it can,
  /// also where a theorem divides only some of its terms. For i < 98 and j < 128, dividing (i * 128 + j) by 896 gives
  ///   i // 7                  by the theorem, which does not combine with (i * 128 + j) // 112 % 8
  ///   (i * 128 + j) // 896    with `fuse_first`: both are digits of the same iterator
  IterReader(const IterDomains& inputs, bool checked, bool keep_trivial, bool fuse_first, Analyzer& analyzer);

  /// Reads an expression as a sum of splits. Nothing if it is none; errors() may have the reason.
  std::optional<IterSumExpr> read(const Expr& e);
  /// Adds a constraint for each comparison of the conjunction. Other parts are errors if the map is checked.
  void read_predicate(const Expr& predicate);
  /// Replaces splits of the sum that are a multiple of a constraint's pattern by the iterator of the constraint.
  void use_constraints(IterSumExpr& sum);

  IterSums& sums() { return sums_; }
  Factors& factors() { return factors_; }
  std::vector<std::string>& errors() { return errors_; }
  const std::vector<Constraint>& constraints() const { return constraints_; }
  const Marks& marks() const { return marks_; }
  bool checked() const { return checked_; }
  /// Whether `fuse_first` might make a difference.
  bool divides_sums() const { return divides_sums_; }
  void fail(std::string why) { errors_.push_back(std::move(why)); }

 private:
  static IterSumExpr of_base(const Expr& base) { return {{}, base}; }
  bool has_input(const Expr& e);
  /// Whether all values of the sum are of the type.
  bool fits(const IterSumExpr& sum, DataType type);
  std::optional<IterSumExpr> divide(IterSumExpr sum, const Expr& divisor, bool quotient);
  std::optional<IterSumExpr> divide_by_groups(const IterSumExpr& rest, const Expr& divisor, bool quotient);
  std::optional<IterSumExpr> digits(IterSplitExpr split, const Expr& divisor, bool quotient);
  std::optional<IterSplitExpr> as_one_split(IterSumExpr sum);
  IterMarkPtr fused(const IterSumExpr& sum);

  bool read_comparison(const Expr& e);
  /// Adds the constraint b - a >= slack.
  bool read_order(const Expr& a, const Expr& b, int64_t slack);
  std::optional<IterSumExpr> difference(const Expr& a, const Expr& b, int64_t slack);
  /// pattern <= limit, or pattern >= limit
  struct Bound {
    IterSumExpr pattern;  ///< compact, the least scale 1, base 0
    bool is_upper;
    Expr limit;
  };
  std::optional<Bound> as_bound(IterSumExpr sum);
  bool add_constraint(const Bound& bound);
  bool is_symbolic_upper_bound(const Expr& low, const Expr& high, const Expr& last);

  IterSums sums_;
  Factors& factors_;
  const IterDomains& inputs_;
  const bool checked_, fuse_first_;
  bool divides_sums_ = false;
  std::unordered_map<NodeRef, Expr> values_;  ///< inputs of extent 1
  Marks marks_;                               ///< the other inputs
  std::vector<IterMarkPtr> fused_;
  std::vector<Constraint> constraints_;
  std::vector<std::string> errors_;
};

/// Returns why the sums are no map of the level, by mixed-radix digits (iter_check.cc): splits of one iterator whose
/// lower factors are the running products of the extents below them are independent, and reach every combination.
std::optional<std::string> problem_of(const std::vector<IterSumExpr>& indices, IterReader& reader, IterMapLevel level);

}  // namespace tilewright::arith
