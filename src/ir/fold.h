// Constant folding of scalar operators: the meaning of ir/meaning.h applied to IntImm and FloatImm.
#pragma once

#include <optional>

#include "ir/make.h"
#include "ir/op.h"

namespace tilewright {

/// The constant that `kind` of two constants of one type is; nothing when an operand is no constant, when it is a
/// division by 0, or when an index type (int32, int64) would overflow.
std::optional<Expr> fold_binary(Kind kind, const Expr& a, const Expr& b);
/// A constant cast to a scalar type.
std::optional<Expr> fold_cast(DataType dtype, const Expr& value);
/// A call, with a result of type `dtype`, of an intrinsic whose row says that it folds when all arguments are constant.
std::optional<Expr> fold_call(Intrinsic intrinsic, DataType dtype, const std::vector<Expr>& args);

}  // namespace tilewright
