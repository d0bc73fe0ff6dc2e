// Python numbers in expressions. A number has no type of its own: it keeps its exact value until it is combined with a
// typed operand, and then takes the type that the table in docs/types.md gives.
//
//   x64 * 0.1                               // 0.1 in float64
//   T.if_then_else(c, 0.1, 0.2)             // float32 by itself; float64 if stored to a float64 buffer
//   1.0 / T.if_then_else(c, 3.0, 7.0) * x64 // a tree of numbers: computed in float64
//
// A Python float is represented by an untyped FloatImm: its type field says float32, but its value is not rounded, and
// its `operations` field is 0. Integers in a tree are untyped IntImm nodes. A tree of numbers consists of selections
// and arithmetic whose leaves are untyped numbers. Untyped numbers exist only while an expression is being built.
// settle() gives them a type before the expression becomes part of a statement.
#pragma once

#include <optional>
#include <utility>

#include "ir/build.h"
#include "ir/integer_range.h"

namespace tilewright {

/// The size limit for the analysis of trees of numbers. A tree with more operations is computed in the type that it has
/// without a typed operand. Shared subexpressions count once for each use.
constexpr uint32_t kMostOperationsOfTree = 4096;

/// An argument from Python.
struct Operand {
  NodeRef node;
  bool is_number = false;  ///< a Python number, or a tree of numbers
  bool is_huge = false;    ///< an integer of more than 64 bits; `node` is the nearest double
  /// For integers: the value as a double, rounded to odd. Rounding that double to a smaller type gives the same result
  /// as rounding the integer itself.
  double odd = 0;

  Operand() = default;
  Operand(NodeRef argument);  // NOLINT: implicit on purpose
  bool is_expr() const { return node.defined() && node.sort() == Sort::kExpr; }
};

/// A Python float as an operand.
Operand number_of_python(double value);
/// A Python integer as an operand.
Operand integer_of_python(int value);
/// Whether the operand is a Python integer, or a tree of Python integers.
bool is_integers(const Operand& operand);
/// Returns the range of a Python integer or of a tree of them; nothing for other operands.
std::optional<IntegerRange> integers_of(const Operand& operand);
/// Converts a tree of Python integers to a tree of floats, for the division `/`.
Operand float_of(const Operand& integers);
/// Makes the result of folding an operation an untyped number again, if `part`, an operand of that operation, is a part
/// of a tree of integers (see meet_numbers()). Returns other results unchanged.
Expr still_number(Expr result, const Expr& part);
/// Whether the expression is a Python float or a tree of numbers, whose exact value its type may not represent.
bool keeps_digits(const NodeRef& node);
/// Whether the node is a float constant that float32 represents exactly.
bool fits_float32(const NodeRef& node);
/// Gives a number the type that it has without a typed operand. Returns any other expression unchanged.
NodeRef settle(NodeRef node);
Expr settled(const Operand& operand);
/// Converts the value of an attribute to a typed node. A Python float becomes float32 if that type represents it
/// exactly, otherwise float64, so that Python reads back the number that was set.
NodeRef as_attribute(NodeRef node);
/// Returns the exact value: of type float64 if float32 cannot represent it.
Expr exact(const Operand& value);
/// Rounds the number once, to a floating-point type. Throws if a finite value is outside the range of the type.
Expr number_as(DataType type, const Operand& number);
/// Converts both operands to their common type. If one of them is a number, the table in docs/types.md decides.
std::pair<Expr, Expr> meet(const Operand& a, const Operand& b);
/// Like meet(), but two numbers stay untyped: for operations that return one of their operands, such as Select and Min.
std::pair<Expr, Expr> meet_alternatives(const Operand& a, const Operand& b);
/// Converts the operands of an operator if both are numbers and at least one is a float or a tree; otherwise returns
/// nothing. Operands of arithmetic become parts of a tree. Operands of a comparison become float64, or, for integers, a
/// type that holds both. `kind` may be Kind::kSelect, or Kind::kCall for the bit operation `intrinsic`.
std::optional<std::pair<Expr, Expr>> meet_numbers(Kind kind, const Operand& a, const Operand& b,
                                                  Intrinsic intrinsic = Intrinsic::kUnknown);
/// Whether a tree of int32 constants overflows, in which case the same tree of Python integers has type int64.
bool overflows_as_numbers(const Expr& tree);
/// Returns the minimum of both operands, or the maximum if `is_max`.
Expr least(const Operand& a, const Operand& b, bool is_max);
/// Converts a value to the type that a cast, a declared variable or a buffer requires.
Expr cast(DataType type, const Operand& value);

}  // namespace tilewright
