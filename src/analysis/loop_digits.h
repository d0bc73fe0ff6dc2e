// Splits each loop whose variable is divided into one loop per mixed-radix digit, so that quotients and remainders
// become loop variables. skipped_init.cc needs this to reason about fused loops.
//
//   for f in range(24):  v = f // 8, k = f % 8 // 2, T.where(f % 2 < v)
//   for f_2, f_1, f_0 in T.grid(3, 4, 2):  v = f_2, k = f_1, T.where(f_0 < f_2)        f = f_2 * 8 + f_1 * 2 + f_0
//
// Loops that are divided together, as in (f0 * 4 + f1) // 6, are fused first: f = f0 * 4 + f1. The new nest visits the
// same iterations, and perhaps more at the end of a loop, because conditions f < end are dropped. If no digit of
// iteration p is larger than that of q, and one is smaller, p runs before q in both nests.
#pragma once

#include <functional>
#include <vector>

#include "arith/analyzer.h"
#include "arith/iter_map.h"
#include "ir/stmt.h"
#include "ir/substitute.h"

namespace tilewright::analysis {

struct NestLoop {
  Ref<Var> var;
  Expr min, extent;
  bool is_bound;  ///< whether the loop is bound to a thread axis, so that iterations run concurrently
};

/// Loops, outermost first, with the conditions and values that depend on them.
struct LoopNest {
  std::vector<NestLoop> loops;
  std::vector<Expr> terms;  ///< conditions that hold in the nest
  VarMap values;            ///< values of axes, let variables and replaced loop variables in terms of `loops`
};

/// Splits the loops whose variables are divided in `values(nest)` or in the conditions. Loops for which `is_kept`
/// returns true stay whole. Returns whether any loop was split or fused. The analyzer must know that the loops run, and
/// which sizes are positive.
bool split_into_digits(LoopNest& nest, const std::function<std::vector<Expr>(const LoopNest&)>& values,
                       const std::function<bool(const Ref<Var>&)>& is_kept, arith::Analyzer& analyzer);

/// Returns `value`, the binding of an axis over [min, min + extent), or its mirror image if it descends with a loop.
/// Both identify the same elements, but iteration maps support no negative scales.
Expr ascending(const Expr& value, const Expr& min, const Expr& extent, const arith::IterDomains& inputs,
               const Expr& predicate, arith::Analyzer& analyzer);

}  // namespace tilewright::analysis
