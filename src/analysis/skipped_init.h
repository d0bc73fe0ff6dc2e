// Finds reductions whose init is not the first step of each element. An init runs in the step in which all reduction
// axes are at the minima of their domains. If a condition skips this step but not all others, the sum starts from
// uninitialized memory. If the step comes after others, the init discards their results.
//
//   for i, r in T.grid(4, 4):
//     with T.block("C"):
//       vi, vr = T.axis.remap("SR", [i, r])
//       T.where(r >= i)                              the init, at vr = 0, is skipped for i > 0
//       with T.init():
//         C[vi] = 0.0
//
//   vr = T.axis.reduce(4, 3 - r)                     the init runs in the last iteration, and discards the sum
//
// The conditions of the block, of enclosing blocks and of `if` statements count. They must hold in the first step of an
// element if they hold in any, as `r <= i`, `r0 * 4 + r1 < 13` and `i < 3` do. The steps of an element are those in one
// iteration of the loops around the outermost reduction loop.
#pragma once

#include <optional>
#include <string>

#include "ir/stmt.h"
#include "support/result.h"

namespace tilewright::analysis {

struct SkippedInit {
  Ref<Block> block;
  std::string what;  ///< the violation: "the init of block 'C' may be skipped, ..."
  std::string why, hint;
};

/// Returns the first block whose init is not proved to run before all other steps of each element. `only`: the block to
/// which, with the blocks in it, the search is restricted.
std::optional<SkippedInit> find_skipped_init(const Stmt& body, const Block* only = nullptr);
/// Returns the error verify/init-skipped if a module, function or statement has such a block.
Status verify_inits(const NodeRef& node);

}  // namespace tilewright::analysis
