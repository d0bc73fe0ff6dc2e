// Numbers of Python where a program is built: a number keeps its value until it meets an operand, whose type it takes
// (the table is in docs/types.md).
//
//   x64 * 0.1                               // all digits of 0.1
//   T.if_then_else(c, 0.1, 0.2)             // alone float32; stored to float64, all digits
//   1.0 / T.if_then_else(c, 3.0, 7.0) * x64 // a tree of numbers: computed in float64
//
// A float of Python is a FloatImm of type float32 whose value is not rounded yet: an untyped number, which counts no
// operations; so is an IntImm in a tree. Choices between such numbers and arithmetic of them are trees of numbers; they
// exist between the calls that build an expression only: whatever becomes part of a statement is settled.
#pragma once

#include <optional>
#include <utility>

#include "ir/build.h"
#include "ir/integer_range.h"

namespace tilewright {

/// Trees with more operations are not analyzed: they are computed in the type that they have without an operand. Shared
/// subexpressions count once for each use.
constexpr uint32_t kMostOperationsOfTree = 4096;

/// An argument from Python.
struct Operand {
  NodeRef node;
  bool is_number = false;  ///< a number of Python, or a tree of numbers
  bool is_huge = false;    ///< an integer of more than 64 bits; `node` is the nearest number of double precision
  /// for integers: the value in double precision, rounded to odd, so that rounding it once more is exact
  double odd = 0;

  Operand() = default;
  Operand(NodeRef argument);  // NOLINT: implicit on purpose
  bool is_expr() const { return node.defined() && node.sort() == Sort::kExpr; }
};

/// A float of Python.
Operand number_of_python(double value);
/// An integer of Python as a node.
Operand integer_of_python(int value);
/// Whether it is an integer of Python, or a tree of such integers.
bool is_integers(const Operand& operand);
/// Returns the range of a Python integer or of a tree of them; nothing for other operands.
std::optional<IntegerRange> integers_of(const Operand& operand);
/// Integers of Python as a tree of floats: what `/` divides.
Operand float_of(const Operand& integers);
/// The result of an operation on a part of a tree, as meet_numbers() gives it: a folded integer is a number still.
Expr still_number(Expr result, const Expr& part);
/// Whether the expression is a float of Python, or a tree of numbers: what is computed of it may have more digits than
/// its type holds.
bool keeps_digits(const NodeRef& node);
/// Whether it is a float that float32 holds.
bool fits_float32(const NodeRef& node);
/// Returns the number in the type that it has alone; any other expression unchanged.
NodeRef settle(NodeRef node);
Expr settled(const Operand& operand);
/// The node as the value of an attribute. A float of Python becomes float32 where that type holds it, else float64, as
/// integers become int32 or a wider type: Python reads back what it gave.
NodeRef as_attribute(NodeRef node);
/// The value with all its digits, of type float64 where float32 does not hold them.
Expr exact(const Operand& value);
/// The number in a floating-point type, rounded once. Throws where a finite value is beyond the range of the type.
Expr number_as(DataType type, const Operand& number);
/// Both in their common type, by the table of numbers where one of them is a number.
std::pair<Expr, Expr> meet(const Operand& a, const Operand& b);
/// As meet(), but a choice between two numbers keeps their digits: the operands of Select, Min and the like.
std::pair<Expr, Expr> meet_alternatives(const Operand& a, const Operand& b);
/// The operands of an operator where both are numbers and one of them a float or a tree: of arithmetic as parts of a
/// tree, of a comparison in float64, or, of integers, in a type that holds them. Nothing elsewhere. Kind::kSelect is a
/// choice; Kind::kCall is an operator of bits, the `intrinsic`.
std::optional<std::pair<Expr, Expr>> meet_numbers(Kind kind, const Operand& a, const Operand& b,
                                                  Intrinsic intrinsic = Intrinsic::kUnknown);
/// Whether a tree of constants of int32 overflows, so that the same tree of integers of Python is int64.
bool overflows_as_numbers(const Expr& tree);
/// The smaller (or the larger) value.
Expr least(const Operand& a, const Operand& b, bool is_max);
/// A value that is given a type: by a cast, a declared variable or a buffer.
Expr cast(DataType type, const Operand& value);

}  // namespace tilewright
