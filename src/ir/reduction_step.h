// Recognizes stores that are steps of a reduction: element = element (op) value, with a commutative and associative op.
#pragma once

#include <optional>

#include "ir/op.h"
#include "ir/stmt.h"

namespace tilewright {

class ReductionStep {
 public:
  /// Returns the reduction step that the store executes. Nothing if it executes none, or if the operand depends on the
  /// element, too.
  static std::optional<ReductionStep> of(const BufferStore& store);

  /// The load of the previous value of the element.
  const Expr& element() const { return element_; }
  /// The operand that a step adds, multiplies, ...
  const Expr& operand() const { return operand_; }
  /// A number >= 1 that identifies the operation. Steps on one element with the same number may be reordered. Addition
  /// and subtraction have the same number.
  int operation() const;

  /// Returns the value of `element` after one step with the operand of this step, or with another one.
  Expr step(const Expr& element) const { return step(element, operand_); }
  Expr step(const Expr& element, const Expr& operand) const;
  /// Combines two partial results, which may be vectors.
  Expr combine(const Expr& a, const Expr& b) const;
  /// The neutral element of the operation, with which a partial result starts.
  Expr identity() const;
  /// Whether several partial results may begin with the initial value `start`: it is the neutral element, or a constant
  /// of an idempotent operation such as min.
  bool may_restart_from(const Expr& start) const;
  /// Whether the value of the element decides if the operand is evaluated: `element and operand`, in this order.
  bool may_skip_operand() const { return is_first_ && (kind_ == Kind::kAnd || kind_ == Kind::kOr); }
  bool is_sum() const { return kind_ == Kind::kAdd; }
  bool is_difference() const { return kind_ == Kind::kSub; }
  bool is_min() const { return kind_ == Kind::kMin; }
  bool is_max() const { return kind_ == Kind::kMax; }
  /// The bitwise operation of the step; kUnknown if it is another one.
  Intrinsic bitwise() const { return kind_ == Kind::kCall ? bits_ : Intrinsic::kUnknown; }
  /// Whether reordering steps does not change the result, not even by rounding: integers wrap, and min and max select
  /// one of their operands.
  bool is_exact() const;

 private:
  ReductionStep(Kind kind, Intrinsic bits, Expr element, Expr operand, bool is_first)
      : kind_(kind), bits_(bits), element_(std::move(element)), operand_(std::move(operand)), is_first_(is_first) {}

  Kind kind_;       ///< kCall for the bitwise operation `bits_`
  Intrinsic bits_;  ///< the bitwise operation
  Expr element_, operand_;
  bool is_first_;  ///< whether the element is the left operand
};

}  // namespace tilewright
