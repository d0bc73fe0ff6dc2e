// Computes the condition under which the init of a reduction may be hoisted out of the reduction loops. Lowering and
// decompose_reduction do this; the init must then run exactly once, before the first step.
//
//   for k0, k1 in T.grid(4, 4):                  vk is 0 only at k0 = 0, k1 = 0, which is the first iteration. The init
//     with T.block("C"):                         can run before the loops, if i < 7.
//       T.where(i < 7 and k0 * 4 + k1 < 14)
//       vi, vk = T.axis.remap("SR", [i, k0 * 4 + k1])
//
// An init runs in each instance of its block in which all reduction axes are at the minima of their domains. Not every
// binding makes that the first iteration: with `7 - k` it is the last one, with `k // 2` there are two, with `k + 2`
// none.
#pragma once

#include <string>
#include <vector>

#include "arith/analyzer.h"
#include "ir/stmt.h"

namespace tilewright::analysis {

struct ReductionStart {
  Expr condition;  ///< condition, on variables outside of `loops`, under which a first step runs; null if `why_not` is
                   ///< set
  Expr predicate;  ///< the block's predicate in the first iteration: `condition` without the tests for empty loops
  std::string why_not;
};

/// Checks that, of all iterations of `loops` (outermost first), only the first one runs the init. The analyzer must
/// know the variables outside of the loops.
ReductionStart reduction_start(const BlockRealize& realize, const std::vector<Ref<For>>& loops,
                               arith::Analyzer& analyzer);

}  // namespace tilewright::analysis
