// Inits that do not come first. The init of a reduction runs in the step in which all reduction axes are at the
// beginnings of their domains. That has to be the first step of its element: where a condition skips it, but not all
// others, the sum goes on from what the memory held before; where it comes after others, what they added up is lost.
//
//   for i, r in T.grid(4, 4):
//     with T.block("C"):
//       vi, vr = T.axis.remap("SR", [i, r])
//       T.where(r >= i)                              the step vr = 0 runs for i = 0 alone, others for all i
//       with T.init():
//         C[vi] = 0.0
//
// A condition is that of the block, of blocks around it, and of statements `if`. It holds at the beginning wherever it
// holds at all: `r <= i`, `r0 * 4 + r1 < 13`, `i < 3`; a loop over range(i, 4) whose axis has that domain has none.
//
//   vr = T.axis.reduce(4, 3 - r)                   the init runs in the last iteration of the loop, and resets the sum
//
// Steps are those of one element in one iteration of the loops around the reduction's outermost one. A step that is
// repeated begins the reduction again.
#pragma once

#include <optional>
#include <string>

#include "ir/stmt.h"
#include "support/result.h"

namespace tilewright::analysis {

struct SkippedInit {
  Ref<Block> block;
  std::string what;  ///< "the init of block 'C' may be skipped"
  std::string why, hint;
};

/// The first block whose init is not proved to run first wherever a step of its reduction runs; of `only` and the
/// blocks in it, where it is given.
std::optional<SkippedInit> find_skipped_init(const Stmt& body, const Block* only = nullptr);
/// verify/init-skipped: of a module, function or statement.
Status verify_inits(const NodeRef& node);

}  // namespace tilewright::analysis
