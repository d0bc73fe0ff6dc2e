// Atomic read-modify-write operations: T.atomic_add(T.address_of(A[i]), value), and the same with T.atomic_min, _max,
// _and, _or, _xor and _exchange. The value of the call is the previous value of the element.
//
// The memory order is relaxed: only operations of one thread on one element are ordered, and they order no other
// accesses. Results of integers do not depend on the order; sums of floats are rounded in the order of execution. Of
// several exchanges, the last one decides, so their order matters.
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
  /// Converts a store of a sum, difference, minimum, maximum or bitwise operation of the stored element and a value to
  /// the equivalent atomic operation. Returns nothing for other stores.
  static std::optional<AtomicOperation> of(const BufferStore& store);
  Expr as_call() const;
};

bool is_atomic(Intrinsic intrinsic);
/// Whether operations of this kind leave the same value in any order, up to rounding. Exchanges do not.
inline bool is_commutative_atomic(Intrinsic intrinsic) {
  return is_atomic(intrinsic) && intrinsic != Intrinsic::k_atomic_exchange;
}
inline bool is_atomic(const Expr& e) {
  const Call* call = e.as<Call>();
  return call && is_atomic(intrinsic_of(*call));
}
/// Whether elements of the type support the operation: integers of 32 and 64 bits do, and float32 and float64 support
/// additions and exchanges.
bool has_atomic(Intrinsic intrinsic, DataType type);

/// Refuses malformed atomic calls ("verify/atomic"), and those inside an expression ("verify/atomic-value"). An atomic
/// call must be a whole statement, or the whole value of a let or a store, up to casts. Otherwise its result would
/// depend on the order in which C evaluates operands, and a pass could duplicate it.
Status verify_atomics(const NodeRef& root);

}  // namespace tilewright
