// Steps of a reduction: a store element = element (op) value, with an op that takes its values in any order.
#pragma once

#include <optional>

#include "ir/op.h"
#include "ir/stmt.h"

namespace tilewright {

class ReductionStep {
 public:
  /// Returns the reduction step of a store. Nothing if it is none, or if its value also depends on the element in
  /// another way.
  static std::optional<ReductionStep> of(const BufferStore& store);

  /// The element before, as the store loads it.
  const Expr& element() const { return element_; }
  /// The operand that a step adds, multiplies, ...
  const Expr& operand() const { return operand_; }
  /// Steps of one operation on one element may change places: numbers from 1 on. Subtracting is adding the opposite.
  int operation() const;

  /// `element` after one more step, or after one with another operand.
  Expr step(const Expr& element) const { return step(element, operand_); }
  Expr step(const Expr& element, const Expr& operand) const;
  /// Two partial results as one, of vectors too.
  Expr combine(const Expr& a, const Expr& b) const;
  /// The neutral element of the operation, with which a partial result starts.
  Expr identity() const;
  /// Combining the initial value a second time changes nothing: it is neutral, or a constant that may be combined any
  /// number of times.
  bool may_restart_from(const Expr& start) const;
  /// The element decides whether the operand is evaluated: `element and operand`, in this order.
  bool may_skip_operand() const { return is_first_ && (kind_ == Kind::kAnd || kind_ == Kind::kOr); }
  /// A step adds its operand.
  bool is_sum() const { return kind_ == Kind::kAdd; }
  /// A step subtracts it.
  bool is_difference() const { return kind_ == Kind::kSub; }
  /// A step keeps the smaller, or the larger, of the two.
  bool is_min() const { return kind_ == Kind::kMin; }
  bool is_max() const { return kind_ == Kind::kMax; }
  /// Any order of the values gives the same: integers wrap, and min and max choose one of them.
  bool is_exact() const;

 private:
  ReductionStep(Kind kind, Intrinsic bits, Expr element, Expr operand, bool is_first)
      : kind_(kind), bits_(bits), element_(std::move(element)), operand_(std::move(operand)), is_first_(is_first) {}

  Kind kind_;       ///< kCall: `bits_`
  Intrinsic bits_;  ///< an operation on bits
  Expr element_, operand_;
  bool is_first_;  ///< the element stands left of the operand
};

}  // namespace tilewright
