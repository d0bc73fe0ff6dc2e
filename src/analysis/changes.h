// Whether a statement changes memory that an expression reads, so that the expression has different values before and
// after the statement.
//
//   for k in range(N[0]):      the body changes N[0], and the loop runs as often as N[0] said before
//     N[0] = 3
#pragma once

#include "analysis/memory_names.h"
#include "analysis/tree.h"
#include "ir/stmt.h"

namespace tilewright::analysis {

/// Whether the expression reads memory.
bool reads_memory(const Expr& value);
/// Whether `body` may change the value. A view that a block in `body` declares counts as the buffer that it views.
/// `names`: the names of memory in the function that contains both.
bool may_change(const MemoryNames& names, const Stmt& body, const Expr& value);
/// may_change() for a statement of the tree. Views that enclosing blocks declare count, too.
bool may_change(const Tree& tree, const Stmt& body, const Expr& value);

}  // namespace tilewright::analysis
