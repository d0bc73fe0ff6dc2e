// Structural equality modulo integer arithmetic: a prover may show that two expressions of different form are equal.
#pragma once

#include <span>

#include "ir/structural.h"

namespace tilewright {

/// Decides whether two integer expressions that differ in form have equal values. The comparison asks for the innermost
/// expressions that differ first, then for the expressions around them.
class DifferenceProver {
 public:
  struct Pair {
    NodeRef lhs, rhs;
  };
  virtual ~DifferenceProver() = default;
  /// `bound`: pairs of variables and buffers that match. `around`: the nodes on the left side that contain the
  /// expression, starting with the root.
  virtual bool equal(const Expr& lhs, const Expr& rhs, std::span<const Pair> bound,
                     std::span<const NodeRef> around) = 0;
};

std::optional<Mismatch> find_mismatch(const NodeRef& lhs, const NodeRef& rhs, bool map_free_vars,
                                      DifferenceProver& prover);

}  // namespace tilewright
