// Structural equality up to differences that somebody proves to be none.
#pragma once

#include <span>

#include "ir/structural.h"

namespace tilewright {

/// Decides where two integer expressions differ. Asked from the innermost expressions outwards.
class DifferenceProver {
 public:
  struct Pair {
    NodeRef lhs, rhs;
  };
  virtual ~DifferenceProver() = default;
  /// `bound`: the variables and buffers that belong to each other. `around`: the nodes of the left side that contain
  /// the expression, from the root inwards.
  virtual bool equal(const Expr& lhs, const Expr& rhs, std::span<const Pair> bound,
                     std::span<const NodeRef> around) = 0;
};

std::optional<Mismatch> find_mismatch(const NodeRef& lhs, const NodeRef& rhs, bool map_free_vars,
                                      DifferenceProver& prover);

}  // namespace tilewright
