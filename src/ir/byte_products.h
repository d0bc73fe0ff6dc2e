// Four products of bytes that one instruction of a GPU adds up: T.call_pure_extern(dtype, "__dp4a", a, b, c) of vectors
// of four bytes, which is how tensor intrinsics call CUDA's function of that name, and T.dp4a(a, b, c), whose operands
// are words that hold four bytes each.
#pragma once

#include <optional>

#include "ir/op.h"
#include "ir/stmt.h"

namespace tilewright {

/// sum + a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3], which wraps in the type of the sum.
struct ByteProducts {
  Expr a, b;             ///< vectors of four bytes, or words
  DataType left, right;  ///< int8 or uint8
  Expr sum;

  /// The sum that a call is; nothing for other calls.
  static std::optional<ByteProducts> of(const Call& call);
  /// Whether the operands are vectors.
  bool has_vectors() const { return a.dtype().is_vector(); }
};

}  // namespace tilewright
