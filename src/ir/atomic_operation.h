// Atomic read-modify-write operations: T.atomic_add(T.address_of(A[i]), value), T.atomic_min and T.atomic_max. The
// value of the call is the previous value of the element.
//
// The memory order is relaxed: only operations of one thread on one element are ordered, and they order no other
// accesses. Results of integers do not depend on the order; sums of floats are rounded in the order of execution.
#pragma once

#include <optional>
#include <vector>

#include "ir/op.h"
#include "ir/stmt.h"
#include "support/result.h"

namespace tilewright {

struct AtomicOperation {
  Intrinsic intrinsic = Intrinsic::kUnknown;
  NodeRef address;  ///< the call of T.address_of
  Ref<Buffer> buffer;
  std::vector<Expr> indices;
  Expr value;

  /// Decodes an atomic call; returns nothing for other expressions.
  static std::optional<AtomicOperation> of(const Expr& e);
  /// Converts a store of a sum, difference, minimum or maximum of the stored element and a value to the equivalent
  /// atomic operation. Returns nothing for other stores.
  static std::optional<AtomicOperation> of(const BufferStore& store);
  Expr as_call() const;
};

bool is_atomic(Intrinsic intrinsic);
inline bool is_atomic(const Expr& e) {
  const Call* call = e.as<Call>();
  return call && is_atomic(intrinsic_of(*call));
}
/// Whether elements of the type support the operation: integers of 32 and 64 bits do, and float32 and float64 support
/// additions.
bool has_atomic(Intrinsic intrinsic, DataType type);

/// Refuses malformed atomic calls ("verify/atomic"), and those inside an expression ("verify/atomic-value"). An atomic
/// call must be a whole statement, or the whole value of a let or a store, up to casts. Otherwise its result would
/// depend on the order in which C evaluates operands, and a pass could duplicate it.
Status verify_atomics(const NodeRef& root);

}  // namespace tilewright
