// Constant folding of scalar operators: the exact meaning of ir/numeric.h applied to IntImm and FloatImm.
#pragma once

#include <optional>

#include "ir/make.h"

namespace tilewright {

/// The constant that `kind` of two constants of one type is; nothing when an operand is no constant, when it is a
/// division by 0, or when an index type (int32, int64) would overflow.
std::optional<Expr> fold_binary(Kind kind, const Expr& a, const Expr& b);
/// A constant cast to a scalar type.
std::optional<Expr> fold_cast(DataType dtype, const Expr& value);

}  // namespace tilewright
