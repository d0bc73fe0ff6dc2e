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

  /// `keep_trivial`: inputs of extent 1 stay iterators. `fuse_first`: what is divided becomes one iterator wherever it
  /// can, also where a theorem would take a part of it alone. (98 x 128 loops fused: the quotient by 896 is that of the
  /// outer loop by 7, but digits of 112 are of both loops together, and go with the quotient by 896 of both.)
  IterReader(const IterDomains& inputs, bool checked, bool keep_trivial, bool fuse_first, Analyzer& analyzer);

  /// Nothing when the expression is no sum of splits; errors() may say why.
  std::optional<IterSumExpr> read(const Expr& e);
  /// Notes what the conjunction says of the inputs; parts that it cannot use are errors where the map is checked.
  void read_predicate(const Expr& predicate);
  /// Splits of the sum that are a multiple of a constraint's pattern become its iterator.
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
  IterSumExpr digits(IterSplitExpr split, const Expr& divisor, bool quotient);
  std::optional<IterSplitExpr> as_one_split(IterSumExpr sum);
  IterMarkPtr fused(const IterSumExpr& sum);

  bool read_comparison(const Expr& e);
  bool read_order(const Expr& a, const Expr& b, int64_t slack);
  bool constrain(const IterSumExpr& pattern, bool upper, const Expr& limit);
  bool cuts_symbolically(const Expr& low, const Expr& high, const Expr& last);

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

/// Why the sums are no map of the level: rests on mixed-radix digits. Splits of one iterator whose lower factors are
/// the running products of the extents below them are independent, and reach every combination. (iter_check.cc)
std::optional<std::string> problem_of(const std::vector<IterSumExpr>& indices, IterReader& reader, IterMapLevel level);

}  // namespace tilewright::arith
