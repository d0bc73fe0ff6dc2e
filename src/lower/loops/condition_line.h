// Computes at which iteration of a loop a comparison starts or stops to hold, so that the loop can be split there.
#pragma once

#include <optional>
#include <unordered_set>

#include "arith/analyzer.h"
#include "arith/int_set.h"
#include "lower/loops/index_variables.h"

namespace tilewright::lower {

/// Variables that are defined inside of a loop, and their ranges, if known.
struct Inside {
  arith::Domains ranges;
  std::unordered_set<NodeRef> defined;
};

/// The linear function p * v + q of a loop variable v, where p is not 0 and q is invariant in the loop.
struct Line {
  int64_t p;
  Expr q;

  /// Returns the first v with p * v + q >= 0 if p is positive, or with p * v + q < 0 if p is negative.
  Expr border() const;
  std::optional<int64_t> const_border() const;
};

/// Returns the minimum (or maximum), over all inner iterations of the loop over `v`, of an expression that is >= 0
/// exactly where a comparison of indices holds. Nothing if that is not linear in v.
std::optional<Line> line_of(const Expr& comparison, const Ref<Var>& v, const Inside& inside, bool least,
                            arith::Analyzer& analyzer, IndexVariables& variables);

}  // namespace tilewright::lower
