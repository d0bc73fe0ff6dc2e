// Inits that a condition may skip. The init of a reduction runs in the step in which all reduction axes are at the
// beginnings of their domains; where a condition leaves that step out, but not all others, the sum goes on from what
// the memory held before.
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
#pragma once

#include <optional>
#include <string>

#include "ir/stmt.h"
#include "support/result.h"

namespace tilewright::analysis {

struct SkippedInit {
  Ref<Block> block;
  std::string why, hint;
};

/// The first block whose init is not proved to run wherever a step of its reduction does; of `only` and the blocks in
/// it, where it is given.
std::optional<SkippedInit> find_skipped_init(const Stmt& body, const Block* only = nullptr);
/// verify/init-skipped: of a module, function or statement.
Status verify_inits(const NodeRef& node);

}  // namespace tilewright::analysis
