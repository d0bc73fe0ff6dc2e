// Finds statements outside of blocks that prevent reordering. Loop bounds that read memory, as in loops over the rows
// of a sparse matrix, do not count as long as nothing in the scope writes that memory: they are settled.
//
//   for p in range(P[vi + 1] - P[vi]):      settled where nothing below writes P
//     with T.block("sum"): ...
#pragma once

#include "analysis/tree.h"

namespace tilewright::analysis {

/// The unsettled statement of the body of the block at this position, as Scope::bare_statement(). Null if there is
/// none.
const NodeBase* unsettled_statement(const Tree& tree, int block);
/// The unsettled statement inside of a statement of the tree.
const NodeBase* unsettled_statement_in(const Tree& tree, int at);

}  // namespace tilewright::analysis
