// Where, along a loop, a comparison begins or ceases to hold.
#pragma once

#include <optional>
#include <unordered_set>

#include "arith/analyzer.h"
#include "arith/int_set.h"
#include "lower/loops/index_variables.h"

namespace tilewright::lower {

/// Variables that are defined inside of a loop, and the ranges of those that have one.
struct Inside {
  arith::Domains ranges;
  std::unordered_set<NodeRef> defined;
};

/// p * v + q, where q uses nothing that is defined inside, and p is not 0.
struct Line {
  int64_t p;
  Expr q;

  /// The first v for which it is at least 0 if it rises, the first for which it is not if it falls.
  Expr border() const;
  std::optional<int64_t> const_border() const;
};

/// The least value (or the greatest) of an expression that is at least 0 exactly where a comparison of indices holds,
/// over all that is inside of the loop over `v`; nothing if it is not linear.
std::optional<Line> line_of(const Expr& comparison, const Ref<Var>& v, const Inside& inside, bool least,
                            arith::Analyzer& analyzer, IndexVariables& variables);

}  // namespace tilewright::lower
