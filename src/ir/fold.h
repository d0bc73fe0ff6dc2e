// Constant folding of scalar operators: the meaning of ir/meaning.h applied to IntImm and FloatImm.
#pragma once

#include <optional>

#include "ir/make.h"
#include "ir/op.h"

namespace tilewright {

/// Returns the result of a binary operator as a constant. Nothing if an operand is not constant, for a division by 0,
/// and where an index type (int32, int64) would overflow.
std::optional<Expr> fold_binary(Kind kind, const Expr& a, const Expr& b);
/// Returns a constant converted to a scalar type.
std::optional<Expr> fold_cast(DataType dtype, const Expr& value);
/// Returns the result, of type `dtype`, of an intrinsic whose row allows folding, if all arguments are constant.
std::optional<Expr> fold_call(Intrinsic intrinsic, DataType dtype, const std::vector<Expr>& args);

}  // namespace tilewright
