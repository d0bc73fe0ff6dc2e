// Finds statements outside of blocks that prevent reordering. Loop bounds that read memory, as in loops over the rows
// of a sparse matrix, are "settled" if nothing in the scope writes that memory; these do not count.
//
//   for p in range(P[vi + 1] - P[vi]):      settled where nothing below writes P
//     with T.block("sum"): ...
#pragma once

#include "analysis/tree.h"

namespace tilewright::analysis {

/// Returns the first unsettled statement in the body of the block at this position, outside of blocks (as
/// Scope::bare_statement()). Null if there is none.
const NodeBase* unsettled_statement(const Tree& tree, int block);
/// Returns the first unsettled statement inside of a statement of the tree.
const NodeBase* unsettled_statement_in(const Tree& tree, int at);

}  // namespace tilewright::analysis
