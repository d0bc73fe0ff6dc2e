// Calls of dot-product instructions of four bytes (dp4a): T.call_pure_extern(dtype, "__dp4a", a, b, c) of vectors of
// four bytes, by which tensor intrinsics call CUDA's function, and T.dp4a(a, b, c), whose operands are words that hold
// four bytes each.
#pragma once

#include <optional>

#include "ir/op.h"
#include "ir/stmt.h"

namespace tilewright {

/// sum + a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3], which wraps in the type of the sum.
struct Dot4 {
  Expr a, b;             ///< vectors of four bytes, or words
  DataType left, right;  ///< int8 or uint8
  Expr sum;

  /// Returns the dot product that the call computes; nothing for other calls.
  static std::optional<Dot4> of(const Call& call);
  /// Whether the operands are vectors.
  bool has_vectors() const { return a.dtype().is_vector(); }
};

}  // namespace tilewright
