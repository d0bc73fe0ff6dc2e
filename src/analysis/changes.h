// Whether running a statement changes what an expression reads: it is then another number before than behind it.
//
//   for k in range(N[0]):      the body changes N[0], and the loop runs as often as N[0] said before
//     N[0] = 3
#pragma once

#include "ir/stmt.h"

namespace tilewright::analysis {

/// Whether the expression reads memory, at all.
bool reads_memory(const Expr& value);
/// Of each view, what it is a view of counts where `body` contains the block that declares it.
bool may_change(const Stmt& body, const Expr& value);

}  // namespace tilewright::analysis
