// Loops of which expressions take digits, as one loop for each digit.
//
//   for f in range(24):  v = f // 8, k = f % 8 // 2, T.where(f % 2 < v)
//   for f_2, f_1, f_0 in T.grid(3, 4, 2):  v = f_2, k = f_1, T.where(f_0 < f_2)        f = f_2 * 8 + f_1 * 2 + f_0
//
// Loops that are divided together, (f0 * 4 + f1) // 6, are joined first: f = f0 * 4 + f1. The new loops
// visit the same iterations, and perhaps more at the end: conditions f < end, which hold in every iteration with
// smaller digits, are not kept. An iteration in which some digits are smaller, and no others larger, comes earlier in
// both orders.
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
  bool is_bound;  ///< to threads, which run concurrently
};

/// Loops, outermost first, with the conditions and values that depend on them.
struct LoopNest {
  std::vector<NestLoop> loops;
  std::vector<Expr> terms;  ///< conditions around
  VarMap values;            ///< values of axes, names and replaced loops in terms of loops
};

/// Replaces the loops of which `values` (of a nest) take digits, unless `is_kept` says that a loop is used in other
/// places too. Returns whether there are any. The analyzer knows that the loops run, and which sizes are positive.
bool take_digits(LoopNest& nest, const std::function<std::vector<Expr>(const LoopNest&)>& values,
                 const std::function<bool(const Ref<Var>&)>& is_kept, arith::Analyzer& analyzer);

/// The value of an axis over [min, min + extent) where the predicate holds; of a descending one its mirror image, which
/// identifies elements as well: iteration maps have no negative scales.
Expr ascending(const Expr& value, const Expr& min, const Expr& extent, const arith::IterDomains& inputs,
               const Expr& predicate, arith::Analyzer& analyzer);

}  // namespace tilewright::analysis
