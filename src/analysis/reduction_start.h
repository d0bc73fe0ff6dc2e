// When a reduction begins, seen from outside of its loops: what an init needs to know before it may run there.
//
//   for k0, k1 in T.grid(4, 4):                  begins at k0 = 0, k1 = 0: there vk is 0 and nowhere else, so the init
//     with T.block("C"):                         runs once, first, and where  i < 7  holds
//       T.where(i < 7 and k0 * 4 + k1 < 14)
//       vi, vk = T.axis.remap("SR", [i, k0 * 4 + k1])
//
// An init runs in each instance of its block in which all reduction axes are at the beginnings of their domains. A
// reduction over `7 - k` sets its result to zero in its last step, one over `k // 2` twice, one over `k + 2` never.
#pragma once

#include <string>
#include <vector>

#include "arith/analyzer.h"
#include "ir/stmt.h"

namespace tilewright::analysis {

struct ReductionStart {
  Expr condition;  ///< under which there is a first step, in terms of what stands around `loops`; null if not regular
  Expr wanted;     ///< the same but for loops without iterations: where there would be a first step
  std::string why_not;
};

/// Whether, of all iterations of `loops` (outermost first), the first one alone runs the init. The analyzer knows what
/// stands around them.
ReductionStart reduction_start(const BlockRealize& realize, const std::vector<Ref<For>>& loops,
                               arith::Analyzer& analyzer);

}  // namespace tilewright::analysis
