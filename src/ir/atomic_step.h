// Atomic steps: T.atomic_add(T.address_of(A[i]), value), and _min and _max. Other steps and loads of the element come
// before the step or after it, never in between. The value of the call is that of the element before.
//
// Steps have no order but that of one thread, and order nothing else. Any order gives integers the same result; sums of
// floats are rounded in the order in which their steps happen.
#pragma once

#include <optional>
#include <vector>

#include "ir/op.h"
#include "ir/stmt.h"
#include "support/result.h"

namespace tilewright {

struct AtomicStep {
  Intrinsic intrinsic = Intrinsic::kUnknown;
  NodeRef address;  ///< the call of T.address_of
  Ref<Buffer> buffer;
  std::vector<Expr> indices;
  Expr value;

  /// Nothing for other expressions.
  static std::optional<AtomicStep> of(const Expr& e);
  /// What the store does as an atomic step; nothing where it is no sum, difference, minimum or maximum of its element
  /// and a value.
  static std::optional<AtomicStep> of(const BufferStore& store);
  Expr as_call() const;
};

bool is_atomic(Intrinsic intrinsic);
inline bool is_atomic(const Expr& e) {
  const Call* call = e.as<Call>();
  return call && is_atomic(intrinsic_of(*call));
}
/// Whether there are such steps of elements of the type: of integers of 32 and 64 bits, and sums of float32 and
/// float64.
bool has_atomic(Intrinsic intrinsic, DataType type);

/// Refuses calls that are no atomic steps ("verify/atomic"), and those that are part of an expression
/// ("verify/atomic-value"): a statement is one, keeps its value in a variable or stores it, perhaps as another type.
/// So no step depends on the order in which C evaluates operands, and none is evaluated twice.
Status verify_atomics(const NodeRef& root);

}  // namespace tilewright
